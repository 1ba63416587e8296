"""Eligibility: the one place that knows why a page may not be picked now.

Reasons are: the user paused the page; it waits after a failure, because it is gone, or because it was deferred; it is
leased; its host may not be crawled; it is too unlikely to have changed; or it waits in a cohort behind pages that are
worth more. The scheduler itself knows only that a page is withdrawn; `Eligibility` decides when it comes back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.eligibility.cohorts import Cohorts
from recrawl.engine.eligibility.waiting import Timers, Waiting
from recrawl.schedule.exact import access
from recrawl.schedule.exact.scheduler import Scheduler

Ids = NDArray[np.int64]
Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Reason(StrEnum):
    """Why a page is not eligible."""

    RETRY = "retry"  # its last crawl failed
    GONE = "gone"  # it was found to be gone
    DEFERRED = "deferred"  # the user deferred it
    PAUSED = "paused"  # the user paused it
    LEASED = "leased"  # it is being crawled
    HOST = "host"  # its host may not be crawled now
    UNLIKELY = "unlikely"  # it is less likely to have changed than `min_change_probability`
    PRICE = "price"  # a crawl costs more than it saves
    COHORT = "cohort"  # pages of its cohort that are worth as much or more come first


class Eligibility:
    """User pauses, waits and cohorts of pages, kept in step with a scheduler."""

    def __init__(self, scheduler: Scheduler, day: float) -> None:
        self.scheduler = scheduler
        self.waiting = Waiting(day)
        self.cohorts = Cohorts()
        self._paused: set[int] = set()  # by the user
        self.unlikely = Timers()  # until pages are likely enough to have changed; ~k: all pages of the closed cohort k

    # --- questions ---------------------------------------------------------------------------------------------------

    def is_paused(self, rows: Ids) -> Flags:
        """Which pages the user has paused."""
        if not self._paused:
            return np.zeros(len(rows), np.bool_)
        return np.fromiter((page in self._paused for page in rows.tolist()), np.bool_, len(rows))

    def reasons(self, page: int, now: float, price: float = 0.0) -> tuple[Reason, ...]:
        """Why a page may not be picked now, where a crawl has this price (0: none); empty: it may."""
        found: list[Reason] = []
        if self.waiting.until(page) > now:
            failed = Reason.RETRY if self.waiting.failures(page) else Reason.DEFERRED
            found.append(Reason.GONE if self.waiting.times_gone(page) else failed)
        if page in self._paused:
            found.append(Reason.PAUSED)
        status = int(access.status(self.scheduler, np.array([page]))[0])
        if status == access.LEASED:
            found.append(Reason.LEASED)
        if status == access.PARKED:
            found.append(Reason.HOST)
        if self.unlikely_until(page) > now:
            dear = price > 0.0 and float(self.scheduler.value([page], now)[0]) < price
            found.append(Reason.PRICE if dear else Reason.UNLIKELY)
        if status == access.PAUSED and self.cohorts.contains(page):
            found.append(Reason.COHORT)
        return tuple(found)

    def unlikely_until(self, page: int) -> float:
        """Until when a page, or its whole cohort, is too unlikely to have changed (−infinity: it is not)."""
        cohort = int(self.cohorts.lists.cohort[page])
        return max(self.unlikely.until(page), self.unlikely.until(~cohort) if cohort >= 0 else -math.inf)

    def times_gone(self, page: int) -> int:
        """How often in a row a page was found to be gone."""
        return self.waiting.times_gone(page)

    # --- the user ----------------------------------------------------------------------------------------------------

    def pause(self, rows: Ids) -> None:
        """Pages are not picked until they are resumed."""
        self.withdraw(rows)
        self._paused.update(rows.tolist())

    def resume(self, rows: Ids) -> None:
        """Paused pages may be picked again; those that wait for a time when it has come."""
        self._paused.difference_update(rows.tolist())
        self._free(rows[~self.cohorts.members(rows)])

    def defer(self, rows: Ids, until: Array) -> None:
        """Pages are not picked before a time; a longer wait stays."""
        self.withdraw(rows)
        for page, time in zip(rows.tolist(), until.tolist(), strict=True):
            self.waiting.put(page, 0, 0, max(time, self.waiting.until(page)))

    def end_deferral(self, rows: Ids, until: float) -> None:
        """Pages that were deferred up to a time at most no longer wait; those that failed or are gone do."""
        waiting = self.waiting
        deferred = [page for page in rows.tolist() if -math.inf < waiting.until(page) <= until]
        deferred = [page for page in deferred if not (waiting.failures(page) or waiting.times_gone(page))]
        for page in deferred:
            waiting.clear(page)
        self._free(np.array(deferred, np.int64))

    # --- crawls ------------------------------------------------------------------------------------------------------

    def settle(self, rows: Ids, now: float, failed: Flags, gone: Flags) -> None:
        """Crawls ended: failed and gone pages wait for a time, the others no longer do."""
        aside = rows[failed | gone]
        if len(aside):
            self.scheduler.pause(aside)
        for page in rows[failed].tolist():
            self.waiting.fail(page, now)
        for page in rows[gone].tolist():
            self.waiting.lose(page, now)
        self._clear(rows[~(failed | gone)])
        self.reconsider(rows)

    def fetched(self, rows: Ids) -> None:
        """Crawls ended well: their pages no longer wait."""
        self._clear(rows)
        self.reconsider(rows)

    def _clear(self, rows: Ids) -> None:
        """End the waits of pages after failures."""
        if self.waiting.counts() != (0, 0):
            for page in rows.tolist():
                self.waiting.clear(page)
            self._free(rows)

    def wake(self, now: float) -> None:
        """Pages whose wait is over may be picked again."""
        self._free(self.waiting.due(now))
        due = self.unlikely.due(now)
        if len(due):
            self.cohorts.open(self.scheduler, (~due[due < 0]).tolist())
            self._free(due[due >= 0])

    def next_at(self) -> float:
        """When the next wait is over."""
        return min(self.waiting.next_at(), self.unlikely.next_at())

    # --- pages that are too unlikely to have changed ------------------------------------------------------------------

    def set_unlikely(self, rows: Ids, until: Array, threshold: float) -> None:
        """Pages that were picked are withdrawn until a time; of a cohort, all pages."""
        access.return_picked(self.scheduler, rows, threshold, withdraw=True)
        member = self.cohorts.members(rows)
        for page, time in zip(rows[member].tolist(), until[member].tolist(), strict=True):
            self.unlikely.set(~self.cohorts.close(page), time)
        for page, time in zip(rows[~member].tolist(), until[~member].tolist(), strict=True):
            self.unlikely.set(page, time)

    def reconsider(self, rows: Ids) -> None:
        """Something became known of pages: those that were unlikely to have changed may be picked again."""
        if self.unlikely:
            self._free(np.array([page for page in rows.tolist() if self.unlikely.drop(page)], np.int64))

    def unlikely_pages(self, among: list[int] | None = None) -> tuple[Ids, Ids, Array]:
        """Numbers in ``unlikely``, a page of each, and until when: of all, or those among some."""
        unlikely = self.unlikely
        items = unlikely.items() if among is None else [(k, unlikely.until(k)) for k in among if k in unlikely]
        numbers, until = np.array([number for number, _ in items], np.int64), np.array([time for _, time in items])
        first = [self.cohorts.closed[~number] if number < 0 else number for number in numbers.tolist()]
        pages = np.array(first, np.int64)
        there = pages >= 0  # no page of a closed cohort may be left
        return numbers[there], pages[there], until[there]

    def hasten(self, numbers: Ids, until: Array) -> None:
        """Pages and cohorts are likely enough to have changed from an earlier time on."""
        for number, time in zip(numbers.tolist(), until.tolist(), strict=True):
            self.unlikely.set(number, time)

    def withdraw(self, rows: Ids) -> None:
        """Take pages out of their cohorts and out of the scheduler."""
        self.cohorts.leave(self.scheduler, rows)
        self.scheduler.pause(rows)

    def forget(self, rows: Ids) -> None:
        """Pages were removed."""
        self._paused.difference_update(rows.tolist())
        for page in rows.tolist():
            self.waiting.clear(page)
            self.unlikely.drop(page)

    def _free(self, rows: Ids) -> None:
        """Resume those pages that neither the user nor a wait keeps back."""
        if len(rows) == 0:
            return
        waiting, unlikely = self.waiting, self.unlikely
        free = [
            page
            for page in rows.tolist()
            if page not in self._paused and waiting.until(page) == -math.inf and page not in unlikely
        ]
        if free:
            self.scheduler.resume(free)

    # --- saved state -------------------------------------------------------------------------------------------------

    def columns(self, rows: Ids) -> dict[str, NDArray[Any]]:
        """What a saved row says of pages."""
        failures, times_gone, wait_until = self.waiting.columns(rows.tolist())
        return {
            "paused": self.is_paused(rows),
            "failures": failures,
            "times_gone": times_gone,
            "wait_until": wait_until,
        }

    def fill(self, rows: Ids, columns: Mapping[str, Any], now: float) -> Flags:
        """Take over saved rows of pages; which of them may be picked."""
        paused = np.asarray(columns["paused"], np.bool_)
        self.pause(rows[paused])
        until = np.asarray(columns["wait_until"], np.float64)
        failures, gone = (np.asarray(columns[name], np.int64) for name in ("failures", "times_gone"))
        for j in np.flatnonzero((until > -np.inf) | (failures > 0) | (gone > 0)).tolist():
            self.waiting.put(int(rows[j]), int(failures[j]), int(gone[j]), float(until[j]))
        self.withdraw(rows[until > now])
        return np.asarray(~paused & ~(until > now))

    def saved(self) -> dict[str, Any]:
        """Everything, as plain arrays and values."""
        return {
            "cohorts": self.cohorts.saved(),
            "waiting": self.waiting.saved(),
            "paused": sorted(self._paused),
            "unlikely": self.unlikely.saved(),
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Take over what was saved."""
        self.cohorts.load(saved["cohorts"])
        self.waiting.load(saved["waiting"])
        self._paused = set(saved["paused"])
        self.unlikely.load(saved["unlikely"])

    def _check(self) -> None:
        """Raise AssertionError if cohorts contradict themselves or the scheduler."""
        self.cohorts._check(self.scheduler)
