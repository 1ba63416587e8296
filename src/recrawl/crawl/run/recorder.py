"""Recorder: gives outcomes to the engine at once and to the store in batches; a committed batch is acknowledged."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.feeds.cache import FeedCache
from recrawl.crawl.run.opening.pages import PAUSED_UNTIL
from recrawl.crawl.signals.inbox import Inbox
from recrawl.engine import Engine
from recrawl.schedule.exact import access
from recrawl.store.leases import Lease
from recrawl.store.protocol import Copy, Outcome, Store
from recrawl.store.signals import PendingSignal

_SMOOTH = 0.02  # weight of the newest pick in the smoothed crawl value at the margin


class Ended(NamedTuple):
    """A crawl that ended; ``retry_at`` is set where the page could not be fetched before that time."""

    page: int
    outcome: Outcome
    retry_at: float | None
    good_for: float


class _Unsaved(NamedTuple):
    """A good outcome that is not committed yet, and the copy before it."""

    outcome: Outcome
    before: Copy | None

    def copy(self) -> Copy:
        """The copy after it."""
        return Copy.first(self.outcome) if self.before is None else self.before.after(self.outcome)


class _Batch(NamedTuple):
    """What one transaction writes."""

    outcomes: list[Outcome]
    rows: dict[str, Any] | None  # of the engine
    signals: list[PendingSignal]
    leases: list[Lease]


class Recorder:
    """Group commit: outcomes wait at most ``commit_delay`` seconds or until there are ``commit_size`` of them."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        options: CrawlOptions,
        feeds: FeedCache,
        acknowledged: Callable[[list[Outcome]], None],
    ) -> None:
        self._engine, self._store, self._rules = engine, store, options.rules
        self._delay, self._most, self._acknowledged = options.commit_delay, options.commit_size, acknowledged
        self.longest_hint, self._feeds = options.longest_hint, feeds
        self._ended: list[Ended] = []
        self._pending: list[tuple[int, Outcome]] = []
        self._pending_since = math.inf
        self._newest: dict[str, _Unsaved] = {}  # copies that the store does not have yet
        self._saving: asyncio.Future[None] | None = None  # done when the batch is written that is being written
        self._n_saving, self._saving_since = 0, math.inf  # outcomes of the batch that is being written
        self.threshold = 0.0  # smoothed over picks
        self._picks = 0
        self.inbox: Inbox | None = None  # of signals
        self._leases: dict[str, Lease] = {}  # to write with the next batch
        self.on_copy: list[Callable[[str], None]] = []  # called with the URL of a page that has a newer copy

    # --- copies and outcomes ----------------------------------------------------------------------------------------

    async def copies(self, urls: list[str]) -> dict[str, Copy]:
        """The newest copies, including those that are not committed yet."""
        newest = {url: one.copy() for url in urls if (one := self._newest.get(url))}  # before a batch is committed
        rest = [url for url in urls if url not in newest]
        return (await self._store.copies(rest) if rest else {}) | newest

    def ended(
        self,
        page: int,
        outcome: Outcome,
        copy: Copy | None,
        retry_at: float | None = None,
        good_for: float | None = None,
    ) -> None:
        """A crawl ended; ``good_for`` is for how many seconds its cache headers say that the answer stays good."""
        self._ended.append(Ended(page, outcome, retry_at, good_for or 0.0))
        if outcome.fetched:
            self._newest[outcome.url] = _Unsaved(outcome, copy)
            for call in self.on_copy:
                call(outcome.url)

    def picked(self, threshold: float) -> None:
        """Smooth the crawl value at the margin of the last pick."""
        if not 0 < threshold < 1e200:
            return
        self._picks += 1
        weight, before = max(_SMOOTH, 1.0 / self._picks), self.threshold or threshold
        self.threshold = math.exp((1.0 - weight) * math.log(before) + weight * math.log(threshold))

    # --- to the engine ----------------------------------------------------------------------------------------------

    def settle(self, now: float) -> None:
        """Record all ended crawls in the engine, and add their outcomes to the next batch."""
        if not self._ended:
            return
        ended, self._ended = self._ended, []
        pages = [one.page for one in ended]
        ended = [one for one, there in zip(ended, self.are_there(pages).tolist(), strict=True) if there]
        fetched = [(one.page, one.outcome) for one in ended if one.retry_at is None]
        paused = self._paused([one.page for one in ended])
        for compared in (True, False):
            some = [one for one in fetched if (one[1].changed is not None) is compared]
            if some:
                self._record(some, now, compared)
        self._defer(ended, now)
        self._engine.defer(paused, PAUSED_UNTIL)
        self._feeds.apply(self._engine, self._rules, [(one.page, one.outcome.url) for one in ended])
        if self.inbox is not None:
            self.inbox.ended(pages)
        if not self._pending:
            self._pending_since = now
        self._pending += [(one.page, one.outcome) for one in ended]

    def _paused(self, pages: list[int]) -> list[int]:
        """Those that the user has paused: they stay so, whatever a crawl finds that was begun before."""
        until = self._engine.deferred_until(pages)
        return [page for page, time in zip(pages, until.tolist(), strict=True) if time >= PAUSED_UNTIL]

    def _record(self, some: list[tuple[int, Outcome]], now: float, compared: bool) -> None:
        ids = np.array([page for page, _ in some])
        outcomes = [outcome for _, outcome in some]
        self._engine.record(
            ids,
            now,
            changed=np.array([bool(o.changed) for o in outcomes]) if compared else None,
            as_of=np.array([min(o.began_at, now) for o in outcomes]),
            failed=np.array([o.failure is not None for o in outcomes]),
            gone=np.array([o.gone for o in outcomes]),
        )

    def _defer(self, ended: list[Ended], now: float) -> None:
        """Defer pages that may not be fetched before some time."""
        ruled = bool(self._rules.rules)
        for page, outcome, until, good_for in ended:
            if until is None and not ruled and good_for <= 0:
                continue
            if until is not None:
                self._engine.release([page], now)
                self._engine.defer([page], max(until, now + 1.0))
            elif outcome.fetched and (wait := self._least_wait(outcome.url, good_for)) > 0:
                self._engine.defer([page], outcome.began_at + wait)

    def _least_wait(self, url: str, good_for: float) -> float:
        """Seconds until a page may be fetched again: by its rules, and within them by its server's cache headers."""
        rule = self._rules.of(url)
        most = min(math.inf if rule.max_interval is None else rule.max_interval, self._feeds.interval(url))
        hint = min(good_for, self.longest_hint, most)
        return max(rule.min_interval or 0.0, hint)

    # --- to the store -----------------------------------------------------------------------------------------------

    def due_at(self, now: float) -> float:
        """When the next batch is due; infinity while no outcome waits, or a batch is being written."""
        if not self._pending or self._saving is not None:
            return math.inf
        return now if len(self._pending) >= self._most else self._pending_since + self._delay

    def begin_save(self, notes: Mapping[str, Any] | None = None) -> asyncio.Task[None]:
        """Start to write the waiting outcomes, with notes; one batch at a time."""
        return asyncio.create_task(self._save(self._next_batch(), dict(notes or {})))

    def _next_batch(self) -> _Batch:
        """What waits, to be written now."""
        assert self._saving is None, "one batch at a time"
        waiting, leases = self._pending, list(self._leases.values())
        outcomes = [outcome for _, outcome in waiting] if self.inbox is None else self.inbox.marked(waiting)
        signals = [] if self.inbox is None else self.inbox.renewed(waiting)
        batch = _Batch(outcomes, self.rows(waiting) if waiting else None, signals, leases)
        self._pending, self._leases = [], {}
        self._saving_since, self._pending_since = self._pending_since, math.inf
        self._n_saving = len(waiting)
        self._saving = asyncio.get_running_loop().create_future()
        return batch

    async def _save(self, batch: _Batch, notes: dict[str, Any]) -> None:
        outcomes = batch.outcomes
        try:
            await self._store.save(outcomes, batch.rows, notes=notes, signals=batch.signals, leases=batch.leases)
            for outcome in outcomes:
                unsaved = self._newest.get(outcome.url)
                if unsaved is not None and unsaved.outcome.began_at == outcome.began_at:
                    del self._newest[outcome.url]
            self._acknowledged(outcomes)
        finally:
            written, self._saving = self._saving, None
            self._n_saving, self._saving_since = 0, math.inf
            if written is not None and not written.done():
                written.set_result(None)

    def are_there(self, pages: ArrayLike) -> NDArray[np.bool_]:
        """Which pages were not removed since they were picked."""
        rows = np.asarray(pages, np.int64)
        return np.asarray(access.status(self._engine.scheduler, rows) != access.REMOVED)

    def rows(self, batch: list[tuple[int, Outcome]]) -> dict[str, Any]:
        """The engine's rows of the pages that still exist."""
        pages = np.array([page for page, _ in batch], np.int64)
        rows = self._engine.rows(np.unique(pages[self.are_there(pages)]))
        return {**rows, "threshold": self.threshold or rows["threshold"]}

    async def commit(self, leases: list[Lease], notes: Mapping[str, Any] | None = None) -> None:
        """Write leases and notes with all outcomes that wait; a batch that is being written ends before."""
        while self._saving is not None:
            await asyncio.wait([self._saving])
        self.write_later(leases)
        await self._save(self._next_batch(), dict(notes or {}))

    def write_later(self, leases: list[Lease]) -> None:
        """Write leases with the next batch, each as it is then."""
        for lease in leases:
            self._leases[lease.id] = lease

    @property
    def has_leases(self) -> bool:
        """Whether leases wait for the next batch."""
        return bool(self._leases)

    async def save_notes(self, notes: Mapping[str, Any]) -> None:
        """Write notes at once."""
        await self._store.save(notes=notes)

    async def finish(self, notes: Mapping[str, Any], now: float) -> None:
        """Write all waiting outcomes, with notes."""
        if self._saving is not None:
            await self._saving
        self.settle(now)
        await self.begin_save(notes)

    @property
    def unsettled(self) -> bool:
        """Whether an ended crawl is not recorded in the engine yet."""
        return bool(self._ended)

    @property
    def n_pending(self) -> int:
        """How many outcomes wait for the store, or are being written."""
        return len(self._pending) + self._n_saving

    def lag(self, now: float) -> float:
        """Age of the oldest outcome that is not in the store, in seconds."""
        since = min(self._pending_since if self._pending else math.inf, self._saving_since)
        return max(now - since, 0.0) if since < math.inf else 0.0

    @property
    def saving(self) -> asyncio.Future[None] | None:
        """Done when the batch is written that is being written, or could not be."""
        return self._saving
