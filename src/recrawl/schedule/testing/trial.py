"""Trial: a policy under examination, the clock it is driven by, and how two states are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.schedule.policy import Ids, Policy

N_PAGES = 12
STEPS = 400  # how long to wait for a page to come back


@dataclass
class Trial:
    """Makes policies, and drives them in time."""

    make: Callable[[int, float], Policy]
    lease: float | None
    start: float

    @property
    def step(self) -> float:
        """A step of time that is short beside a lease."""
        return 0.1 if self.lease is None else min(0.1, self.lease / 100)

    def policy(self, n: int = N_PAGES) -> Policy:
        """A new policy."""
        return self.make(n, self.start)

    def first_picks(self, policy: Policy, n: int, wanted: int = 1) -> tuple[Ids, float]:
        """Pick with n until something comes, asking the policy when; the ids, and when they came."""
        now, found = self.start, np.zeros(0, np.int64)
        for _ in range(STEPS):
            found = np.concatenate([found, picked(policy, now, n - len(found))])
            if len(found) >= wanted:
                return found, now
            now = max(now + self.step / 10, min(policy.next_at(now), now + self.step))
        raise AssertionError(f"fewer than {wanted} of {N_PAGES} fresh pages were picked in {STEPS} tries")

    def comes_back(self, policy: Policy, page: int, now: float) -> bool:
        """Whether a page is picked again before a lease would end, while all others are recorded at once."""
        last = now + (STEPS if self.lease is None else 0.95 * self.lease)
        for at in np.linspace(now, last, STEPS).tolist():
            ids = picked(policy, at, N_PAGES)
            if page in ids:
                return True
            policy.record(ids, at)
        return False

    def stays_away(self, policy: Policy, pages: Ids, now: float, until: float) -> None:
        """Assert that none of the pages is picked up to a time, while all others are recorded at once."""
        for at in np.linspace(now, until, 50).tolist():
            ids = picked(policy, at, N_PAGES)
            again = np.intersect1d(ids, pages)
            assert len(again) == 0, f"page {again[0]} was picked"
            policy.record(ids, at)


def picked(policy: Policy, now: float, n: int) -> Ids:
    """What pick returns, checked for its form."""
    ids = policy.pick(now, n)
    assert isinstance(ids, np.ndarray), "pick must return an array"
    assert ids.ndim == 1, "pick must return an array of one dimension"
    assert ids.dtype.kind in "iu", f"pick must return whole numbers, not {ids.dtype}"
    assert len(ids) <= n, f"pick(now, {n}) returned {len(ids)} ids"
    assert len(np.unique(ids)) == len(ids), "pick returned a page twice"
    return ids


def futures(policy: Policy, now: float, step: float, rounds: int = 25) -> list[list[int]]:
    """What a policy picks from now on, with every third pick released and the others recorded."""
    taken = []
    for i in range(rounds):
        ids = picked(policy, now, 2)
        taken.append([int(page) for page in ids])
        if i % 3 == 1:
            policy.release(ids, now)
        else:
            policy.record(ids, now)
        now += step * (1 + i % 4)
    return taken


def same(a: Any, b: Any) -> bool:
    """Whether two states are equal: arrays by value with NaN equal to itself, dictionaries and lists by their parts."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        x, y = np.asarray(a), np.asarray(b)
        return x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes()
    return bool(a == b) or (a != a and b != b)
