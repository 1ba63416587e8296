"""When things happen in a shop: hours of the day, weekdays, sales of the whole shop, weekdays of a merchant."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from recrawl.simulate.shop.settings import ShopSettings

Array = NDArray[np.float64]
Codes = NDArray[np.int32]

# prices are set before the day's business, offers are looked at in the evening
CHANGE_HOURS = np.array([math.exp(1.2 * math.cos(2 * math.pi * (hour - 6) / 24)) for hour in range(24)])
VIEW_HOURS = np.array([math.exp(1.0 * math.cos(2 * math.pi * (hour - 20) / 24)) for hour in range(24)])
_CHANGE_WEEKDAYS = np.array([1.3, 1.2, 1.1, 1.1, 1.1, 0.7, 0.5])
_VIEW_WEEKDAYS = np.array([0.95, 0.9, 0.9, 0.9, 0.95, 1.15, 1.25])


def change_factor(day: int, merchant_day: Codes, settings: ShopSettings) -> Array:
    """By what the change rates of each merchant's offers are multiplied on a day; of mean 1 over weekdays."""
    weekday = day % 7
    common = _flattened(_CHANGE_WEEKDAYS, settings.seasons)[weekday]
    peak = settings.merchant_weekday
    own = np.where(merchant_day == weekday, peak, 1.0) * 7.0 / (6.0 + peak)
    sale = settings.sale_factor if day % settings.sale_every < settings.sale_days else 1.0
    return np.asarray(common * own * sale)


def view_factor(day: int, settings: ShopSettings) -> float:
    """By what impressions are multiplied on a day."""
    return float(_flattened(_VIEW_WEEKDAYS, settings.seasons)[day % 7])


def hours_of(n: int, profile: Array, seasons: float, rng: np.random.Generator) -> Codes:
    """Hours of the day of n events."""
    edge = np.cumsum(_flattened(profile, seasons) / 24.0)
    return np.minimum(np.searchsorted(edge, rng.random(n), side="right"), 23).astype(np.int32)


def spread_over_hours(
    count: Codes, profile: Array, seasons: float, rng: np.random.Generator
) -> tuple[Codes, Codes, Codes]:
    """Daily counts of offers as (offer, hour, count), sorted, without hours of none."""
    offer = np.repeat(np.arange(len(count), dtype=np.int64), count)
    slot, times = np.unique(offer * 24 + hours_of(len(offer), profile, seasons, rng), return_counts=True)
    return (slot // 24).astype(np.int32), (slot % 24).astype(np.int32), times.astype(np.int32)


def _flattened(profile: Array, seasons: float) -> Array:
    """A profile of mean 1, from flat (0) to as it is (1)."""
    return np.asarray(1.0 + seasons * (profile / profile.mean() - 1.0))
