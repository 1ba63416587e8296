"""Options of a crawler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from recrawl.crawl.config.rules import Rules
from recrawl.crawl.deliver.subscribers import Callback
from recrawl.crawl.detect.detector import Detector
from recrawl.crawl.polite.budget import Budget
from recrawl.errors import ParameterError


class Others(Protocol):
    """The crawls of other hosts, such as those of other shards."""

    def has(self, url: str) -> bool:
        """Whether the host of a URL is theirs: this crawl does not ask it."""
        ...

    async def send(self, url: str, command: Mapping[str, Any]) -> None:
        """Queue a command for the crawl that has the host of a URL; returns when it is written."""
        ...


OnEvent = Callable[[str, Mapping[str, Any]], None]


@dataclass(frozen=True)
class CrawlOptions:
    """How a crawler works; times are in seconds.

    Delay and concurrency per host are the engine's ``host_spacing`` and ``host_concurrency``.
    """

    budget: Budget | None = None  # default: the engine's budget
    rules: Rules = field(default_factory=Rules)
    detector: Detector | None = None  # what counts as a change; default: the main text
    concurrency: int = 64  # crawls at a time
    longest_delay: float = 60.0  # a longer crawl-delay of robots.txt counts as this
    longest_hint: float = 600.0  # a page is not fetched while its cache headers call it good, up to this
    feed_interval: float = 300.0  # a feed is polled no more often than this to keep its items
    commit_delay: float = 0.1  # outcomes wait at most this long for a batch
    commit_size: int = 500  # outcomes in a batch
    commands_every: float = 2.0  # between two checks for commands of other processes
    notes_every: float = 60.0  # between two notes of how fresh the copies are
    longest_sleep: float = 60.0  # of a loop that has nothing to do
    audit_share: float = 0.0  # share of the crawls that are audits
    audit_draws: int = 100  # pages drawn for one audit
    audit_rng: np.random.Generator | None = None
    subscribers: Mapping[str, Callback] = field(default_factory=dict)  # who gets events, by name
    listings: bool = True  # whether sitemaps, feeds and index pages are polled
    checkpoint_pages: int = 0  # from so many pages on, the engine's state is written beside the store; 0: never
    signal_delay: float = 0.0  # signals wait so long for others to be written with
    callback_url: str = ""  # where hubs reach the crawler; empty: it subscribes to none
    texts: bool | Callable[[str], bool] = False  # whether events carry the text of pages: of all, or by URL
    others: Others | None = None  # who crawls the other hosts; default: this crawl crawls all
    on_event: OnEvent | None = None  # called with a name and fields: "crawled", "saved", "commands", "error" …

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ParameterError(f"concurrency is {self.concurrency}: must be at least 1")
        if not 0 <= self.audit_share < 1:
            raise ParameterError(f"audit_share is {self.audit_share:g}: must be at least 0 and below 1")
