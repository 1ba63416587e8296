"""Days of a shop as a run needs them: prices, clicks, and the rates that deciders know at midnight."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.schedule.bandits.strategies import strategy_rates
from recrawl.simulate.shop.day import ShopDay
from recrawl.simulate.shop.history import Midnight, midnights
from recrawl.simulate.shop.shop import Shop

Array = NDArray[np.float64]
Codes = NDArray[np.int32]
STEPS = 12  # a day, two hours each


class KnownRates(NamedTuple):
    """What a decider believes of every offer: the probability of a change in a day, clicks and impressions a day."""

    change: Array
    click: Array
    impression: Array


Source = Callable[[Midnight], KnownRates]


def from_history(midnight: Midnight) -> KnownRates:
    """30-day averages of what was seen; 0 for what was never seen."""
    rates = midnight.history.rates(midnight.day.n_live)
    return KnownRates(np.clip(rates["changed"], 0.0, 1.0), rates["clicks"], rates["impressions"])


def from_truth(midnight: Midnight) -> KnownRates:
    """The rates that the day is drawn with, which nobody knows: an upper bound for every predictor."""
    rates = midnight.day.rates
    return KnownRates(-np.expm1(-rates.change), rates.click, rates.impression)


@dataclass(frozen=True, eq=False)
class PriceDay:
    """One day: prices as it begins, what changes, who clicks when, and the rates of each source."""

    source: ShopDay
    known: Mapping[str, KnownRates]

    @property
    def day(self) -> int:
        """Its number in the shop."""
        return self.source.day

    @property
    def n(self) -> int:
        """Offers that there are."""
        return self.source.n_live

    @cached_property
    def changes(self) -> tuple[Array, Codes, Codes]:
        """(time, offer, price) in the order of time."""
        at, offer, price = self.source.changes.at, self.source.changes.offer, self.source.changes.price
        order = np.argsort(at, kind="stable")
        return at[order], offer[order], price[order]

    @cached_property
    def clicks(self) -> tuple[NDArray[np.int64], Codes, Codes]:
        """(where each hour begins, offer, count) in the order of hours."""
        given = self.source.clicks
        order = np.argsort(given.hour, kind="stable")
        return np.searchsorted(given.hour[order], np.arange(25)), given.offer[order], given.times[order]


def record_days(shop: Shop, first: int, last: int, sources: Mapping[str, Source]) -> list[PriceDay]:
    """The days from ``first`` to ``last`` − 1 of a shop, with the rates of each source at their midnights."""
    if not 0 <= first < last:
        raise ParameterError(f"days {first} to {last}: the last must be after the first")
    return [
        PriceDay(midnight.day, {name: source(midnight) for name, source in sources.items()})
        for midnight in midnights(shop, last)
        if midnight.day.day >= first
    ]


class Plans:
    """Crawl probabilities per step of every strategy on every day, for a budget and a source of rates; computed once.

    ``share`` is crawls per offer and day.
    """

    def __init__(self, days: list[PriceDay], share: float, source: str) -> None:
        self.days, self.share, self.source = days, share, source
        self._cache: dict[tuple[str, int], Array] = {}

    def known(self, at: int) -> KnownRates:
        """What is believed on the at-th day."""
        return self.days[at].known[self.source]

    def of(self, strategy: str, at: int) -> Array:
        """The probabilities of a strategy on the at-th day."""
        if (strategy, at) not in self._cache:
            budget, known = self.share * self.days[at].n, self.known(at)
            found = strategy_rates(
                strategy, budget, change=known.change, click=known.click, impression=known.impression, steps=STEPS
            )
            self._cache[strategy, at] = found
        return self._cache[strategy, at]
