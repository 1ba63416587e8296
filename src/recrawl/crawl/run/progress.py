"""Progress of a run: counters for a live view and for the end, and reports to the caller and to the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from heapq import nlargest
from typing import Any

from recrawl.crawl.config.options import OnEvent
from recrawl.crawl.run.trouble import HostTrouble, Warnings
from recrawl.engine.names.addresses import host_of
from recrawl.logs import event
from recrawl.store.protocol import Outcome

log = logging.getLogger(__name__)

PROGRESS_EVERY = 60.0  # seconds between two records of progress
_HOSTS = 10_000  # whose times are remembered
_SMOOTH = 0.1
_MOST_ERRORS = 20  # errors that are logged as errors; further ones are debug records


@dataclass(slots=True)
class HostCounters:
    """Crawls of one host; ``took`` is in seconds, smoothed."""

    crawls: int = 0
    failures: int = 0
    requests: int = 0
    took: float = 0.0


@dataclass(slots=True)
class Counters:
    """Crawls by outcome, and by host for as many hosts as are remembered."""

    started: int = 0
    ended: int = 0
    requests: int = 0
    changed: int = 0
    unchanged: int = 0
    new: int = 0  # first copies, or copies that could not be compared
    flapping: int = 0  # returns to content seen before; unchanged too
    rolled_off: int = 0  # feeds with nothing left of the poll before
    not_modified: int = 0
    failed: int = 0
    gone: int = 0
    pushed: int = 0  # copies that came without a request; no crawls
    deliveries: int = 0  # of hubs, signed
    deliveries_ignored: int = 0  # not signed, or wrongly
    turned_away: int = 0  # requests with signals, because the crawl was busy
    set_aside: int = 0
    polls: int = 0  # of listings
    discovered: int = 0  # new pages that listings and links named
    errors: int = 0  # mistakes in a fetcher or detector; failures too
    n_bytes: int = 0
    acknowledged: int = 0
    hosts: dict[str, HostCounters] = field(default_factory=dict)

    def add(self, outcome: Outcome, n_bytes: int, host: str) -> None:
        """Count one crawl."""
        self.ended += 1
        self.requests += outcome.requests
        self.n_bytes += n_bytes
        self.gone += outcome.gone
        self.failed += outcome.failure is not None
        self.not_modified += outcome.status == 304
        if outcome.fetched:
            self.changed += outcome.changed is True
            self.unchanged += outcome.changed is False
            self.new += outcome.changed is None
            self.flapping += outcome.flapping
            self.rolled_off += outcome.rolled_off
        mine = self.hosts.get(host)
        if mine is None and len(self.hosts) < _HOSTS:
            mine = self.hosts[host] = HostCounters(took=outcome.took)
        if mine is not None:
            mine.crawls += 1
            mine.failures += outcome.failure is not None
            mine.requests += outcome.requests
            mine.took += _SMOOTH * (outcome.took - mine.took)

    def slowest(self, n: int) -> list[tuple[str, float]]:
        """The slowest hosts, with their seconds."""
        found = [(host, one.took) for host, one in self.hosts.items()]
        return sorted(found, key=lambda item: -item[1])[:n]

    def largest_hosts(self, n: int) -> list[tuple[str, HostCounters]]:
        """The hosts with the most crawls."""
        return nlargest(n, self.hosts.items(), key=lambda item: item[1].crawls)

    def judged(self) -> tuple[int, int]:
        """Comparisons of a page with its copy, and changes that these found."""
        return self.changed + self.unchanged, self.changed

    def as_dict(self) -> dict[str, Any]:
        """The counters by name, without those of hosts."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "hosts"}


class Reporter:
    """Calls its listeners with (name, fields) and logs one record per event (docs/reference/commands.md lists them)."""

    def __init__(self, on_event: OnEvent | None = None) -> None:
        self.listeners: list[OnEvent] = [] if on_event is None else [on_event]
        self._errors = 0
        self._trouble, self._warnings = HostTrouble(), Warnings()

    def __call__(self, name: str, **fields: Any) -> None:
        """Report something that happened."""
        for listener in self.listeners:
            listener(name, fields)
        recorded = _RECORDS.get(name)
        if recorded is not None:
            recorded(self, **fields)

    @property
    def logs_progress(self) -> bool:
        """Whether anybody reads records of progress."""
        return log.isEnabledFor(logging.INFO)

    def started(self, **fields: Any) -> None:
        """A run starts."""
        event(log, logging.INFO, "run.started", **fields)

    def progress(self, counters: Counters, **fields: Any) -> None:
        """A minute of a run has passed."""
        hidden = self._warnings.next_minute()
        event(log, logging.INFO, "run.progress", **fields, **counters.as_dict(), warnings_hidden=hidden)

    def ended(self, counters: Counters, **fields: Any) -> None:
        """A run ended."""
        event(log, logging.INFO, "run.ended", **fields, **counters.as_dict())

    def failed(self, problem: Exception, counters: Counters) -> None:
        """A run ended by an error."""
        event(log, logging.ERROR, "run.failed", error=problem, **counters.as_dict())

    def _level(self, name: str) -> int:
        """The level of a warning about a host: a flood of them is for debugging."""
        return logging.WARNING if self._warnings.allows(name) else logging.DEBUG

    def host_held(self, host: str, seconds: float, reason: str) -> None:
        """A host is not asked for some time."""
        level = self._level("host.held")
        event(log, level, "host.held", host=host, seconds=round(seconds, 3), reason=reason)

    def robots_unreachable(self, host: str, reason: str | None, seconds: float) -> None:
        """The robots.txt of a host could not be read, so that none of its pages may be fetched."""
        level = self._level("robots.unreachable")
        event(log, level, "robots.unreachable", host=host, reason=reason, seconds=round(seconds, 3))

    def _crawled(self, outcome: Any) -> None:
        failed = outcome.failure is not None
        host = host_of(outcome.url) if failed or self._trouble else ""
        n = 0 if outcome.failure == "robots" or not host else self._trouble.count(host, failed=failed)
        if n > 0:
            level = self._level("host.failing")
            event(log, level, "host.failing", host=host, failures=n, reason=outcome.failure, url=outcome.url)
        elif n < 0:
            event(log, logging.INFO, "host.recovered", host=host, failures=-n)
        if log.isEnabledFor(logging.DEBUG):
            names = ("url", "status", "failure", "changed", "gone", "took", "requests")
            event(log, logging.DEBUG, "crawl.ended", **{name: getattr(outcome, name) for name in names})

    def _error(self, url: str, problem: Exception) -> None:
        self._errors += 1
        level = logging.ERROR if self._errors <= _MOST_ERRORS else logging.DEBUG
        event(log, level, "crawl.error", url=url, error=problem)
        if self._errors == _MOST_ERRORS:
            event(log, logging.WARNING, "crawl.errors_hidden", shown=_MOST_ERRORS, further="debug")

    def _saved(self, outcomes: list[Any]) -> None:
        event(log, logging.DEBUG, "batch.saved", outcomes=len(outcomes))

    def _polled(self, listing: Any, failure: str | None, signals: int, new: int) -> None:
        if failure is not None:
            level = self._level("listing.failed")
            event(log, level, "listing.failed", url=listing.url, reason=failure, failures=listing.failures)
            return
        level = logging.INFO if signals or new else logging.DEBUG
        fields = {"kind": listing.kind, "entries": listing.n_entries, "signals": signals, "new_pages": new}
        event(log, level, "listing.polled", url=listing.url, **fields)

    def _dropped_gone(self, url: str) -> None:
        event(log, logging.INFO, "page.dropped", url=url)

    def _commands(self, n: int) -> None:
        event(log, logging.INFO, "commands.applied", pages=n)

    def _not_delivered(self, subscriber: str, failures: int, why: str, problem: Exception) -> None:
        level = logging.WARNING if failures & (failures - 1) == 0 else logging.DEBUG  # 1, 2, 4, 8 … in a row
        event(log, level, "subscriber.failed", subscriber=subscriber, failures=failures, reason=why)

    def _dropped(self, subscriber: str, n: int) -> None:
        event(log, logging.WARNING, "subscriber.dropped", subscriber=subscriber, events=n)


_RECORDS: dict[str, Callable[..., None]] = {
    "crawled": Reporter._crawled,
    "error": Reporter._error,
    "saved": Reporter._saved,
    "commands": Reporter._commands,
    "not delivered": Reporter._not_delivered,
    "dropped": Reporter._dropped,
    "polled": Reporter._polled,
    "dropped page gone": Reporter._dropped_gone,
}
