"""Prices of a shop: lasting changes, and campaigns of merchants at whose end the old price comes back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.simulate.shop.day import PriceChanges
from recrawl.simulate.shop.offers import Offers
from recrawl.simulate.shop.seasons import CHANGE_HOURS, hours_of
from recrawl.simulate.shop.settings import ShopSettings

Array = NDArray[np.float64]
Codes = NDArray[np.int32]
Ids = NDArray[np.int64]

_LEAST, _MOST = 200, 20_000_000  # cents


class Prices:
    """Base price and rebate of every offer, moved on day by day."""

    def __init__(self, offers: Offers, settings: ShopSettings) -> None:
        self._settings, self._merchant, self._born = settings, offers.merchant, offers.born
        self._log_base = np.log(offers.base_price)
        self._rebate = np.zeros(len(offers), np.int8)  # percent
        self._until = np.full(settings.n_merchants, -1, np.int32)  # the day on which a merchant's campaign ends

    @property
    def in_campaign(self) -> NDArray[np.bool_]:
        """Which offers are sold at a rebate."""
        return np.asarray(self._rebate > 0)

    def price(self) -> Codes:
        """All prices, in cents."""
        return _cents(self._log_base, self._rebate)

    def move(self, day: int, count: Ids, rng: np.random.Generator) -> PriceChanges:
        """Draw a day: so many lasting changes of each live offer, and campaigns that begin and end."""
        flipped, rebate = self._campaigns(day, len(count), rng)
        lasting = np.repeat(np.arange(len(count)), count)
        offer = np.concatenate([lasting, flipped])
        hour = hours_of(len(offer), CHANGE_HOURS, self._settings.seasons, rng)
        at = day + (hour + rng.random(len(offer))) / 24.0
        size = (0.02 + rng.exponential(0.07, len(lasting))) * rng.choice([-1.0, 1.0], len(lasting))
        step = np.concatenate([np.minimum(size, 0.5), np.zeros(len(flipped))])
        goal = np.concatenate([np.full(len(lasting), -1), rebate])
        order = np.lexsort((at, offer))
        return self._apply(offer[order], at[order], step[order], goal[order])

    def _campaigns(self, day: int, n_live: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Offers whose rebate changes on a day, and what it becomes."""
        n_merchants = self._settings.n_merchants
        over, idle = self._until == day, self._until < day
        begins = idle & (rng.random(n_merchants) < 1.0 / self._settings.campaign_every)
        low, high = self._settings.campaign_days
        self._until[begins] = day + rng.integers(low, high + 1, n_merchants)[begins]
        rebate_of = rng.integers(10, 41, n_merchants)
        merchant = self._merchant[:n_live]
        ends = np.flatnonzero(over[merchant] & (self._rebate[:n_live] > 0))
        joins = np.flatnonzero(begins[merchant] & (self._rebate[:n_live] == 0))
        joins = joins[rng.random(len(joins)) < self._settings.campaign_joins]
        return np.concatenate([ends, joins]), np.concatenate([np.zeros(len(ends), int), rebate_of[merchant[joins]]])

    def _apply(self, offer: Ids, at: Array, step: Array, goal: Ids) -> PriceChanges:
        """Go through the day's events, sorted by offer and time; what leaves the price as it was is no change."""
        if len(offer) == 0:
            return PriceChanges(offer.astype(np.int32), at, offer.astype(np.int32))
        first = np.flatnonzero(np.diff(offer, prepend=-1))
        begin = np.repeat(first, np.diff(np.append(first, len(offer))))
        total = np.cumsum(step)
        base = self._log_base[offer] + total - (total - step)[begin]
        base = np.clip(base, np.log(_LEAST), np.log(_MOST))
        latest = np.maximum.accumulate(np.where(goal >= 0, np.arange(len(offer)), -1))
        rebate = np.where(latest >= begin, goal[latest], self._rebate[offer]).astype(np.int8)
        price = _cents(base, rebate)
        before = np.concatenate([[0], price[:-1]])
        before[first] = _cents(self._log_base[offer[first]], self._rebate[offer[first]])
        last = np.append(first[1:], len(offer)) - 1
        self._log_base[offer[last]], self._rebate[offer[last]] = base[last], rebate[last]
        new = price != before
        return PriceChanges(offer[new].astype(np.int32), at[new], price[new])


def _cents(log_base: Array, rebate: NDArray[np.int8]) -> Codes:
    return np.rint(np.exp(log_base) * (1.0 - rebate / 100.0)).astype(np.int32)
