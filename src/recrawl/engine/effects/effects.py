"""Effects: what changes the expectation about a page beyond its own rate, learned from all outcomes.

Siblings (groups by folder and host) can be disabled, and are used only after they predicted outcomes better. The
calibration of reported probabilities is learned beside them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.beliefs.beliefs import Beliefs
from recrawl.engine.effects.groups import LEVELS, Folders
from recrawl.engine.effects.kernels import (
    ALONE,
    FIRST_WEIGHT,
    SCORE,
    TOGETHER,
    WEIGHT_RATE,
    WEIGHT_SHAPE,
    EffectArrays,
)
from recrawl.schedule.exact import access
from recrawl.schedule.exact.scheduler import Scheduler

if TYPE_CHECKING:
    from recrawl.engine.settings import Settings

Ids = NDArray[np.int64]
Array = NDArray[np.float64]

_FIRST_LEVEL = 2
_TRIED = 4096  # pages that are followed with siblings and without
_PER_FACTOR = 4.0  # calibration that is forgotten when the prior's mean moves by a factor e: all but e^{−4}
_MARGIN = 3.0  # by how much siblings, or another level, must have predicted the outcomes better to be used
_STRENGTH = 2.0  # of the prior of a page's weight: as so many excess changes
_BINS_PER_CYCLE = 12.0  # a cycle is the time in which every page could be crawled once
_PER_PAGE = ("weight", "alternative", "group")
_LEARNED = ("level", "active", "used", "alternative_mean", "prior", "score")
_IN_ROWS = {"used": "heeded", "alternative_mean": "twin_mean", "recent": "lately"}
CALIBRATION = ("recent", "knots")
_WHOLE = (*_LEARNED, *CALIBRATION, "trial", "reliability")


class Effects:
    """Which effects are enabled, what was learned about them, and the arrays that kernels work on."""

    def __init__(self, settings: Settings) -> None:
        self.siblings = settings.siblings and settings.schedule == "freshness"
        self._no_copy_at, self._day = settings.no_copy_at, settings.day
        n_rows = settings.sources + 2
        self.arrays = EffectArrays(
            weight=np.zeros((0, 2)),
            alternative=np.zeros((0, 3)),
            group=np.zeros((0, len(LEVELS)), np.int32),
            members=np.zeros(0, np.int64),
            level=np.tile([*FIRST_WEIGHT, 0.0], (len(LEVELS), 1)),
            active=np.array([_FIRST_LEVEL if self.siblings else -1]),
            used=np.zeros(1, np.bool_),
            alternative_mean=np.ones(1),
            prior=_weight_prior(*FIRST_WEIGHT),
            trial=np.zeros((_TRIED if self.siblings else 0, 2, 2)),
            score=np.zeros(2),
            reliability=np.zeros((10, 3)),
            recent=np.zeros((10, 3)),
            knots=np.tile(np.array([0.0, *np.arange(0.05, 1.0, 0.1), 1.0])[:, None], 2),
            rows=np.zeros((n_rows, 2)),
            heard=np.zeros(n_rows),
        )
        self.folders = Folders()
        self._n = 0

    @property
    def level(self) -> str | None:
        """The level of groups in use; None while siblings are not used."""
        return LEVELS[self.arrays.active[0]] if self.arrays.used[0] else None

    def add(self, urls: list[str], rows: Ids) -> None:
        """New pages."""
        self._n = int(rows[-1]) + 1
        if not self.siblings:
            return
        if self._n > len(self.arrays.group):
            room = max(16, self._n, len(self.arrays.group) * 3 // 2)
            grown = {name: _larger(getattr(self.arrays, name), room) for name in _PER_PAGE}
            self.arrays = self.arrays._replace(**grown)
        self.arrays.weight[rows] = self.arrays.prior
        self.arrays.group[rows] = self.folders.add(urls)
        self._count(rows)

    def _count(self, rows: Ids) -> None:
        """New members of groups."""
        n = len(self.folders.numbers)
        if n > len(self.arrays.members):
            room = max(16, n, len(self.arrays.members) * 3 // 2)
            self.arrays = self.arrays._replace(members=_larger(self.arrays.members, room))
        np.add.at(self.arrays.members, self.arrays.group[rows].ravel(), 1)

    def folder_of(self, rows: Ids) -> Ids:
        """The narrowest group of pages; 0 where groups do not count."""
        return self.arrays.group[rows, -1].astype(np.int64) if self.siblings else np.zeros(len(rows), np.int64)

    def calibrated_fresh(self, computed: Array) -> Array:
        """Calibrated probabilities that copies are fresh, from computed ones."""
        return np.asarray(1.0 - np.interp(1.0 - computed, self.arrays.knots[:, 0], self.arrays.knots[:, 1]))

    def join_groups(self, scheduler: Scheduler, rows: Ids) -> None:
        """Put pages into their groups, with bins of a suitable width; the caller places the pages again."""
        self._respan(scheduler)
        self.join(scheduler, rows)

    def _respan(self, scheduler: Scheduler) -> None:
        """Choose bins that suit the time between crawls; a width that changes by a factor of 2 drops the counts."""
        cycle = 30.0 * self._day if scheduler.budget is None else len(scheduler) / scheduler.budget
        span, before = cycle / _BINS_PER_CYCLE, access.bin_width(scheduler)
        if not 0.5 < span / before < 2.0:
            access.set_bin_width(scheduler, span)

    def join(self, scheduler: Scheduler, rows: Ids) -> None:
        """Put pages into their groups of the level in use; the caller places the pages again.

        A page without a copy is in no group: it is stale whatever its siblings do.
        """
        group = self.arrays.group[rows, self.arrays.active[0]]
        copied = access.last_fetched(scheduler, rows) > self._no_copy_at
        counts = (self.arrays.members[group] > 1) & self.arrays.used[0] & copied
        weight = self.arrays.weight[rows, 0] / self.arrays.weight[rows, 1]
        groups = np.where(counts, group, -1).astype(np.int32)
        access.join_groups(scheduler, rows, groups, weight, len(self.folders.numbers))

    def sibling_rate(self, scheduler: Scheduler, rows: Ids) -> Array:
        """Changes per time that siblings explain: by the mean excess rate of each page's group."""
        if not self.siblings:
            return np.zeros(len(rows))
        group, weight = access.group_numbers(scheduler, rows), access.group_weights(scheduler, rows)
        return np.where(group >= 0, weight * access.excess_rates(scheduler)[group], 0.0)

    def choose_siblings(self, beliefs: Beliefs) -> bool:
        """Use siblings where they predicted the outcomes better than pages alone; whether that has just changed.

        Every page has an alternative belief for the opposite choice, which then replaces its belief.
        """
        if not self.siblings:
            return False
        arrays, before, rows = self.arrays, bool(self.arrays.used[0]), np.arange(self._n)
        arrays.used[0] = arrays.score[TOGETHER] > arrays.score[ALONE] + _MARGIN
        if arrays.used[0] == before:
            return False
        alternative = arrays.alternative[rows]
        arrays.alternative[rows] = beliefs.found(rows, beliefs.belief.prior[0])
        beliefs.belief.prior[0, 1] /= arrays.alternative_mean[0]
        beliefs.find(rows, alternative, beliefs.belief.prior[0])
        arrays.alternative_mean[0] = 1.0 / arrays.alternative_mean[0]
        return True

    def start_alternatives(self, beliefs: Beliefs, rows: Ids) -> None:
        """The alternative beliefs of new pages equal their beliefs."""
        if self.siblings:
            self.arrays.alternative[rows] = beliefs.found(rows, beliefs.belief.prior[0])

    def alone(self, beliefs: Beliefs, rows: Ids) -> Array:
        """(pages, 2): shape and rate of missed rates as the page's own crawls give them, while siblings are used."""
        shape, rate = beliefs.belief.prior[0]
        prior = np.array([shape, rate / self.arrays.alternative_mean[0]])
        found = np.maximum(prior + self.arrays.alternative[rows, :2], 1e-3 * prior)
        return np.where(beliefs.belief.fixed_rate[rows, None], beliefs.belief.gamma[rows, 0], found)

    def alternative_mean(self, beliefs: Beliefs, rows: Ids) -> float:
        """Mean of the alternative prior over that of the prior: as many times more changes are the pages' own there."""
        if not self.siblings:
            return 1.0
        own, alternative = float(beliefs.belief.own[rows].sum()), float(self.arrays.alternative[rows, 2].sum())
        return alternative / own if own > 0.0 and alternative > 0.0 else 1.0

    def refit(self, scheduler: Scheduler, rows: Ids, now: float) -> None:
        """Choose the level, and fit the weight of siblings; the caller places all pages again."""
        if not self.siblings:
            return
        arrays = self.arrays
        best = int(np.argmax(arrays.level[:, SCORE]))
        moved = best != arrays.active[0] and arrays.level[best, SCORE] > arrays.level[arrays.active[0], SCORE] + _MARGIN
        arrays.active[0] = best if moved else arrays.active[0]
        level = arrays.level[arrays.active[0]]
        before = arrays.prior.copy()
        arrays.prior[:] = _weight_prior(level[WEIGHT_SHAPE], level[WEIGHT_RATE])
        weight = arrays.weight[: self._n]
        weight[:] = np.maximum(weight + arrays.prior - before, 1e-3 * arrays.prior)
        self._respan(scheduler)
        access.set_baseline(scheduler, self._baseline(scheduler, rows), now)
        self.join(scheduler, rows)

    def _baseline(self, scheduler: Scheduler, rows: Ids) -> float:
        """The mean excess rate of all members over all bins, including members that were not crawled.

        A mean over crawls would be too high, since crawls go where siblings have changed.
        """
        rates, group = access.excess_rates(scheduler), self.arrays.group[rows, self.arrays.active[0]]
        members = np.bincount(group, minlength=len(rates))[: len(rates)]
        return float(members @ rates / len(rows))

    def discount_calibration(self, before: float, after: float) -> None:
        """Forget the calibration of probabilities that were computed by a prior with another mean."""
        self.arrays.recent[:] *= math.exp(-_PER_FACTOR * abs(math.log(after / before)))

    def move_trials(self, before: Array, after: Array, alternative_mean: float) -> None:
        """Move the beliefs with siblings and without as the prior, or the alternative prior, has moved."""
        trial, other = self.arrays.trial, ALONE if self.arrays.used[0] else TOGETHER
        earlier, later = np.tile(before, (2, 1)), np.tile(after, (2, 1))
        earlier[other, 1] /= self.arrays.alternative_mean[0]
        later[other, 1] /= alternative_mean
        np.copyto(trial, np.maximum(trial + later - earlier, 1e-3 * later), where=trial[..., 1:] > 0)
        self.arrays.alternative_mean[0] = alternative_mean

    def fitted(self, scheduler: Scheduler) -> dict[str, Any]:
        """What was learned of all pages together, ready for JSON, under the names of saved rows."""
        whole = {_IN_ROWS.get(name, name): getattr(self.arrays, name).tolist() for name in _LEARNED}
        return {**whole, "calm": access.baseline(scheduler)}

    def fit(self, scheduler: Scheduler, fitted: Mapping[str, Any]) -> None:
        """Take over what was learned with siblings enabled; recent outcomes of groups are not part of it."""
        for name in _LEARNED:
            saved, mine = np.asarray(fitted.get(_IN_ROWS.get(name, name), ())), getattr(self.arrays, name)
            if saved.size >= mine.size:  # rows of earlier versions have the scores of effects that are gone first
                mine[:] = np.reshape(saved.ravel()[-mine.size :], mine.shape)
        access.set_baseline(scheduler, float(fitted["calm"]), access.now(scheduler))

    def calibration(self) -> dict[str, Any]:
        """The calibration of probabilities, ready for JSON, under the names of saved rows."""
        return {_IN_ROWS.get(name, name): getattr(self.arrays, name).tolist() for name in CALIBRATION}

    def calibrate(self, saved: Mapping[str, Any]) -> None:
        """Take over a calibration."""
        for name in CALIBRATION:
            if _IN_ROWS.get(name, name) in saved:
                getattr(self.arrays, name)[:] = saved[_IN_ROWS.get(name, name)]

    def saved(self) -> dict[str, Any]:
        """Everything, as plain arrays and numbers."""
        columns = {name: getattr(self.arrays, name)[: self._n].copy() for name in _PER_PAGE}
        whole = {name: getattr(self.arrays, name).copy() for name in _WHOLE}
        return {
            **columns,
            **whole,
            "n": self._n,
            "groups": list(self.folders.numbers),
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Take over what was saved."""
        self.arrays = self.arrays._replace(**{name: np.array(saved[name]) for name in (*_PER_PAGE, *_WHOLE)})
        self.folders.numbers = {(int(k), str(key)): number for number, (k, key) in enumerate(saved["groups"])}
        self._n = int(saved["n"])
        self.arrays = self.arrays._replace(members=np.zeros(0, np.int64))
        if len(self.arrays.group):
            self._count(np.arange(self._n))


def _weight_prior(shape: float, rate: float) -> Array:
    return np.array([_STRENGTH * shape / rate, _STRENGTH])


def _larger(column: NDArray[Any], room: int) -> NDArray[Any]:
    larger = np.zeros((room, *column.shape[1:]), column.dtype)
    larger[: len(column)] = column
    return larger
