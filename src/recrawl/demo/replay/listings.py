"""Listings of a trace: what each host's sitemap and feed say at a time, by the signals of the trace."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

import numpy as np

from recrawl.crawl.http.memory import Answer
from recrawl.simulate.trace import Trace

PART = 1000  # pages of a sitemap; a host with more has an index of several
FEED_ITEMS = 30  # the newest items that a feed holds
_DAY = 86400.0
_SITEMAP = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_XML = {"Content-Type": "application/xml"}
_ATOM = {"Content-Type": "application/atom+xml"}
_TEXT = {"Content-Type": "text/plain"}


@dataclass
class _Host:
    """The pages of a host in the order of their creation, and what was said of them, in the order of time."""

    pages: list[int] = field(default_factory=list)
    said_at: list[float] = field(default_factory=list)  # when a page was created or its date moved
    said_of: list[int] = field(default_factory=list)


class Listings:
    """Sitemaps, feeds and robots.txt of the hosts of a trace.

    A page is listed while it exists. Its date is that of the last signal about it: the time of change that the signal
    states, otherwise the signal's own time. A page without a signal has no date. The feed holds the pages that were
    created or signalled last. All answers have an ETag that moves when they do.
    """

    def __init__(self, trace: Trace, urls: list[str]) -> None:
        self._urls = urls
        self._created_at: list[float] = trace.created_at.tolist()
        self._deleted_at: list[float] = trace.deleted_at.tolist()
        self._end = trace.end
        self._dates: dict[int, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
        self._hosts: dict[str, _Host] = defaultdict(_Host)
        self._gone: dict[str, list[float]] = defaultdict(list)
        hosts = [urlsplit(url).netloc for url in urls]
        for page, host in enumerate(hosts):
            self._hosts[host].pages.append(page)
            if self._deleted_at[page] < self._end:
                self._gone[host].append(self._deleted_at[page])
        for times in self._gone.values():
            times.sort()
        self._note_dates(trace, hosts)

    def _note_dates(self, trace: Trace, hosts: list[str]) -> None:
        """Order creations and signals by time, by host."""
        said = [(at, page) for page, at in enumerate(self._created_at)]
        if trace.signals is not None:
            at, page, _, about = trace.signals
            stated = np.where(np.isfinite(about), about, at).tolist()
            for when, number, date in zip(at.tolist(), page.tolist(), stated, strict=True):
                self._dates[number][0].append(when)
                self._dates[number][1].append(date)
                said.append((when, number))
        for when, number in sorted(said):
            host = self._hosts[hosts[number]]
            host.said_at.append(when)
            host.said_of.append(number)

    def date_of(self, page: int, now: float) -> float | None:
        """The date that a sitemap states for a page at a time; None: no signal was about it."""
        if page not in self._dates:
            return None
        at, dates = self._dates[page]
        k = bisect_right(at, now)
        return dates[k - 1] if k else None

    def answer(self, host: str, path: str, now: float) -> Answer | None:
        """The answer of a path that is no page; None: there is nothing."""
        found = self._hosts.get(host)
        if found is None:
            return None
        tag = f'"{bisect_right(found.said_at, now)}-{bisect_right(self._gone.get(host, []), now)}"'
        if path == "/robots.txt":
            return Answer(f"User-agent: *\nAllow: /\n\nSitemap: {sitemap_of(host)}\n", headers=_TEXT)
        if path == "/feed.xml":
            return Answer(self._feed(host, found, now), headers={**_ATOM, "ETag": tag})
        if path == "/sitemap.xml":
            large = len(found.pages) > PART
            text = self._index(host, found, now) if large else self._sitemap(found.pages, now)
            return Answer(text, headers={**_XML, "ETag": tag})
        part = path.removeprefix("/sitemap-").removesuffix(".xml")
        if not part.isdecimal() or int(part) * PART >= len(found.pages):
            return None
        return Answer(self._sitemap(_part(found.pages, int(part)), now), headers={**_XML, "ETag": tag})

    def exists(self, page: int, now: float) -> bool:
        """Whether a page was created and not deleted by a time; what stays to the end of the trace is not deleted."""
        deleted_at = self._deleted_at[page]
        return self._created_at[page] <= now and (now < deleted_at or deleted_at >= self._end)

    def _sitemap(self, pages: list[int], now: float) -> str:
        rows = (_row("url", self._urls[page], self.date_of(page, now)) for page in pages if self.exists(page, now))
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {_SITEMAP}>{"".join(rows)}</urlset>\n'

    def _index(self, host: str, found: _Host, now: float) -> str:
        """The index of a large host: a part is as new as the last creation, deletion or signal of its pages."""
        rows = []
        for part in range(-(-len(found.pages) // PART)):
            pages = _part(found.pages, part)
            moved = [at for page in pages for at in self._moved_at(page, now)]
            if moved:
                rows.append(_row("sitemap", f"https://{host}/sitemap-{part}.xml", max(moved)))
        return f'<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex {_SITEMAP}>{"".join(rows)}</sitemapindex>\n'

    def _moved_at(self, page: int, now: float) -> list[float]:
        """The times up to now at which the entry of a page came, moved or went, the last of each kind."""
        if self._created_at[page] > now:
            return []
        times = [self._created_at[page]]
        if not self.exists(page, now):
            times.append(self._deleted_at[page])
        if page in self._dates:
            at = self._dates[page][0]
            times += at[: bisect_right(at, now)][-1:]
        return times

    def _feed(self, host: str, found: _Host, now: float) -> str:
        k = bisect_right(found.said_at, now)
        latest: dict[int, float] = {}
        for page, at in zip(reversed(found.said_of[:k]), reversed(found.said_at[:k]), strict=True):
            if self.exists(page, now) and page not in latest:
                latest[page] = at
            if len(latest) == FEED_ITEMS:
                break
        items = "".join(self._item(page, at) for page, at in latest.items())
        updated = _written(max(latest.values(), default=found.said_at[0]))
        head = f"<id>https://{host}/feed.xml</id><title>{escape(host)}</title><updated>{updated}</updated>"
        return (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">{head}{items}</feed>\n'
        )

    def _item(self, page: int, at: float) -> str:
        url = escape(self._urls[page])
        return (
            f'<entry><id>{url}</id><title>{url}</title><link href="{url}"/>'
            f"<published>{_written(self._created_at[page])}</published><updated>{_written(at)}</updated></entry>"
        )


def sitemap_of(host: str) -> str:
    """The URL of a host's sitemap."""
    return f"https://{host}/sitemap.xml"


def _part(pages: list[int], part: int) -> list[int]:
    return pages[part * PART : (part + 1) * PART]


def _row(kind: str, url: str, date: float | None) -> str:
    lastmod = ""
    if date is not None:
        text = _written(date)
        lastmod = f"<lastmod>{text[:10] if date % _DAY == 0.0 else text}</lastmod>"  # what has only a day, states a day
    return f"<{kind}><loc>{escape(url)}</loc>{lastmod}</{kind}>"


def _written(at: float) -> str:
    """An instant in the form of RFC 3339."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
