"""ShopDay: what happened in a shop on one day, as lists of events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.simulate.shop.seasons import VIEW_HOURS, spread_over_hours

Array = NDArray[np.float64]
Codes = NDArray[np.int32]


class PriceChanges(NamedTuple):
    """Changes of prices by offer and time: ``at`` in days since the shop's first, ``price`` in cents from then on."""

    offer: Codes
    at: Array
    price: Codes


class HourCounts(NamedTuple):
    """How often each offer was clicked or seen in an hour of the day (0 to 23); hours without are left out."""

    offer: Codes
    hour: Codes
    times: Codes


class Rates(NamedTuple):
    """The rates, per day, that a day was drawn with: what nobody but the judge knows."""

    change: Array
    click: Array
    impression: Array


@dataclass(frozen=True, eq=False)
class ShopDay:
    """One day of the offers 0 … ``n_live`` − 1; all dense columns have that length."""

    day: int
    n_live: int
    price: Codes  # at the day's first instant, in cents
    changes: PriceChanges
    clicks: HourCounts
    impressions: Codes  # in the whole day
    rates: Rates
    seed: int
    seasons: float = 1.0

    @property
    def weekday(self) -> int:
        """0 is Monday; day 0 is one."""
        return self.day % 7

    @property
    def n_changes(self) -> Codes:
        """Price changes of each offer."""
        return np.bincount(self.changes.offer, minlength=self.n_live).astype(np.int32)

    @property
    def n_clicks(self) -> Codes:
        """Clicks on each offer."""
        return np.bincount(self.clicks.offer, weights=self.clicks.times, minlength=self.n_live).astype(np.int32)

    def impression_hours(self) -> HourCounts:
        """Impressions by hour."""
        rng = np.random.default_rng([self.seed, self.day, 3])
        return HourCounts(*spread_over_hours(self.impressions, VIEW_HOURS, self.seasons, rng))

    def price_at(self, hour: float) -> Codes:
        """Prices at an hour of the day (0 to 24), changes of that very instant included."""
        price = self.price.copy()
        so_far = self.changes.at <= self.day + hour / 24.0
        price[self.changes.offer[so_far]] = self.changes.price[so_far]  # sorted by time within an offer: the last stays
        return price
