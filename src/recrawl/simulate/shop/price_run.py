"""Run a decider against the days of a shop: twelve steps a day, and who saw the right price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from recrawl.model.pages import Pages
from recrawl.schedule.bandits.exp3 import Exp3
from recrawl.schedule.policy import Policy
from recrawl.simulate.shop import price_kernels as kernels
from recrawl.simulate.shop.price_days import STEPS, Plans, PriceDay

Array = NDArray[np.float64]
Ids = NDArray[np.int64]
_NONE = np.int32(-1)  # no copy
_LONG_AGO = -1e5  # days: when copies that do not exist count as fetched


@dataclass
class Copies:
    """Live prices and copies of them; an offer that was never crawled has none, which is wrong."""

    live: NDArray[np.int32]
    local: NDArray[np.int32]


class Decider(Protocol):
    """Chooses offers at every step, and learns which copies were not right."""

    def begin_day(self, at: int) -> None:
        """The at-th day begins."""
        ...

    def pick(self, now: float, copies: Copies) -> Ids:
        """Offers to crawl now; the copies are there for deciders that keep a record of what they miss."""
        ...

    def learn(self, ids: Ids, now: float, changed: NDArray[np.bool_]) -> None:
        """What the crawls found."""
        ...


@dataclass
class PriceRun:
    """Result of a run: a figure per day."""

    clicks_right: Array  # share of clicks that saw the right price; nan on days without
    offers_right: Array  # share of copies that are right as the day begins
    crawls: NDArray[np.int64]


def run_prices(days: list[PriceDay], decider: Decider, *, copied: bool = False) -> PriceRun:
    """Run a decider over the days.

    At the first instant of each of the ``STEPS`` steps its offers are crawled; clicks of an hour see the price that is
    live in the middle of that hour. Copies exist from the start only if ``copied``.
    """
    room = days[-1].n
    copies = Copies(np.full(room, _NONE), np.full(room, np.int32(-2)))
    seen, right, crawls = np.full(len(days), np.nan), np.empty(len(days)), np.zeros(len(days), np.int64)
    for at, day in enumerate(days):
        copies.live[: day.n] = day.source.price
        if copied and at == 0:
            copies.local[: day.n] = copies.live[: day.n]
        right[at] = kernels.offers_right(copies.live, copies.local, day.n) / day.n
        decider.begin_day(at)
        crawls[at], good, all_clicks = _run_day(day, decider, copies)
        if all_clicks:
            seen[at] = good / all_clicks
    return PriceRun(seen, right, crawls)


def _run_day(day: PriceDay, decider: Decider, copies: Copies) -> tuple[int, int, int]:
    begin, offer, count = day.clicks
    place = n_crawls = good = 0
    for step in range(STEPS):
        now = day.day + step / STEPS
        place = kernels.move(copies.live, *day.changes, place, now)
        ids = decider.pick(now, copies)
        changed = np.empty(len(ids), np.bool_)
        kernels.crawl(ids, copies.live, copies.local, changed)
        decider.learn(ids, now, changed)
        n_crawls += len(ids)
        for hour in range(24 * step // STEPS, 24 * (step + 1) // STEPS):
            place = kernels.move(copies.live, *day.changes, place, day.day + (hour + 0.5) / 24)
            of = slice(begin[hour], begin[hour + 1])
            good += kernels.clicks_right(offer[of], count[of], copies.live, copies.local)
    return n_crawls, good, int(count.sum())


@dataclass
class ByStrategy:
    """Crawls with the probabilities of one strategy."""

    plans: Plans
    strategy: str
    rng: np.random.Generator
    _probability: Array = field(default_factory=lambda: np.zeros(0))

    def begin_day(self, at: int) -> None:
        """Take the day's probabilities."""
        self._probability = self.plans.of(self.strategy, at)

    def pick(self, now: float, copies: Copies) -> Ids:
        """Draw."""
        return _sample(self._probability, self.rng)

    def learn(self, ids: Ids, now: float, changed: NDArray[np.bool_]) -> None:
        """Nothing is learned."""


@dataclass
class ByBandit:
    """One strategy per step, drawn by a bandit; what it drew with, and, if watched, what every arm would earn."""

    plans: Plans
    arms: tuple[str, ...]
    exp3: Exp3
    rng: np.random.Generator
    gained: bool = False  # the reward of ``Bandit`` with reward="gained"
    watch: bool = False
    probability: list[Array] = field(default_factory=list)
    chosen: list[int] = field(default_factory=list)
    reward: list[Array] = field(default_factory=list)  # of each arm, expected, on the copies as they were
    _at: int = 0
    _drawn: tuple[int, float] = (0, 1.0)

    def begin_day(self, at: int) -> None:
        """The day's probabilities are looked up when an arm is drawn."""
        self._at = at

    def pick(self, now: float, copies: Copies) -> Ids:
        """Draw an arm, and offers by its probabilities."""
        self.probability.append(self.exp3.probability())
        self._drawn = self.exp3.draw(self.rng)
        self.chosen.append(self._drawn[0])
        if self.watch:
            click = self.plans.known(self._at).click
            rates = [self.plans.of(arm, self._at) for arm in self.arms]
            self.reward.append(
                np.array([kernels.expected_reward(rate, click, copies.live, copies.local) for rate in rates])
            )
        return _sample(self.plans.of(self.arms[self._drawn[0]], self._at), self.rng)

    def learn(self, ids: Ids, now: float, changed: NDArray[np.bool_]) -> None:
        """The clicks of crawled offers that had changed, among those of all that were crawled."""
        click = self.plans.known(self._at).click
        best = np.partition(click, -len(ids))[-len(ids) :] if self.gained and len(ids) else click[ids]
        total, found = float(best.sum()), float(click[ids[changed]].sum())
        self.exp3.learn(self._drawn[0], min(found / total, 1.0) if total else 0.0, self._drawn[1])


@dataclass
class ByPolicy:
    """Any policy, which gets the day's rates at midnight and the budget step by step.

    Change rates are at most one a step. ``impressions`` says that the policy takes them, ``label`` the class of
    each offer when it comes.
    """

    policy: Policy
    plans: Plans
    impressions: bool = False
    label: Callable[[Array], NDArray[np.str_]] | None = None  # from believed clicks
    _credit: float = 0.0
    _n: int = 0
    _per_step: float = 0.0

    def begin_day(self, at: int) -> None:
        """Update the rates of all offers, and add the new ones."""
        known, day = self.plans.known(at), self.plans.days[at]
        rate = np.minimum(-np.log1p(-np.minimum(known.change, 1 - 1e-9)), STEPS)
        old, new = slice(0, self._n), slice(self._n, day.n)
        if self._n:
            more = {"impression": known.impression[old]} if self.impressions else {}
            self.policy.update(np.arange(self._n), change_rate=rate[old], importance=known.click[old], **more)
        if day.n > self._n:
            given: dict[str, Any] = {"impression": known.impression[new]} if self.impressions else {}
            if self.label is not None:
                given["label"] = self.label(known.click[new])
            pages = Pages(rate[new], known.click[new])
            self.policy.add(pages, float(day.day), fetched_at=np.full(len(pages), _LONG_AGO), **given)
        self._n, self._per_step = day.n, self.plans.share * day.n / STEPS

    def pick(self, now: float, copies: Copies) -> Ids:
        """As many as the budget has room for by now."""
        self._credit += self._per_step
        n = int(self._credit + 1e-9)
        self._credit -= n
        return self.policy.pick(now, n)

    def learn(self, ids: Ids, now: float, changed: NDArray[np.bool_]) -> None:
        """Record the crawls."""
        self.policy.record(ids, now, changed=changed)


def _sample(probability: Array, rng: np.random.Generator) -> Ids:
    out = np.empty(int(probability.sum()) + 2, np.int64)
    return out[: kernels.sample(probability, rng.random(), out)]
