"""CrawlView: what routes and views need of a crawl, whether it runs in this process or on the workers of a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from recrawl.crawl.audit.history import Point
    from recrawl.crawl.clock import Clock
    from recrawl.crawl.config.settings import Settings
    from recrawl.crawl.signals.tokens import Tokens
    from recrawl.engine.views.explain import Explanation
    from recrawl.estimate.audit import Audit
    from recrawl.store.events import Event
    from recrawl.store.protocol import Copy, Outcome, Store

FACTORS = (0.1, 0.15, 0.25, 0.4, 0.6, 0.8, 1.0, 1.3, 1.6, 2.0, 3.0, 5.0, 10.0)  # of the budget, for the curve
STALEST = 100  # pages of a snapshot
KINDS = ("changed", "unchanged", "new", "failed", "gone")


@dataclass(frozen=True)
class BudgetFacts:
    """A budget in words and in requests per second, and how much of it was used since the start."""

    text: str | None
    rate: float
    used: int
    lapsed: float


@dataclass(frozen=True)
class Tallies:
    """Pages, those that fail or are gone, and requests and changes of this run; 0 where others run it."""

    pages: int
    failing: int
    gone: int
    requests: int = 0
    changed: int = 0


class PageRow(NamedTuple):
    """A page of a list; times are None where there was no copy, or no change was seen."""

    url: str
    importance: float
    fresh: float | None
    checked_at: float | None
    changed_at: float | None
    state: str  # paused, gone, failing, waiting or watched


class Crawled(NamedTuple):
    """One crawl that ended."""

    number: int
    at: float
    url: str
    kind: str  # one of KINDS
    status: int | None
    reason: str | None  # of a failure
    took: float


@dataclass(frozen=True)
class Snapshot:
    """Figures of one moment."""

    at: float
    took: float  # seconds
    status: dict[str, Any]
    signals: dict[str, Any]
    history: list[Point]
    audits: list[Audit]
    curve: list[dict[str, float]]  # budget (requests per day), factor, freshness, low, high
    stalest: list[dict[str, Any]]


class Questions(Protocol):
    """Questions about all pages, answered from the database: they take a while and are asked in a thread."""

    def status(self, now: float, budget: str | None = None) -> dict[str, Any]:
        """What ``recrawl status --json`` prints; ``budget`` in words: as if it were another."""

    def sources(self, now: float) -> dict[str, Any]:
        """What ``recrawl signals --json`` prints."""

    def hosts(self) -> Counter[str]:
        """The number of pages of each host."""

    def snapshot(self, now: float) -> Snapshot:
        """What the dashboard shows about all pages."""

    def interrupt(self) -> None:
        """End what another process computes: nobody waits for it any longer."""

    def close(self) -> None:
        """End the connections that questions have of their own."""


class CrawlView(Protocol):
    """A crawl as it is served. Nothing of it waits for a fetch."""

    @property
    def settings(self) -> Settings:
        """The settings in use; the budget is that of the whole."""

    @property
    def clock(self) -> Clock:
        """The clock of the crawl."""

    @property
    def tokens(self) -> Tokens:
        """Who may call."""

    @property
    def questions(self) -> Questions:
        """Questions about all pages."""

    def why_not_ready(self) -> str | None:
        """Why nothing is served yet or any longer; None while it is."""

    def tallies(self) -> Tallies:
        """Numbers that are known without a look at the database."""

    def budget(self) -> BudgetFacts:
        """The budget."""

    def host_seconds(self) -> Mapping[str, float]:
        """Seconds that a crawl of a host takes, smoothed, where this process has crawled it."""

    def store_of(self, url: str) -> Store:
        """The store that has a page's crawls, copies and notes."""

    async def known(self, urls: Sequence[str]) -> list[bool]:
        """Whether URLs are pages."""

    async def explain(self, url: str) -> Explanation | None:
        """Why a page is crawled when it is; None if there is no such page."""

    async def copies(self, urls: Sequence[str]) -> dict[str, Copy]:
        """The newest copies of those pages that have one."""

    async def rows(self, urls: Sequence[str], copies: Mapping[str, Copy]) -> list[PageRow]:
        """What lists show of pages, in their order; URLs that are no pages are left out."""

    async def ordered(self, order: str) -> list[str] | None:
        """URLs of pages in an order: changed, checked, added or stale; None: only a snapshot knows."""

    async def searched(self, words: str, most: int) -> list[str]:
        """At most so many pages with a text in their URL."""

    async def some_urls(self, most: int) -> list[str]:
        """Some pages."""

    async def urls(self, prefix: str = "", *, most: int | None = None) -> list[str]:
        """See `Store.urls`."""

    async def newest_events(self, many: int = 50, *, kinds: Sequence[str] | None = None) -> list[Event]:
        """See `Store.newest_events`."""

    async def host_rules(self, hosts: Sequence[str]) -> list[tuple[float, float | None]]:
        """Of each host the seconds between two requests, and until when it is not asked, None: it may be."""

    async def recent(self) -> list[Crawled]:
        """The last crawls, the newest first."""

    async def apply(self, commands: Sequence[dict[str, Any]]) -> None:
        """Let the crawl do what commands say; they are written when this returns."""

    async def change(self, new: Settings) -> None:
        """Use other settings from now on; ParameterError if they cannot be used."""

    async def run(self, *, crawl: bool = True) -> None:
        """Run until ``stop``; without ``crawl`` nothing is fetched."""

    def stop(self) -> None:
        """Let ``run`` end."""

    @property
    def on_cluster(self) -> bool:
        """Whether workers crawl it, in shards."""

    def workers(self) -> dict[str, Any]:
        """Shards, their owners and workers, as ``recrawl cluster status --json`` prints them; empty without shards."""


def kind_of(outcome: Outcome) -> str:
    """What a crawl came to, in one word of KINDS."""
    if outcome.gone:
        return "gone"
    if outcome.failure is not None:
        return "failed"
    return "new" if outcome.changed is None else "changed" if outcome.changed else "unchanged"
