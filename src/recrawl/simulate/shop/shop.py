"""Shop: offers with prices, clicks and impressions, day by day, in published ratios (docs/reference/shop.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.simulate.shop.day import HourCounts, Rates, ShopDay
from recrawl.simulate.shop.offers import draw_offers, explained_part
from recrawl.simulate.shop.prices import Prices
from recrawl.simulate.shop.seasons import VIEW_HOURS, change_factor, spread_over_hours, view_factor
from recrawl.simulate.shop.settings import ShopSettings, Spread, shop_settings

Array = NDArray[np.float64]
Codes = NDArray[np.int32]

_MOST_CHANGES = 20.0  # a day
_MOST_VIEWS = 1e5  # a day
_MOST_CLICKED = 0.5  # of impressions
_SAMPLE = 200_000  # offers that the levels are found from


class Shop:
    """A seeded shop of n offers; ``days`` draws what happens, one day at a time, the same on every call.

    The rate of each kind is exp(level + what metadata say + what is the offer's own) times seasons; the level is
    found so that the settings' share of offer-days has a change, a click, an impression.

    >>> shop = Shop(500, seed=1)
    >>> [day.n_live for day in shop.days(2)], len(shop.offers)
    ([354, 354], 500)
    """

    def __init__(self, n: int, settings: ShopSettings | str = "shop", *, seed: int = 0) -> None:
        if n < 1:
            raise ParameterError(f"n is {n}: at least one offer is needed")
        if seed < 0:
            raise ParameterError(f"seed is {seed}: must be at least 0")
        self.settings = shop_settings(settings) if isinstance(settings, str) else settings
        self.seed = seed
        rng = np.random.default_rng([seed, 0, 0])
        s = self.settings
        self.offers = draw_offers(n, s, rng)
        self._merchant_day = rng.integers(0, 7, s.n_merchants).astype(np.int32)
        kinds: tuple[tuple[str, Spread], ...] = (
            ("change", s.change),
            ("views", s.impression),
            ("views", s.click_through),
        )
        self._explained = [explained_part(self.offers, s, what, spread.explained, rng) for what, spread in kinds]
        self._levels = self._find_levels(rng)

    def __len__(self) -> int:
        return len(self.offers)

    def days(self, n_days: int) -> Iterator[ShopDay]:
        """Days 0 to n_days − 1; memory is that of one day, about 300 bytes per offer."""
        if n_days < 0:
            raise ParameterError(f"n_days is {n_days}: must be at least 0")
        rng = np.random.default_rng([self.seed, 0, 1])
        spreads = (self.settings.change, self.settings.impression, self.settings.click_through)
        own = [spread.own * rng.standard_normal(len(self)) for spread in spreads]
        prices = Prices(self.offers, self.settings)
        for day in range(n_days):
            rng = np.random.default_rng([self.seed, day, 2])
            if day:
                for part, spread in zip(own, spreads, strict=True):
                    _drift(part, spread, rng)
            yield self._day(day, own, prices, rng)

    def _day(self, day: int, own: list[Array], prices: Prices, rng: np.random.Generator) -> ShopDay:
        n = int(np.searchsorted(self.offers.born, day, side="right"))
        seasonal = change_factor(day, self._merchant_day, self.settings)[self.offers.merchant[:n]]
        change, views, clicked = self._rates(day, [part[:n] for part in own], slice(0, n))
        change = np.minimum(change * seasonal, _MOST_CHANGES)
        views *= view_factor(day, self.settings) * np.where(prices.in_campaign[:n], self.settings.campaign_views, 1.0)
        price = prices.price()[:n]
        changes = prices.move(day, rng.poisson(change), rng)
        impressions = rng.poisson(views).astype(np.int32)
        seen = np.flatnonzero(impressions)
        clicks = np.zeros(n, np.int32)
        clicks[seen] = rng.binomial(impressions[seen], clicked[seen])
        hours = HourCounts(*spread_over_hours(clicks, VIEW_HOURS, self.settings.seasons, rng))
        rates = Rates(change + self._flips, views * clicked, views)
        return ShopDay(day, n, price, changes, hours, impressions, rates, self.seed, self.settings.seasons)

    def _rates(self, day: int, own: list[Array], which: slice) -> tuple[Array, Array, Array]:
        """Changes and impressions per day before seasons, and the share of impressions that is clicked."""
        logs = [
            level + explained[which] + part
            for level, explained, part in zip(self._levels, self._explained, own, strict=True)
        ]
        if self.settings.coupling:
            logs[0] = logs[0] + self._coupled(day, logs[1] + logs[2])
        change, views, clicked = (np.exp(log) for log in logs)
        return change, np.minimum(views, _MOST_VIEWS), np.minimum(clicked, _MOST_CLICKED)

    def _coupled(self, day: int, popular: Array) -> Array:
        """How much more often popular offers change; from the day of the shift on, less often."""
        spreads = (self.settings.impression, self.settings.click_through)
        deviation = math.sqrt(sum(s.explained**2 + s.own**2 for s in spreads))
        shifted = self.settings.shift_at is not None and day >= self.settings.shift_at
        score = (popular - self._levels[1] - self._levels[2]) / max(deviation, 1e-9)
        return np.asarray(self.settings.coupling * (-score if shifted else score))

    @property
    def _flips(self) -> float:
        """Beginnings and ends of campaigns per offer and day, on average."""
        cycle = self.settings.campaign_every + sum(self.settings.campaign_days) / 2
        return 2.0 * self.settings.campaign_joins / cycle

    def _find_levels(self, rng: np.random.Generator) -> list[float]:
        """Levels at which the shares are met on average over days, each found by bisection."""
        s, n = self.settings, min(len(self), _SAMPLE)
        which = slice(0, len(self), max(1, len(self) // n))
        own = [
            spread.own * rng.standard_normal(len(self))[which] for spread in (s.change, s.impression, s.click_through)
        ]
        merchant = self.offers.merchant[which]
        cycle = 7 * s.sale_every
        some_day = rng.integers(0, cycle, len(merchant))
        table = np.stack([change_factor(day, self._merchant_day, s) for day in range(cycle)])
        seasonal = table[some_day, merchant]
        week = np.array([view_factor(day, s) for day in range(7)])[some_day % 7]
        joined = s.campaign_joins * sum(s.campaign_days) / 2 / (s.campaign_every + sum(s.campaign_days) / 2)
        week = week * np.where(rng.random(len(merchant)) < joined, s.campaign_views, 1.0)
        self._levels = [0.0, 0.0, 0.0]

        def share(place: int, level: float) -> float:
            self._levels[place] = level
            change, views, clicked = self._rates(0, own, which)
            rate = (np.minimum(change * seasonal, _MOST_CHANGES), views * week, views * week * clicked)[place]
            quiet = np.exp(-rate) * (1.0 - self._flips if place == 0 else 1.0)
            return float(1.0 - quiet.mean())

        for place, goal in ((1, s.impression_share), (2, s.click_share), (0, s.change_share)):
            self._levels[place] = _bisect(partial(share, place), goal)
        return self._levels


def _drift(part: Array, spread: Spread, rng: np.random.Generator) -> None:
    """Move the offers' own part by one day: an autoregressive step that keeps its spread."""
    if spread.memory == math.inf or spread.own == 0.0:
        return
    kept = math.exp(-1.0 / spread.memory)
    part *= kept
    part += spread.own * math.sqrt(1.0 - kept**2) * rng.standard_normal(len(part))


def _bisect(share: Callable[[float], float], goal: float) -> float:
    low, high = -40.0, 20.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if share(middle) < goal:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
