"""Pacer: a budget as a stream of crawls without spikes.

Crawls are due at anchor + (owed + k)/budget for k = 0, 1, …: k is an integer, so nothing drifts however long the pacer
runs. The anchor moves only when the budget changes or when the driver was away for longer than ``catch_up``.
"""

from __future__ import annotations

import math
from typing import Any, Self

from recrawl.errors import ParameterError

_SAME = 2.0  # instants this many units of resolution apart are the same instant


class Pacer:
    """How many crawls may start now, at ``budget`` crawls per time from ``start`` on.

    In any window of length W at most budget·(W + catch_up) + 1 crawls start (with a budget that changes: its integral
    over the window, plus catch_up times its largest value there, plus 1). Time in which the driver did not ask is made
    up for as far as it lies within the last ``catch_up``; budget older than that lapses. With the default of 0 crawls
    are never closer than 1/budget, and a driver that wakes late loses what it was late by; a live driver gives the
    longest delay that it wants to make up for.

    >>> pacer = Pacer(budget=2.0, start=10.0)
    >>> [pacer.due(now) for now in (10.0, 10.25, 10.5, 12.0, 12.25)]
    [1, 0, 1, 1, 0]
    >>> pacer.next_at(12.25)
    12.5
    """

    def __init__(self, budget: float, start: float = 0.0, *, catch_up: float = 0.0) -> None:
        self._budget = _number("budget", budget)
        self._catch_up = _number("catch_up", catch_up)
        self._now = self._anchor = _number("start", start, -math.inf)
        self._owed = 0.0  # share of a crawl that had still to be earned at the anchor
        self._count = 0  # crawls since the anchor
        self._stats: dict[str, float] = {"started": 0, "lapsed": 0.0, "time_back": 0}

    def due(self, now: float, most: int | None = None) -> int:
        """How many crawls start now; the caller starts them. Beyond ``most`` they stay due, as ``catch_up`` allows."""
        if most is not None and most < 0:
            raise ParameterError(f"most is {most}: must be at least 0")
        self._advance(now)
        self._lapse()
        n = self._n_due()
        if most is not None:
            n = min(n, most)
        self._count += n
        self._stats["started"] += n
        return n

    def ready(self, now: float) -> int:
        """How many crawls ``due`` would start now."""
        self._advance(now)
        self._lapse()
        return self._n_due()

    def next_at(self, now: float) -> float:
        """When the next crawl is due: ``now`` if one is due already, infinity at a budget of 0."""
        now = max(_number("now", now, -math.inf), self._now)
        return max(now, self._due_at(self._count))

    @property
    def budget(self) -> float:
        """Crawls per time. Setting it takes effect from the last time that the pacer knows."""
        return self._budget

    @budget.setter
    def budget(self, budget: float) -> None:
        self.set_budget(budget, self._now)

    def set_budget(self, budget: float, now: float) -> None:
        """Change the budget from ``now`` on; the share of a crawl earned so far is kept.

        >>> pacer = Pacer(budget=1.0, start=0.0)
        >>> pacer.due(0.0)
        1
        >>> pacer.set_budget(4.0, now=0.5)      # half a crawl is earned, the other half takes 1/8
        >>> pacer.next_at(0.5)
        0.625
        """
        budget = _number("budget", budget)
        self._advance(now)
        self._lapse()
        earned = (self._now - self._anchor) * self._budget
        self._owed = min(self._owed + self._count - earned, 1.0)
        self._anchor, self._count, self._budget = self._now, 0, budget

    @property
    def catch_up(self) -> float:
        """How much time the driver may be away without losing budget."""
        return self._catch_up

    @property
    def stats(self) -> dict[str, float]:
        """Crawls started, crawls' worth of budget that lapsed, and times that ran backwards."""
        return dict(self._stats)

    def state(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere."""
        names = ("budget", "catch_up", "now", "anchor", "owed", "count")
        return {**{name: getattr(self, f"_{name}") for name in names}, "stats": self.stats}

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """The pacer whose state was saved."""
        pacer = cls(state["budget"], state["now"], catch_up=state["catch_up"])
        pacer._anchor = _number("anchor", state["anchor"], -math.inf)
        pacer._owed = _number("owed", state["owed"], -math.inf)
        pacer._count = int(state["count"])
        pacer._stats = dict(state["stats"])
        return pacer

    def _advance(self, now: float) -> None:
        now = _number("now", now, -math.inf)
        if now < self._now:
            self._stats["time_back"] += 1
        self._now = max(now, self._now)

    def _due_at(self, count: int) -> float:
        share = self._owed + count
        if share <= 0:
            return self._anchor if self._budget == 0 else self._anchor + share / self._budget
        return math.inf if self._budget == 0 else self._anchor + share / self._budget

    def _horizon(self) -> float:
        return self._now + _SAME * math.ulp(self._now)

    def _lapse(self) -> None:
        """Forget budget that was earned before the time that can be made up for."""
        oldest = self._now - self._catch_up
        due_at = self._due_at(self._count)
        if due_at >= oldest - _SAME * math.ulp(self._now):
            return
        self._stats["lapsed"] += (oldest - due_at) * self._budget
        self._anchor, self._owed, self._count = oldest, 0.0, 0

    def _n_due(self) -> int:
        horizon = self._horizon()
        if self._due_at(self._count) > horizon:
            return 0
        if self._budget == 0:
            return max(1, math.floor(-self._owed - self._count) + 1)
        last = math.floor((horizon - self._anchor) * self._budget - self._owed)
        while self._due_at(last) > horizon:
            last -= 1
        while self._due_at(last + 1) <= horizon:
            last += 1
        return last + 1 - self._count


def _number(name: str, value: float, low: float = 0.0) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is {value!r}: a number is needed") from None
    if not (math.isfinite(number) and number >= low):
        rule = "must be finite" if low == -math.inf else f"must be finite and at least {low:g}"
        raise ParameterError(f"{name} is {number}: {rule}")
    return number
