"""A listing that is polled: what it is, what was learned of it, and its form in the store."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from recrawl.crawl.listings.reading import SITEMAP
from recrawl.crawl.listings.worth import DAY, Worth
from recrawl.engine.names.addresses import host_of
from recrawl.store.listings import StoredListing

MOST_SPEAKS = 1000  # hosts whose robots.txt names one sitemap
_FIRST_RETRY, _LAST_RETRY = 3600.0 / DAY, 7.0  # days that a failing listing is not asked
_SMOOTH = 0.3


@dataclass(slots=True)
class Listing:
    """One sitemap, feed or index page; times are seconds since 1970.

    ``named_by`` says how it was found: ``add``, ``robots``, ``page`` or ``index``. ``names`` are the hosts whose
    robots.txt names it, for which it speaks besides its own. A part of an index is read when its date there moved,
    unless the index was found to have wrong dates (``own_clock``) or gives none. ``as_page``: it is also a page, and
    read when that is crawled.
    """

    url: str
    kind: str = SITEMAP
    named_by: str = "add"
    names: list[str] = field(default_factory=list)
    parent: str | None = None
    part_date: float | None = None
    own_clock: bool = False
    as_page: bool = False
    etag: str | None = None
    last_modified: str | None = None
    polled_at: float | None = None
    read_at: float | None = None  # the last time that it was read and differed
    not_before: float = 0.0
    failures: int = 0
    failure: str | None = None
    trusted: bool = True  # whether its signals count on its host
    waiting: bool = False  # its date in the index moved: it is to be read
    probing: bool = False  # it is to be read although its date did not move, to see whether the index is right
    backlog: bool = False  # it names new pages beyond the limit of a day: it is read again, modified or not
    requests: float = 1.0  # of a poll, parts included
    n_entries: int = 0
    n_signals: int = 0
    worth: Worth = field(default_factory=Worth)

    @property
    def host(self) -> str:
        """The host that it is on."""
        return host_of(self.url)

    @property
    def family(self) -> str:
        """The listing whose polls its signals are worth: the index, or itself."""
        return self.url if self.parent is None or self.own_clock else self.parent

    @property
    def follows_index(self) -> bool:
        """Whether only the index decides when it is read."""
        return self.parent is not None and not self.own_clock

    def speaks_for(self, url: str) -> bool:
        """Whether what it says of a page counts: of its own host, and of hosts whose robots.txt names it.

        >>> Listing("https://a.example/sitemap.xml", names=["b.example"]).speaks_for("https://b.example/x")
        True
        """
        host = host_of(url)
        return host == self.host or host in self.names

    def named(self, host: str) -> bool:
        """A robots.txt names it; whether that is new."""
        if host in self.names or len(self.names) >= MOST_SPEAKS:
            return False
        self.names.append(host)
        return True

    def failed(self, failure: str, now: float) -> None:
        """A poll failed: the next one comes later each time."""
        self.failures, self.failure, self.polled_at = self.failures + 1, failure, now
        self.not_before = now + self.worth.day * min(_FIRST_RETRY * 2.0 ** min(self.failures - 1, 20), _LAST_RETRY)

    def answered(self, now: float, good_for: float, *, is_judged: bool) -> None:
        """A poll was answered; it is not polled again while the answer is good."""
        self.failures, self.failure, self.polled_at = 0, None, now
        self.waiting = False
        self.not_before = now + good_for
        self.worth = self.worth.polled(now, is_judged=is_judged)

    def cost(self, requests: int) -> None:
        """A poll took so many requests, those for parts included."""
        self.requests += _SMOOTH * (requests - self.requests)

    def stored(self, entries: bytes | None = None) -> StoredListing:
        """As it is stored."""
        state = asdict(self)
        del state["url"]
        return StoredListing(self.url, state, entries)

    @classmethod
    def restore(cls, stored: StoredListing) -> Listing:
        """The listing that was stored; what a later version added is left out."""
        state: dict[str, Any] = {name: value for name, value in (stored.state or {}).items() if name in cls.__slots__}
        worth = {name: value for name, value in state.pop("worth", {}).items() if name in Worth.__slots__}
        return cls(url=stored.url, worth=Worth(**worth), **state)


def new_listing(url: str, kind: str) -> StoredListing:
    """A listing that is polled from now on, as it is stored."""
    return Listing(url, kind).stored()
