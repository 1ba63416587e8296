"""Influences: what is believed of pages beyond rates of their own, learned from all outcomes and fitted with the prior.

Siblings (groups by folder and host), what folder and host say of a new page, bursts after a change, how fast the past
is forgotten, and seasons of day and week; each can be left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.beliefs.beliefs import Beliefs, Fit
from recrawl.engine.effects.groups import LEVELS, Folders
from recrawl.engine.effects.kernels import (
    ALONE,
    AS_HEEDED,
    FIRST_WEIGHT,
    KIN,
    SCORE,
    TOGETHER,
    WEIGHT_RATE,
    WEIGHT_SHAPE,
    Parts,
)
from recrawl.engine.effects.seasons import fitted_clock, flat_clock
from recrawl.schedule.exact import access
from recrawl.schedule.exact.access_kernels import HOURS
from recrawl.schedule.exact.scheduler import Scheduler

if TYPE_CHECKING:
    from recrawl.engine.core import Settings

Ids = NDArray[np.int64]
Array = NDArray[np.float64]

_FIRST_LEVEL = 2
TRIED = 4096  # pages on which ways of bursting and forgetting are tried
_BURSTS = ((1.0, 30.0), (3.0, 30.0), (3.0, 7.0), (10.0, 7.0), (10.0, 1.0))  # times the rate, days
_HALF_LIVES = (90.0, 270.0, math.inf)  # days
_PER_FACTOR = 4.0  # how much of what was found is forgotten when the prior's mean moves: by a factor e, all but e^{−4}
_MARGIN = 3.0  # by how much a way must have foretold the outcomes better to be taken
_STRENGTH = 2.0  # of the prior of a page's weight: as so many excess changes
_BINS_PER_CYCLE = 12.0  # a cycle is the time in which every page could be crawled once
_LEANS = (0.0, 0.25, 0.5, 0.75, 1.0)  # powers of what folder and host say
_PER_PAGE = ("weight", "twin", "group", "likely")
_SIBLINGS = ("level", "active", "heeded", "twin_mean", "prior")
_LEARNED = (*_SIBLINGS, "score", "lean_score", "season", "clock", "season_score")
STATED = ("lately", "knots")  # how often changes were found, and what is stated by that
_WHOLE = (*_LEARNED, *STATED, "trial", "reliability")


class Influences:
    """Which parts count, what they have learned, and the arrays that kernels work on."""

    def __init__(self, settings: Settings) -> None:
        fresh = settings.objective == "freshness"
        self.siblings, self.bursts = settings.siblings and fresh, settings.bursts and fresh
        self.seasons = settings.seasons and fresh
        self.drift, self.priors = settings.drift, settings.priors
        self._day, self._half_life = settings.day, settings.half_life * settings.day
        ways = [(0.0, 1.0, settings.half_life, AS_HEEDED)]
        ways += [(0.0, 1.0, half_life, AS_HEEDED) for half_life in _HALF_LIVES] if self.drift else []
        ways += [(boost, fade, settings.half_life, AS_HEEDED) for boost, fade in _BURSTS] if self.bursts else []
        ways += [(0.0, 1.0, settings.half_life, kin) for kin in (ALONE, TOGETHER)] if self.siblings else []
        way = np.array(ways) * [1.0, self._day, self._day, 1.0]
        n_rows = settings.sources + 2
        self.arrays = Parts(
            weight=np.zeros((0, 2)),
            twin=np.zeros((0, 3)),
            group=np.zeros((0, len(LEVELS)), np.int32),
            members=np.zeros(0, np.int64),
            level=np.tile([*FIRST_WEIGHT, 0.0], (len(LEVELS), 1)),
            active=np.array([_FIRST_LEVEL if self.siblings else -1]),
            heeded=np.zeros(1, np.bool_),
            twin_mean=np.ones(1),
            prior=_weight_prior(*FIRST_WEIGHT),
            way=way,
            trial=np.zeros((TRIED if len(ways) > 1 else 0, len(ways), 2)),
            score=np.zeros(len(ways)),
            likely=np.zeros(0),
            lean=np.array(_LEANS if self.priors else ()),
            lean_score=np.zeros(len(_LEANS) if self.priors else 0),
            season=np.zeros((HOURS if self.seasons else 0, 2)),
            clock=flat_clock(),
            hour=np.array([settings.day / 24.0]),
            season_score=np.zeros(2),
            reliability=np.zeros((10, 3)),
            lately=np.zeros((10, 3)),
            knots=np.tile(np.array([0.0, *np.arange(0.05, 1.0, 0.1), 1.0])[:, None], 2),
            rows=np.zeros((n_rows, 2)),
            heard=np.zeros(n_rows),
        )
        self.half_life = self._half_life
        self.folders = Folders()
        self._n = 0

    @property
    def any(self) -> bool:
        """Whether anything counts but a page's own rate."""
        return self.related or self.drift or self.priors

    @property
    def related(self) -> bool:
        """Whether the scheduler must know of it: pages' siblings, bursts or seasons."""
        return self.siblings or self.bursts or self.seasons

    @property
    def level(self) -> str | None:
        """By what siblings are told at present; None while they are not heeded."""
        return LEVELS[self.arrays.active[0]] if self.arrays.heeded[0] else None

    def foretold(self, urls: list[str]) -> Array:
        """How much larger than the population's the prior mean of new pages is: what their folders and hosts say."""
        lean = self.lean
        return self.folders.likely_of(self.folders.find(urls)) ** lean if lean else np.ones(len(urls))

    def enrol(self, urls: list[str], rows: Ids) -> None:
        """New pages."""
        self._n = int(rows[-1]) + 1
        if not (self.siblings or self.priors):
            return
        if self._n > len(self.arrays.group):
            room = max(16, self._n, len(self.arrays.group) * 3 // 2)
            grown = {name: _larger(getattr(self.arrays, name), room) for name in _PER_PAGE}
            self.arrays = self.arrays._replace(**grown)
        self.arrays.weight[rows] = self.arrays.prior
        self.arrays.group[rows] = self.folders.enrol(urls)
        self._count(rows)
        self.arrays.likely[rows] = self.folders.likely_of(self.arrays.group[rows])

    def _count(self, rows: Ids) -> None:
        """New members of groups."""
        n = len(self.folders.numbers)
        if n > len(self.arrays.members):
            room = max(16, n, len(self.arrays.members) * 3 // 2)
            self.arrays = self.arrays._replace(members=_larger(self.arrays.members, room))
        np.add.at(self.arrays.members, self.arrays.group[rows].ravel(), 1)

    def folder_of(self, rows: Ids) -> Ids:
        """The narrowest group of pages; 0 where groups do not count."""
        counts = self.siblings or self.priors
        return self.arrays.group[rows, -1].astype(np.int64) if counts else np.zeros(len(rows), np.int64)

    def stated_fresh(self, reckoned: Array) -> Array:
        """The probabilities of unchanged copies that are stated where these were reckoned."""
        return np.asarray(1.0 - np.interp(1.0 - reckoned, self.arrays.knots[:, 0], self.arrays.knots[:, 1]))

    @property
    def lean(self) -> float:
        """How far folder and host are heeded for pages that little is known of."""
        score = self.arrays.lean_score
        if len(score) == 0 or score.max() <= score[0] + _MARGIN:
            return 0.0
        return float(self.arrays.lean[np.argmax(score)])

    def factors(self, fit: Fit, n: int) -> Array:
        """What folders and hosts say, fitted anew: how much larger than the population's each page's prior mean is."""
        if not self.priors:
            return np.ones(n)
        group = self.arrays.group[:n]
        self.folders.fit(group, fit)
        self.arrays.likely[:n] = self.folders.likely_of(group)
        return np.asarray(self.arrays.likely[:n] ** self.lean)

    def gather(self, scheduler: Scheduler, rows: Ids) -> None:
        """Put pages into their groups; the caller places them anew."""
        self._respan(scheduler)
        self._join(scheduler, rows)

    def _respan(self, scheduler: Scheduler) -> None:
        """Bins of groups that suit the time between crawls; they start anew where that is quite another one."""
        cycle = 30.0 * self._day if scheduler.budget is None else len(scheduler) / scheduler.budget
        span, before = cycle / _BINS_PER_CYCLE, access.bin_width(scheduler)
        if not 0.5 < span / before < 2.0:
            access.set_bin_width(scheduler, span)

    def _join(self, scheduler: Scheduler, rows: Ids) -> None:
        """Put pages into their groups of the level that counts; the caller places them anew."""
        group = self.arrays.group[rows, self.arrays.active[0]]
        counts = (self.arrays.members[group] > 1) & self.arrays.heeded[0]
        weight = self.arrays.weight[rows, 0] / self.arrays.weight[rows, 1]
        groups = np.where(counts, group, -1).astype(np.int32)
        access.join_groups(scheduler, rows, groups, weight, len(self.folders.numbers))

    def sibling_rate(self, scheduler: Scheduler, rows: Ids) -> Array:
        """Changes per time that siblings explain: by the mean pace of each page's group."""
        if not self.siblings:
            return np.zeros(len(rows))
        group, weight = access.group_numbers(scheduler, rows), access.group_weights(scheduler, rows)
        return np.where(group >= 0, weight * access.excess_rates(scheduler)[group], 0.0)

    def choose_siblings(self, beliefs: Beliefs) -> bool:
        """Heed siblings where that has foretold the outcomes better than pages alone; whether that has just changed.

        Of every page it is known what would be believed the other way: its twin, which then takes the belief's place.
        """
        if not self.siblings:
            return False
        parts, before, rows = self.arrays, bool(self.arrays.heeded[0]), np.arange(self._n)
        alone, together = parts.score[parts.way[:, KIN] != AS_HEEDED]
        parts.heeded[0] = together > alone + _MARGIN
        if parts.heeded[0] == before:
            return False
        self._try_twins(beliefs.prior_rows(TRIED), TOGETHER if before else ALONE)
        twin = parts.twin[rows]
        parts.twin[rows] = beliefs.found(rows, beliefs.belief.prior[0])
        beliefs.belief.prior[0, 1] /= parts.twin_mean[0]
        beliefs.find(rows, twin, beliefs.belief.prior[0])
        parts.twin_mean[0] = 1.0 / parts.twin_mean[0]
        return True

    def _try_twins(self, prior: Array, before: float) -> None:
        """Let ways that heeded siblings, or did not, know what has been found the other way."""
        trial, kin = self.arrays.trial[: len(prior)], self.arrays.way[:, KIN]
        more = trial[:, (kin != before) & (kin != AS_HEEDED)] - trial[:, kin == before]
        begun = (trial[..., 1:] > 0) & (kin == AS_HEEDED)[:, None]
        np.copyto(trial, np.maximum(trial + more, 1e-3 * prior[:, None]), where=begun)

    def start_twins(self, beliefs: Beliefs, rows: Ids) -> None:
        """New pages are believed to be the same both ways."""
        if self.siblings:
            self.arrays.twin[rows] = beliefs.found(rows, beliefs.belief.prior[0])

    def twin_mean(self, beliefs: Beliefs, rows: Ids) -> float:
        """How much larger the mean of the twins' prior is: as many times more changes are the pages' own there."""
        if not self.siblings:
            return 1.0
        own, twin = float(beliefs.belief.own[rows].sum()), float(self.arrays.twin[rows, 2].sum())
        return twin / own if own > 0.0 and twin > 0.0 else 1.0

    def refit(self, scheduler: Scheduler, rows: Ids, now: float) -> None:
        """Choose level, bursts and forgetting anew, and fit the weight of siblings; all pages are placed anew then."""
        self._choose_ways(scheduler)
        self._choose_season(scheduler)
        if not self.siblings:
            return
        parts = self.arrays
        best = int(np.argmax(parts.level[:, SCORE]))
        moved = best != parts.active[0] and parts.level[best, SCORE] > parts.level[parts.active[0], SCORE] + _MARGIN
        parts.active[0] = best if moved else parts.active[0]
        level = parts.level[parts.active[0]]
        before = parts.prior.copy()
        parts.prior[:] = _weight_prior(level[WEIGHT_SHAPE], level[WEIGHT_RATE])
        weight = parts.weight[: self._n]
        weight[:] = np.maximum(weight + parts.prior - before, 1e-3 * parts.prior)
        self._respan(scheduler)
        access.set_baseline(scheduler, self._calm(scheduler, rows), now)
        self._join(scheduler, rows)

    def _calm(self, scheduler: Scheduler, rows: Ids) -> float:
        """The mean pace of all members over all bins: also of those that nobody looked at, as far as is believed.

        A mean over crawls would be too high, since those go where siblings have changed.
        """
        rates, group = access.excess_rates(scheduler), self.arrays.group[rows, self.arrays.active[0]]
        members = np.bincount(group, minlength=len(rates))[: len(rates)]
        return float(members @ rates / len(rows))

    def _choose_ways(self, scheduler: Scheduler) -> None:
        parts = self.arrays
        if len(parts.score) == 1:
            return
        as_heeded = parts.way[:, KIN] == AS_HEEDED
        forgets = np.flatnonzero((parts.way[:, 0] == 0.0) & as_heeded)
        best = forgets[np.argmax(parts.score[forgets])]
        self.half_life = float(parts.way[best if parts.score[best] > parts.score[0] + _MARGIN else 0, 2])
        if self.bursts:
            hurries = np.flatnonzero(((parts.way[:, 0] > 0.0) & as_heeded) | (np.arange(len(parts.way)) == 0))
            best = hurries[np.argmax(parts.score[hurries])]
            chosen = parts.way[best if parts.score[best] > parts.score[0] + _MARGIN else 0]
            access.set_bursts(scheduler, float(chosen[0]), float(chosen[1]))

    def _choose_season(self, scheduler: Scheduler) -> None:
        parts = self.arrays
        if not self.seasons:
            return
        parts.clock[:] = fitted_clock(parts.season)
        better = parts.season_score[1] > parts.season_score[0] + _MARGIN
        access.set_season(scheduler, parts.clock if better else None, float(parts.hour[0]))

    def forget_stated(self, before: float, after: float) -> None:
        """What was reckoned by a prior with quite another mean says little of what is reckoned now."""
        self.arrays.lately[:] *= math.exp(-_PER_FACTOR * abs(math.log(after / before)))

    def move_trials(self, before: Array, after: Array, twin_mean: float) -> None:
        """Let the beliefs on trial go the way each page's prior has gone, and that of the twins."""
        trial, n = self.arrays.trial[: len(before)], len(self.arrays.trial)
        other = (self.arrays.way[:, KIN] == (ALONE if self.arrays.heeded[0] else TOGETHER))[:, None]
        earlier, later = (
            prior[:n, None] / np.where(other, [1.0, factor], 1.0)
            for prior, factor in ((before, float(self.arrays.twin_mean[0])), (after, twin_mean))
        )
        np.copyto(trial, np.maximum(trial + later - earlier, 1e-3 * later), where=trial[..., 1:] > 0)
        self.arrays.twin_mean[0] = twin_mean

    def fitted(self, scheduler: Scheduler) -> dict[str, Any]:
        """What was learned of all pages together, ready for JSON."""
        whole = {name: getattr(self.arrays, name).tolist() for name in _LEARNED}
        return {**whole, "half_life": self.half_life, **access.effect_settings(scheduler)}

    def fit(self, scheduler: Scheduler, fitted: Mapping[str, Any]) -> None:
        """Take over what was learned; what groups did lately is not part of it."""
        for name in fitted.keys() & _LEARNED:
            getattr(self.arrays, name)[:] = np.reshape(fitted[name], getattr(self.arrays, name).shape)
        self.half_life = float(fitted["half_life"])
        access.set_effect_settings(scheduler, fitted)
        if fitted["hour"]:
            access.set_season(scheduler, self.arrays.clock, float(fitted["hour"]))

    def saved(self) -> dict[str, Any]:
        """Everything, as plain arrays and numbers."""
        columns = {name: getattr(self.arrays, name)[: self._n].copy() for name in _PER_PAGE}
        whole = {name: getattr(self.arrays, name).copy() for name in _WHOLE}
        return {
            **columns,
            **whole,
            "n": self._n,
            "half_life": self.half_life,
            "groups": list(self.folders.numbers),
            "likely_of": self.folders.likely.copy(),
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Take over what was saved."""
        self.arrays = self.arrays._replace(**{name: np.array(saved[name]) for name in (*_PER_PAGE, *_WHOLE)})
        self.half_life = float(saved["half_life"])
        self.folders.numbers = {(int(k), str(key)): number for number, (k, key) in enumerate(saved["groups"])}
        self.folders.likely = np.array(saved["likely_of"])
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
