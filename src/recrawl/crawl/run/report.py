"""Reports of a run: what happened goes to the caller of the crawler and to the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from recrawl.crawl.config.options import OnEvent
from recrawl.crawl.run.counters import Counters
from recrawl.logs import event

log = logging.getLogger(__name__)

_MOST_ERRORS = 20  # errors that are logged as errors; further ones are debug records


class Reporter:
    """Calls ``on_event(name, fields)`` and logs one record per event (docs/reference/commands.md lists them)."""

    def __init__(self, on_event: OnEvent | None = None) -> None:
        self._on_event = on_event
        self._errors = 0

    def __call__(self, name: str, **fields: Any) -> None:
        """Report something that happened."""
        if self._on_event is not None:
            self._on_event(name, fields)
        recorded = _RECORDS.get(name)
        if recorded is not None:
            recorded(self, **fields)

    def started(self, n_pages: int, rate: float) -> None:
        """A run starts."""
        event(log, logging.INFO, "run.started", pages=n_pages, requests_per_second=rate)

    def ended(self, counters: Counters) -> None:
        """A run ended."""
        event(log, logging.INFO, "run.ended", **counters.as_dict())

    def _crawled(self, outcome: Any) -> None:
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
}
