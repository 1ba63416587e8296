"""FolderClocks: one clock per folder, learned from the crawls of its pages and published to the scheduler."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.plain import plain
from recrawl.engine.clocks.arrays import LEVELS, NEVER, REAL_TIME, TERMS, Clocks
from recrawl.engine.clocks.folders import FolderNames
from recrawl.engine.clocks.kernels import bin_of, fit_weights
from recrawl.engine.clocks.publish_kernels import publish_all, reinsert_all
from recrawl.engine.clocks.shared import OtherClocks, add_others, no_others, own_lessons
from recrawl.engine.clocks.some_kernels import publish_some
from recrawl.engine.outcomes.reinsert_kernels import reinsert_some
from recrawl.schedule.exact import access
from recrawl.schedule.exact.access_kernels import BINS

if TYPE_CHECKING:
    from recrawl.engine.outcomes.lessons import ClockLessons, Lessons
    from recrawl.engine.settings import Settings
    from recrawl.schedule.exact.scheduler import Scheduler

Ids = NDArray[np.int64]
Array = NDArray[np.float64]

_BIN = 0.5  # days, where that is neither too wide nor too narrow for the crawls
_WIDEST, _NARROWEST = 1.0 / 20.0, 1.0 / 40.0  # of a cycle, the time in which every page could be crawled once
_MEMORY = 2.5  # bins
_KEPT = 0.8  # of what is known of weights after each fit: it came with rates that were known less well
_HELD_BY = 30.0  # the weights of levels are held to the first ones as by so many changes
_LEARNED = ("weight", "slope", "curvature")
_RINGS = ("found", "expected", "newest")


class FolderClocks:
    """Which clock each page follows, what was found and expected in groups, and what was published last."""

    def __init__(self, settings: Settings) -> None:
        self.enabled = settings.siblings
        self._day, self._no_copy_at = settings.day, settings.no_copy_at
        self.arrays = Clocks(
            clock=np.zeros(0, np.int32),
            group=np.zeros((0, len(LEVELS)), np.int32),
            found=np.zeros((0, BINS)),
            expected=np.zeros((0, BINS)),
            newest=np.zeros(0, np.int64),
            usual=np.zeros(2),
            weight=np.array([REAL_TIME, *[(1.0 - REAL_TIME) / (TERMS - 1)] * (TERMS - 1)]),
            slope=np.zeros(TERMS),
            curvature=np.zeros((TERMS, TERMS)),
            scale=np.array([1.0, _MEMORY]) * _BIN * settings.day,
            room=np.zeros((TERMS + 3, BINS)),
        )
        self._clocks: dict[str, int] = {}
        self._groups: dict[tuple[int, str], int] = {(0, ""): 0}
        self._published = NEVER  # the bin in which all clocks were published last
        self._others: OtherClocks | None = None  # what engines of other pages have added
        self._elsewhere = (0, 0.0)  # pages and crawls per time of those
        self._n = 0

    def __len__(self) -> int:
        return len(self._clocks)

    def add(self, folders: FolderNames, rows: Ids) -> None:
        """New pages."""
        self._n = int(rows[-1]) + 1
        if self._n > len(self.arrays.clock):
            self.arrays = self.arrays._replace(clock=_larger(self.arrays.clock, self._n))
        numbers = [self._clock(names) for names in folders.names]
        self.arrays.clock[rows] = np.array(numbers, np.int32)[folders.place]

    def _clock(self, names: tuple[str, str, str, str]) -> int:
        """The number of a folder's clock."""
        number = self._clocks.get(names[-1])
        if number is not None:
            return number
        number = self._clocks[names[-1]] = len(self._clocks)
        levels = ("", names[0], names[2], names[3])
        groups = [self._groups.setdefault((k, name), len(self._groups)) for k, name in enumerate(levels)]
        if number >= len(self.arrays.group):
            self.arrays = self.arrays._replace(group=_larger(self.arrays.group, number + 1))
        n = len(self.arrays.newest)
        if len(self._groups) > n:
            rings = {name: _larger(getattr(self.arrays, name), len(self._groups)) for name in _RINGS}
            rings["newest"][n:] = NEVER
            self.arrays = self.arrays._replace(**rings)
        self.arrays.group[number] = groups
        return number

    def folder_of(self, rows: Ids) -> Ids:
        """The clock of pages, as a number."""
        return self.arrays.clock[rows].astype(np.int64)

    def join(self, scheduler: Scheduler, rows: Ids) -> bool:
        """Let pages follow their clocks; the caller places them again. Pages without a copy are stale by any clock.

        Whether all clocks have started again with other bins: then all pages must join and be placed again.
        """
        changed = self.respan(scheduler)
        copied = access.last_fetched(scheduler, rows) > self._no_copy_at
        clocks = np.where(copied, self.arrays.clock[rows], -1).astype(np.int32)
        access.join_clocks(scheduler, rows, clocks, len(self._clocks))
        return changed

    def respan(self, scheduler: Scheduler) -> bool:
        """Choose bins that suit the time between crawls; a width that changes by a factor of 2 drops the counts."""
        if not self.enabled:
            return False
        pages, budget = len(scheduler) + self._elsewhere[0], (scheduler.budget or 0.0) + self._elsewhere[1]
        cycle = 30.0 * self._day if not scheduler.budget else max(pages, 1) / budget
        span = min(max(_BIN * self._day, _NARROWEST * cycle), _WIDEST * cycle)
        if 0.5 < span / access.bin_width(scheduler) < 2.0:
            return False
        self.arrays.scale[:] = span, _MEMORY * span
        access.set_clock_bins(scheduler, *map(float, self.arrays.scale))
        self.arrays.found[:] = self.arrays.expected[:] = 0.0
        self.arrays.newest[:] = self._published = NEVER
        if self._others is not None:
            self._others = no_others()
        return True

    def due(self, now: float) -> bool:
        """Whether a bin has ended since all clocks were published."""
        return self.enabled and math.floor(now / self.arrays.scale.item(0)) > self._published

    @property
    def last_published(self) -> int:
        """The bin in which all clocks were published last; beyond all bins where clocks are not used."""
        return self._published if self.enabled else -NEVER

    def publish(self, scheduler: Scheduler, now: float, *, reinsert: bool = True) -> None:
        """Publish all clocks; the caller places all pages again, unless those whose values can have risen are."""
        if not self.enabled or not self._clocks:
            return
        self._published = int(plain(bin_of)(self.arrays, now))
        publish_all(access.header(scheduler), self.arrays, len(self._clocks), now)
        if reinsert:
            access.repeat(scheduler, lambda header: reinsert_all(header, len(self._clocks), now))

    def publish_part(self, scheduler: Scheduler, now: float, first: int, last: int) -> None:
        """Publish the clocks from the first to before the last, and reinsert the pages whose values can have risen."""
        if not self.enabled or not self._clocks:
            return
        if first == 0:
            self._published = int(plain(bin_of)(self.arrays, now))
        some = np.arange(first, min(last, len(self._clocks)))
        publish_some(access.header(scheduler), self.arrays, some, now)
        access.repeat(scheduler, lambda header: reinsert_some(header, some, now))

    def fit(self) -> None:
        """Fit the weights of the levels; the caller publishes the clocks."""
        others = self._others
        if others is None:
            fit_weights(self.arrays, _HELD_BY)
        else:
            slope, curvature = self.arrays.slope + others.slope, self.arrays.curvature + others.curvature
            fit_weights(self.arrays._replace(slope=slope, curvature=curvature), _HELD_BY)
        self.arrays.slope[:] *= _KEPT
        self.arrays.curvature[:] *= _KEPT

    def lessons(self) -> ClockLessons:
        """What the engine's own pages teach about the clock of all pages."""
        return own_lessons(self.arrays, self._others or no_others())

    def learn_from(self, others: Sequence[Lessons]) -> None:
        """Take the lessons of engines of other pages, in place of those taken before."""
        if self.enabled:
            self._elsewhere = (sum(one.pages for one in others), sum(one.budget for one in others))
            self._others = add_others(self.arrays, self._others or no_others(), [one.clocks for one in others])

    def fitted(self) -> dict[str, Any]:
        """What was learned of all pages together, ready for JSON."""
        return {name: getattr(self.arrays, name).tolist() for name in _LEARNED}

    def take(self, fitted: Mapping[str, Any]) -> None:
        """Take over what was learned; recent outcomes of groups are not part of it."""
        fitted = _with_likelihood(fitted)
        for name in _LEARNED:
            if len(fitted.get(name, ())) == TERMS:
                getattr(self.arrays, name)[:] = fitted[name]

    def saved(self) -> dict[str, Any]:
        """Everything, as plain numbers and the arrays themselves."""
        arrays = {name: array for name, array in self.arrays._asdict().items() if name != "room"}
        arrays |= {"clock": arrays["clock"][: self._n], "group": arrays["group"][: len(self._clocks)]}
        rings = {name: arrays[name][: len(self._groups)] for name in _RINGS}
        names: dict[str, Any] = {"clocks": list(self._clocks), "groups": [name for _, name in self._groups]}
        names |= {"levels": np.array([level for level, _ in self._groups], np.int8), "published": self._published}
        others = {} if self._others is None else {"others": asdict(self._others), "elsewhere": self._elsewhere}
        return {**arrays, **rings, **names, **others, "n": self._n}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Take over what was saved."""
        self.arrays = Clocks(**{name: np.array(saved[name]) for name in Clocks._fields[:-1]}, room=self.arrays.room)
        self._clocks = {str(name): k for k, name in enumerate(saved["clocks"])}
        groups = zip(saved["levels"].tolist(), saved["groups"], strict=True)
        self._groups = {group: k for k, group in enumerate(groups)}
        self._published, self._n = int(saved["published"]), int(saved["n"])
        if "others" in saved:
            self._others, self._elsewhere = OtherClocks(**saved["others"]), tuple(saved["elsewhere"])


def _with_likelihood(saved: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was saved with the likelihood of weights, in place of the credit of terms that earlier versions saved.

    A term that was credited with n changes and would have expected e alone has the likelihood n·ln w − e·w.
    """
    if "slope" in saved or "credit" not in saved:
        return saved
    weight, credit, exposure = (np.array(saved[name], np.float64) for name in ("weight", "credit", "exposure"))
    return {**saved, "slope": 2.0 * credit / weight - exposure, "curvature": np.diag(credit / weight**2)}


def _larger(column: NDArray[Any], n: int) -> NDArray[Any]:
    out = np.zeros((max(16, n, len(column) * 3 // 2), *column.shape[1:]), column.dtype)
    out[: len(column)] = column
    return out
