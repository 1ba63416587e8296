"""A shop as a world: price changes are changes, clicks are readers' requests, click rates are importance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from recrawl.errors import ParameterError
from recrawl.model.pages import Pages
from recrawl.simulate.shop.settings import ShopSettings
from recrawl.simulate.shop.shop import Shop
from recrawl.simulate.trace import Trace
from recrawl.simulate.worlds.events import Events
from recrawl.simulate.worlds.worlds import World


@dataclass(frozen=True)
class ShopWorld(World):
    """A world of n offers drawn for each trace; time in days, ``start`` a whole day.

    A price that comes back is a change here: a trace knows instants, not prices. Importance is the mean click rate.

    >>> from recrawl.simulate.worlds.worlds import world
    >>> trace = world("shop", 300).draw(30.0, np.random.default_rng(1))
    >>> bool(trace.created_at.max() > 0), bool(trace.n_changes.sum() > 0)
    (True, True)
    """

    n: int = 1000
    settings: ShopSettings | str = "shop"

    def draw(self, horizon: float, rng: np.random.Generator, *, start: float = 0.0) -> Trace:
        """What happens from ``start`` for a time of ``horizon``, to the offers that are there or come."""
        if not (0 < horizon < np.inf and start >= 0 and float(start).is_integer()):
            raise ParameterError("a shop is drawn for a finite time above 0 from a whole day on, 0 or later")
        shop = Shop(self.n, self.settings, seed=int(rng.integers(2**62)))
        first, end = int(start), start + horizon
        change_rate, importance, n_days = np.zeros(self.n), np.zeros(self.n), np.zeros(self.n)
        changed: list[tuple[np.ndarray, np.ndarray]] = []
        asked: list[tuple[np.ndarray, np.ndarray]] = []
        n_live = 0
        for day in shop.days(math.ceil(end)):
            if day.day < first:
                continue
            n_live = day.n_live
            change_rate[:n_live] += day.rates.change
            importance[:n_live] += day.rates.click
            n_days[:n_live] += 1
            changed.append((day.changes.offer, day.changes.at))
            reader, hour = (np.repeat(column, day.clicks.times) for column in (day.clicks.offer, day.clicks.hour))
            asked.append((reader, day.day + (hour + rng.random(len(hour))) / 24.0))
        changes, clicks = _events(changed, n_live, end), _events(asked, n_live, end)
        pages = Pages(change_rate[:n_live] / n_days[:n_live], importance[:n_live] / n_days[:n_live])
        return Trace(
            start,
            end,
            offset=changes.offset,
            changed_at=changes.at,
            importance=pages.importance,
            created_at=np.maximum(shop.offers.born[:n_live], start),
            pages=pages,
            request_offset=clicks.offset,
            requested_at=clicks.at,
            group=shop.offers.merchant[:n_live],
            url=shop.offers.url(n_live),
            name=self.name,
        )


def _events(parts: list[tuple[np.ndarray, np.ndarray]], n: int, end: float) -> Events:
    offer, at = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    return Events.of(offer[at < end].astype(np.int64), at[at < end], n)
