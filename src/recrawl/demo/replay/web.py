"""TraceWeb: what the hosts of a trace answer at a time: pages in their versions, sitemaps with dates, and feeds."""

from __future__ import annotations

from bisect import bisect_right
from email.utils import formatdate
from urllib.parse import urlsplit

from recrawl.crawl.http.memory import Answer
from recrawl.demo.replay.listings import Listings
from recrawl.errors import ParameterError
from recrawl.simulate.trace import Trace
from recrawl.urls import name_of

_SYLLABLES = tuple(f"{consonant}{vowel}" for consonant in "bdfgklmnrst" for vowel in "aeio")
_HTML = {"Content-Type": "text/html; charset=utf-8"}


class TraceWeb:
    """The pages of a trace by URL; times are those of the trace, in seconds.

    A page answers 200 with the text of its version, and 304 to a request with the validators of that version. It
    answers 404 before it was created and after it was deleted. Every host has a /sitemap.xml and a /feed.xml
    (`Listings`), and a robots.txt that names the sitemap.

    >>> web = TraceWeb(Trace(0.0, 10.0, offset=[0, 1], changed_at=[5.0], url=["https://a.example/x"]))
    >>> web.answer("https://a.example/x", 4.0).headers["ETag"], web.answer("https://a.example/x", 5.0).headers["ETag"]
    ('"0-0"', '"0-1"')
    """

    def __init__(self, trace: Trace) -> None:
        if trace.url is None:
            raise ParameterError(f"{trace.name}: its pages have no URLs to be served under")
        self.urls = [name_of(str(url)) for url in trace.url]
        self._page_of = {url: page for page, url in enumerate(self.urls)}
        if len(self._page_of) < len(self.urls):
            raise ParameterError(f"{trace.name}: two pages have the same URL in canonical form")
        self._offset: list[int] = trace.offset.tolist()
        self._changed_at: list[float] = trace.changed_at.tolist()
        self._created_at: list[float] = trace.created_at.tolist()
        self.listings = Listings(trace, self.urls)

    def page_of(self, url: str) -> int:
        """The number of the page of a URL; −1: it is none."""
        return self._page_of.get(url, -1)

    def version(self, page: int, now: float) -> int:
        """How often a page had changed by a time."""
        first, last = self._offset[page], self._offset[page + 1]
        return bisect_right(self._changed_at, now, first, last) - first

    def answer(self, url: str, now: float) -> Answer | None:
        """The answer of a URL, for `MemoryWeb`; None: there is nothing."""
        page = self._page_of.get(url)
        if page is None:
            parts = urlsplit(url)
            return self.listings.answer(parts.netloc, parts.path, now)
        return self._page(page, now) if self.listings.exists(page, now) else None

    def _page(self, page: int, now: float) -> Answer:
        version = self.version(page, now)
        since = self._changed_at[self._offset[page] + version - 1] if version else self._created_at[page]
        headers = {**_HTML, "ETag": f'"{page}-{version}"', "Last-Modified": formatdate(since, usegmt=True)}
        return Answer(page_text(page, version), headers=headers)


def page_text(page: int, version: int) -> str:
    """The body of a page; numbers are spelled, so that no detector takes a version for a counter.

    >>> page_text(0, 0) == page_text(0, 1)
    False
    """
    title, text = _spelled(page), _spelled(version)
    return f"<!doctype html><title>{title}</title><main><h1>Page {title}</h1><p>Edition {text} of it.</p></main>"


def _spelled(number: int) -> str:
    """A number in syllables, each number in its own.

    >>> _spelled(0), _spelled(1), _spelled(44)
    ('ba', 'be', 'beba')
    """
    digits = []
    while True:
        number, digit = divmod(number, len(_SYLLABLES))
        digits.append(_SYLLABLES[digit])
        if not number:
            return "".join(reversed(digits))
