"""History of offers: what was seen of each in the days before, as features of a predictor and as plain 30-day rates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.simulate.shop.day import ShopDay
from recrawl.simulate.shop.settings import COLUMNS
from recrawl.simulate.shop.shop import Shop

Array = NDArray[np.float64]
Table = dict[str, NDArray[np.generic]]

MONTH = 30
_WINDOWS = {"1d": 1, "1w": 7, "2w": 14, "1m": MONTH}
METADATA = (*COLUMNS, "weekday")
HISTORY = (
    "change_days_1m",
    "days_since_change",
    *(f"{what}_{window}" for what in ("clicks", "impressions") for window in _WINDOWS),
)


class History:
    """The last 30 days of every offer: gets one day after the other, is asked at midnight.

    ``features`` are those of the paper's table 3: the share of days with a change in a month, days since the last
    change, clicks and impressions per day over four windows. Windows count the days an offer has been there; what was
    never seen is nan.
    """

    def __init__(self, n: int) -> None:
        self._ring = {what: np.zeros((MONTH, n), np.int32) for what in ("changed", "clicks", "impressions")}
        self._sums = {(what, days): np.zeros(n, np.int64) for what in self._ring for days in _WINDOWS.values()}
        self._changed_at = np.full(n, np.nan)
        self._days_seen = np.zeros(n, np.int64)
        self._day = 0

    def update(self, day: ShopDay) -> None:
        """What happened on the next day."""
        if day.day != self._day:
            raise ParameterError(f"day {day.day} comes where day {self._day} is expected")
        live = slice(0, day.n_live)
        new: dict[str, NDArray[Any]] = {
            "changed": day.n_changes > 0,
            "clicks": day.n_clicks,
            "impressions": day.impressions,
        }
        for what, ring in self._ring.items():
            for days in _WINDOWS.values():
                total = self._sums[what, days]
                total -= ring[(self._day - days) % MONTH]
                total[live] += new[what]
            ring[self._day % MONTH] = 0
            ring[self._day % MONTH, live] = new[what]
        self._changed_at[day.changes.offer] = day.changes.at  # in order: the last stays
        self._days_seen[live] += 1
        self._day += 1

    def features(self, n: int) -> dict[str, Array]:
        """The history of the first n offers at the beginning of the next day."""
        table = {
            "change_days_1m": self._mean("changed", MONTH, n),
            "days_since_change": self._day - self._changed_at[:n],
        }
        for what in ("clicks", "impressions"):
            for window, days in _WINDOWS.items():
                table[f"{what}_{window}"] = self._mean(what, days, n)
        return table

    def rates(self, n: int) -> dict[str, Array]:
        """Mean daily changes (days with one), clicks and impressions of the last 30 days; 0 for new offers."""
        return {what: np.nan_to_num(self._mean(what, MONTH, n)) for what in self._ring}

    def _mean(self, what: str, days: int, n: int) -> Array:
        seen = np.minimum(self._days_seen[:n], days)
        mean: Array = np.divide(self._sums[what, days][:n], seen, out=np.full(n, np.nan), where=seen > 0)
        return mean


class Midnight(NamedTuple):
    """What can be known as a day begins, and the day that follows."""

    table: Table
    day: ShopDay
    history: History


def midnights(shop: Shop, n_days: int) -> Iterator[Midnight]:
    """Every midnight of a shop: metadata, weekday and history as columns of a table, and the day to come.

    >>> first = next(midnights(Shop(100, seed=1), 1))
    >>> sorted(first.table)[:3], int((first.day.n_changes > 0).sum())
    (['brand', 'category', 'change_days_1m'], 3)
    """
    history = History(len(shop))
    for day in shop.days(n_days):
        weekday = np.full(day.n_live, day.weekday, np.int32)
        table: Table = {**shop.offers.metadata(day.n_live), "weekday": weekday, **history.features(day.n_live)}
        yield Midnight(table, day, history)
        history.update(day)


def examples(
    shop: Shop, first: int, last: int, rows_per_day: int, rng: np.random.Generator, *, clicked: float = 0.0
) -> tuple[Table, Table]:
    """Features and next-day labels of offers drawn on each day from ``first`` to ``last`` − 1.

    Labels are ``changed``, ``clicked`` and ``seen``; beside them ``offer`` and ``day``. A share ``clicked`` of the rows
    is drawn in proportion to clicks of the last month, as the paper does for training.
    """
    tables, labels = [], []
    for midnight in midnights(shop, last):
        day = midnight.day
        if day.day < first:
            continue
        rows = _some(midnight, rows_per_day, clicked, rng)
        tables.append({name: column[rows] for name, column in midnight.table.items()})
        found = {"changed": day.n_changes > 0, "clicked": day.n_clicks > 0, "seen": day.impressions > 0}
        labels.append(
            {"offer": rows, "day": np.full(len(rows), day.day)} | {name: label[rows] for name, label in found.items()}
        )
    if not tables:
        raise ParameterError(f"no day lies between {first} and {last}")
    return tuple({name: np.concatenate([t[name] for t in each]) for name in each[0]} for each in (tables, labels))  # type: ignore[return-value]


def _some(midnight: Midnight, n: int, clicked: float, rng: np.random.Generator) -> NDArray[np.int64]:
    rows = rng.integers(0, midnight.day.n_live, n)
    weight = np.nan_to_num(np.asarray(midnight.table["clicks_1m"], np.float64))
    n_clicked = round(clicked * n) if weight.sum() > 0 else 0
    if n_clicked:
        rows[:n_clicked] = rng.choice(len(weight), n_clicked, p=weight / weight.sum())
    return rows
