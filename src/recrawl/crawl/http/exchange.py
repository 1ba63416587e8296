"""Exchange: what is known of a fetch while it runs, over all its hops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urljoin, urlsplit

from recrawl.crawl.clock import Clock
from recrawl.crawl.http.encoding import TooLarge
from recrawl.crawl.http.failures import BadRedirect, BadUrl
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.http.semantics import failure_of, is_gone, retry_after
from recrawl.crawl.urls import canonical
from recrawl.errors import ParameterError

_SAFE_ELSEWHERE = frozenset({"accept", "accept-language"})  # headers that a host may see though meant for another
_DROPPED = frozenset({"set-cookie", "set-cookie2"})


class Exchange:
    """One fetch: where it is, what it sends there, what came back."""

    def __init__(
        self, clock: Clock, url: str, headers: Mapping[str, str], etag: str | None, last_modified: str | None
    ) -> None:
        self.url = self.at = url
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self._clock = clock
        self._began_at = clock.now()
        self._passed: list[str] = []
        self._extra = headers
        self._validators = _validators(etag, last_modified)

    def begin(self) -> None:
        """Go to the URL asked for."""
        try:
            self.at = canonical(self.url)
        except ParameterError:
            raise BadUrl from None

    @property
    def sent(self) -> dict[str, str]:
        """The headers to send here."""
        return {**self._extra, **self._validators}

    def answered(self, status: int, headers: Iterable[tuple[str, str]], most: int) -> None:
        """Take status and headers; of a header that comes twice the values are joined, cookies are dropped."""
        self.status = status
        joined: dict[str, str] = {}
        size = 0
        for name, value in headers:
            size += len(name) + len(value) + 4
            name = name.lower()
            if name not in _DROPPED:
                value = _clean(value)
                joined[name] = f"{joined[name]}, {value}" if name in joined else value
        if size > most:
            raise TooLarge
        self.headers = joined

    def hop(self, goal: str, most: int) -> None:
        """Go where a redirect points; another host sees none of the headers meant for this one.

        Validators are of the page that gave them: they are sent on only to the same URL in the other scheme.
        """
        before = self.at
        self._passed.append(before)
        try:
            goal = canonical(urljoin(before, _percent(goal)))
        except ValueError:
            raise BadRedirect from None
        if goal in self._passed or len(self._passed) > most:
            raise BadRedirect
        self.at, self.status, self.headers = goal, 0, {}
        if before.removeprefix("http://") != goal.removeprefix("https://"):
            self._validators = {}
        downgraded = before.startswith("https:") and goal.startswith("http:")
        if downgraded or urlsplit(before).netloc != urlsplit(goal).netloc:
            self._extra = {name: value for name, value in self._extra.items() if name.lower() in _SAFE_ELSEWHERE}

    def verdict(self) -> str | None:
        """The failure that the status stands for."""
        return failure_of(self.status, conditional=bool(self._validators))

    def done(self, body: bytes, failure: str | None) -> Fetched:
        """The result."""
        now = self._clock.now()
        return Fetched(
            self.url,
            self.at,
            self.status,
            self._began_at,
            now - self._began_at,
            self.headers,
            body if failure is None else b"",
            not_modified=self.status == 304 and failure is None,
            redirects=tuple(self._passed),
            failure=failure,
            gone=is_gone(self.status),
            retry_after=retry_after(self.headers, now),
        )


def _validators(etag: str | None, last_modified: str | None) -> dict[str, str]:
    """The headers of a conditional request; what cannot be sent is left out."""
    given = {"If-None-Match": etag, "If-Modified-Since": last_modified}
    return {name: value for name, value in given.items() if value and value.isprintable()}


def _clean(value: str) -> str:
    """A header's text with what was no UTF-8 replaced, so that it can be stored."""
    return value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _percent(goal: str) -> str:
    """A location with what was no UTF-8 as escapes."""
    return goal if goal.isascii() else goal.encode("utf-8", "surrogateescape").decode("utf-8", "percentencode")
