"""Bandit: a policy that tries other policies, one per step, and comes to prefer those whose crawls find changes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError, PolicyError, unknown
from recrawl.schedule.bandits.arms import Arms, no_ids
from recrawl.schedule.bandits.exp3 import Exp3
from recrawl.schedule.bandits.rewards import Account, Accounts, Earned
from recrawl.schedule.bandits.view import BanditView, columns_of, view_of
from recrawl.schedule.outcomes import Outcomes, ended_of
from recrawl.schedule.rates.kernels import accept
from recrawl.schedule.table import (
    Ids,
    Table,
    column_of,
    count_of,
    generator_of,
    horizon,
    ids_of,
    options_of,
    positive,
)
from recrawl.schedule.table import time_of as instant

_ALIVE, _GONE, _REMOVED = 0, 1, 2
_SAVED = ("start", "length", "lease", "reward", "now", "step", "n_begun")
REWARDS = ("changed", "gained")
_COUNTERS = (
    "picked",
    "recorded",
    "outdated",
    "released",
    "leases_ended",
    "steps",
    "rewards",
    "arm_failures",
    "time_back",
)


class BanditOptions(TypedDict, total=False):
    """Options of a bandit that few callers need: of its rule (`Exp3`), its first time, leases and random draws."""

    exploration: float
    share: float
    start: float
    lease: float
    rng: np.random.Generator | None


_OPTIONS: dict[str, Any] = {"exploration": 0.1, "share": 0.003, "start": 0.0, "lease": 300.0, "rng": None}


class Bandit:
    """A ``Policy`` that draws one of several policies at every step and lets it pick (Han et al. 2020, Algorithm 1).

    ``arms`` are policies by name that hold the same pages (usually none yet); from then on pages, crawls and signals
    are given to the bandit, which passes them to all arms. The reward of a step is Σ importance·[changed] /
    Σ importance over the crawls that its arm picked and whose outcome was recorded with ``changed``, learned when the
    last of them has ended; with ``reward="gained"`` the sum below the line is that of as many pages of the largest
    importance, so that an arm does not earn more by crawling what matters less. An arm whose ``pick`` raises is
    passed over, rests for 1, 2, 4 … 64 steps, and is reported; one that raises in a call that the others take knows
    less than they from then on, and is left out for good.

    >>> from recrawl import Pages
    >>> from recrawl.schedule import RatePolicy
    >>> arms = {rule: RatePolicy(budget=2.0, rates=rule) for rule in ("uniform", "change-weighted")}
    >>> bandit = Bandit(arms, step=1.0, rng=np.random.default_rng(1))
    >>> ids = bandit.add(Pages([0.1, 0.9]), 0.0)
    >>> bandit.record(bandit.pick(0.0, 1), 0.0, changed=[True])
    >>> bandit.rows()["probability"].tolist()  # learned from when the step is over
    [0.5, 0.5]
    """

    def __init__(
        self,
        arms: Mapping[str, Any],
        *,
        step: float,
        rule: str = "exp3",
        reward: str = "changed",
        **options: Unpack[BanditOptions],
    ) -> None:
        chosen = options_of(_OPTIONS, options)
        self._arms = Arms(arms)
        self._exp3 = Exp3(len(self._arms), rule, exploration=chosen["exploration"], share=chosen["share"])
        self._length = positive("step", step)
        self._lease = positive("lease", chosen["lease"], endless=True)
        self._start = self._now = instant(chosen["start"])
        self._rng = np.random.default_rng(0) if chosen["rng"] is None else chosen["rng"]
        self._table = Table(importance=float, status=np.uint8, crawled_at=float)
        self._leased: dict[int, tuple[float, int]] = {}  # page -> end of its lease, step; in the order of the ends
        if reward not in REWARDS:
            raise unknown("reward", reward, REWARDS)
        self._reward = reward
        self._accounts, self._step, self._n_begun = Accounts(self._most if reward == "gained" else None), -1, 0
        self._stats = dict.fromkeys(_COUNTERS, 0)

    def add(self, pages: Any, now: float, *, fetched_at: ArrayLike | None = None, **columns: Any) -> Ids:
        """New pages for all arms; ``impression``, ``crawl_rate`` go to the arms that know them."""
        at = instant(now)
        fetched = column_of("fetched_at", fetched_at, len(pages), -math.inf)
        given = {} if fetched_at is None else {"fetched_at": fetched_at}
        ids: Ids = self._arms.call_all(self._step, "add", pages, max(at, self._now), **given, **columns)
        if not np.array_equal(ids, np.arange(len(self._table), len(self._table) + len(ids))):
            raise ParameterError("arms: they held pages before the bandit did")
        self._advance(at)
        importance = columns.get("importance", getattr(pages, "importance", 1.0))
        self._table.append(len(ids), importance=importance, crawled_at=np.minimum(fetched, self._now))
        return ids

    def pick(self, now: float, n: int) -> Ids:
        """What the arm of this step picks; a page that another arm has under way is not picked again."""
        n, at = count_of(n), instant(now)
        self._advance(at)
        if n == 0:
            return no_ids()
        if self._accounts.current is None or self._step_at(self._now) != self._step:
            self._step = self._step_at(self._now)
            self._draw()
        ids = self._take(n)
        number, until = self._accounts.pick(len(ids)), self._now + self._lease
        self._leased.update(dict.fromkeys(ids.tolist(), (until, number)))
        self._stats["picked"] += len(ids)
        return ids

    def record(self, ids: ArrayLike, now: float, **outcomes: Unpack[Outcomes]) -> None:
        """Crawls that ended. Without ``changed``, or failed, they count for no reward."""
        rows, at = self._ids(ids, repeated=True), instant(now)
        ended = ended_of(outcomes, len(rows))
        missed, began = ended.failed, np.minimum(ended.as_of, max(at, self._now))
        self._advance(at)
        given = {name: value for name, value in outcomes.items() if value is not None}
        if "as_of" in given:
            given["as_of"] = began
        self._arms.call_all(self._step, "record", rows, self._now, **given)
        valid = accept(self._table["crawled_at"], rows, began, missed)
        self._stats["recorded"] += int(np.count_nonzero(valid))
        self._stats["outdated"] += int(np.count_nonzero(~valid))
        self._table["status"][rows[valid & ended.gone]] = _GONE
        self._end(rows[valid], ~missed[valid] & ("changed" in given), ended.changed[valid])

    def release(self, ids: ArrayLike, now: float) -> None:
        """Leased crawls that did not happen; pages that are not leased stay as they are."""
        rows, at = self._ids(ids), instant(now)
        self._advance(at)
        held = np.array([page for page in rows.tolist() if page in self._leased], np.int64)
        self._arms.call_all(self._step, "release", held, self._now)
        self._stats["released"] += len(held)
        self._end(held)

    def signal(self, ids: ArrayLike, now: float, *, source: int = 0, changed_at: ArrayLike | None = None) -> None:
        """Change signals, for all arms."""
        rows, at = self._ids(ids, repeated=True), instant(now)
        self._arms.call_all(self._step, "signal", rows, max(at, self._now), source=source, changed_at=changed_at)
        self._advance(at)

    def update(self, ids: ArrayLike, **columns: ArrayLike) -> None:
        """New parameters, for all arms."""
        rows = self._ids(ids)
        if len(rows) == 0:
            return
        self._arms.call_all(self._step, "update", rows, **columns)
        if "importance" in columns:
            self._table["importance"][rows] = columns["importance"]

    def remove(self, ids: ArrayLike) -> None:
        """Pages that are no longer crawled."""
        rows = self._ids(ids)
        self._arms.call_all(self._step, "remove", rows)
        self._table["status"][rows] = _REMOVED
        self._end(rows)

    def next_at(self, now: float) -> float:
        """When the arm of this step can next pick, a lease ends or the next step begins, at the earliest."""
        at = max(instant(now), self._now)
        current = self._accounts.current
        if current is None or self._step_at(at) != self._step:
            return at
        ends = self._start + (self._step + 1) * self._length
        lease = next(iter(self._leased.values()))[0] if self._leased else math.inf
        try:
            answer = float(self._arms.all[current.arm].policy.next_at(at))
        except Exception:  # pick will find out, and report it
            answer = at
        return max(at, min(answer, ends, lease))

    @property
    def budget(self) -> float | None:
        """Crawls per time of the first arm that has a budget; setting it sets all."""
        found = [arm.policy.budget for arm in self._arms.all if getattr(arm.policy, "budget", None) is not None]
        return found[0] if found else None

    @budget.setter
    def budget(self, budget: float) -> None:
        number = positive("budget", budget)
        for arm in self._arms.all:
            if hasattr(arm.policy, "budget"):
                arm.policy.budget = number

    @property
    def stats(self) -> dict[str, int]:
        """Counts of calls, by kind."""
        return {**self._stats, "arm_failures": sum(arm.failures for arm in self._arms.all)}

    def rows(self) -> dict[str, Any]:
        """A row per arm: probability now, weight, steps learned from, mean reward, failures, whether it is usable."""
        return columns_of(self._arms, self._exp3, max(self._step, 0))

    def explain(self) -> BanditView:
        """The same, with the arm in use, to be read."""
        current = self._accounts.current
        return view_of(self.rows(), self._exp3, None if current is None else self._arms.all[current.arm].name)

    def state(self) -> dict[str, Any]:
        """Settings, clock, probabilities, rewards under way, pages, and the state of every arm."""
        ends = list(self._leased.values())
        return {
            **{name: getattr(self, f"_{name}") for name in _SAVED},
            "stats": dict(self._stats),
            "rng": dict(self._rng.bit_generator.state),
            "exp3": self._exp3.state(),
            "accounts": self._accounts.state(),
            "pages": self._table.copy(),
            "leased": np.array(list(self._leased), np.int64),
            "lease_ends": np.array([end for end, _ in ends], np.float64),
            "lease_step": np.array([step for _, step in ends], np.int64),
            "arms": self._arms.state(),
        }

    @classmethod
    def restore(cls, state: dict[str, Any], kinds: Mapping[str, Any] | None = None) -> Self:
        """The bandit whose state was saved; ``kinds`` names the classes of arms that are not of this package."""
        arms = Arms.restore(state["arms"], kinds or {})
        policies = {arm.name: arm.policy for arm in arms.all}
        saved = {name: state["exp3"][name] for name in ("rule", "exploration", "share")}
        saved |= {name: state[name] for name in ("start", "lease", "reward")}
        bandit = cls(policies, step=state["length"], **saved)
        rng = generator_of(state["rng"])
        assert rng is not None
        bandit._exp3, bandit._rng, bandit._stats = Exp3.restore(state["exp3"]), rng, dict(state["stats"])
        bandit._now, bandit._step, bandit._n_begun = state["now"], state["step"], state["n_begun"]
        bandit._accounts.load(state["accounts"])
        bandit._table.load(state["pages"])
        ends = zip(state["lease_ends"].tolist(), state["lease_step"].tolist(), strict=True)
        bandit._leased = dict(zip(state["leased"].tolist(), ends, strict=True))
        bandit._arms = arms
        return bandit

    def _most(self, n: int) -> float:
        """The importance of the n most important pages."""
        alive = self._table["importance"][self._table["status"] == _ALIVE]
        return float(alive.sum() if n >= len(alive) else np.partition(alive, -n)[-n:].sum()) if n else 0.0

    def _ids(self, ids: ArrayLike, *, repeated: bool = False) -> Ids:
        return ids_of(ids, self._table["status"], _REMOVED, repeated=repeated)

    def _step_at(self, now: float) -> int:
        return math.floor((horizon(now) - self._start) / self._length)

    def _advance(self, now: float) -> None:
        self._stats["time_back"] += now < self._now
        self._now = max(now, self._now)
        ended = []
        for page, (end, _) in self._leased.items():
            if end > horizon(self._now):
                break
            ended.append(page)
        if ended:
            rows = np.array(ended, np.int64)
            self._arms.call_all(self._step, "release", rows, self._now)
            self._stats["leases_ended"] += len(ended)
            self._end(rows)

    def _draw(self, tried: NDArray[np.bool_] | None = None) -> None:
        """Close the step before, learn from it, and draw the arm of this one among those not tried in it."""
        self._learn(self._accounts.close())
        usable = self._arms.usable(self._step)
        if tried is not None:
            usable = np.array([not arm.dropped for arm in self._arms.all]) & ~tried
            if not usable.any():
                raise PolicyError(f"every arm failed: {self._arms.report()}")
        arm, probability = self._exp3.draw(self._rng, usable)
        self._accounts.begin(Account(self._n_begun, arm, probability, int(usable.sum())))
        self._n_begun += 1
        self._stats["steps"] += tried is None

    def _take(self, n: int) -> Ids:
        """n pages of the arm in use, or of another if it fails."""
        tried = np.zeros(len(self._arms), np.bool_)
        while True:
            assert self._accounts.current is not None
            at = self._accounts.current.arm
            ok, ids = self._arms.ask(at, self._step, lambda policy: self._pick_free(policy, n))
            if ok:
                self._arms.all[at].in_a_row = 0
                return np.asarray(ids, np.int64)
            tried[at] = True
            self._draw(tried)

    def _pick_free(self, policy: Any, n: int) -> Ids:
        """n pages of an arm that no other arm has under way; those that one has stay leased until that crawl ends."""
        free: list[int] = []
        while len(free) < n:
            ids = ids_of(policy.pick(self._now, n - len(free)), self._table["status"], _REMOVED).tolist()
            free += [page for page in ids if page not in self._leased]
            if len(ids) == 0 or len(free) >= n:
                break
        return np.array(free, np.int64)

    def _end(self, rows: Ids, known: NDArray[np.bool_] | None = None, changed: NDArray[np.bool_] | None = None) -> None:
        """Crawls that are no longer under way, and what they found."""
        steps = np.array([self._leased.pop(page, (0.0, -1))[1] for page in rows.tolist()], np.int64)
        ours = np.flatnonzero(steps >= 0)
        if len(ours):
            seen = np.zeros(len(ours), np.bool_) if known is None else known[ours]
            found = np.zeros(len(ours)) if changed is None else changed[ours].astype(np.float64)
            self._learn(self._accounts.end(steps[ours], seen, self._table["importance"][rows[ours]], found))

    def _learn(self, earned: list[Earned]) -> None:
        for arm, reward, probability, n_usable in earned:
            self._exp3.learn(arm, reward, probability, n_usable)
            self._stats["rewards"] += 1
