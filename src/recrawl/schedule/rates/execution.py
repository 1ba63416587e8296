"""How given rates become crawls: by deadline, or by drawing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.schedule.rates import draw_kernels as draws
from recrawl.schedule.rates import kernels
from recrawl.schedule.rates.kernels import IDLE, LEASED, WAKE, Book
from recrawl.schedule.table import Ids, Table, horizon

Array = NDArray[np.float64]


class Execution:
    """Rates, what they have asked for so far, and leases, for all pages."""

    def __init__(self) -> None:
        self._table = Table(
            rate=np.float64,
            since=np.float64,
            work=np.float64,
            done=np.int64,
            key=np.float64,
            place=np.uint8,
            slot=np.int64,
        )
        self._heap = np.zeros((2, 0), np.int64)
        self._size = np.zeros(2, np.int64)
        self.budget: float | None = None  # crawls per time that will be asked for
        self._bind()

    def __len__(self) -> int:
        return len(self._table)

    @property
    def rate(self) -> Array:
        """Crawls per time of every page."""
        return self._table["rate"]

    @property
    def leased(self) -> NDArray[np.bool_]:
        """Which pages are leased."""
        leased: NDArray[np.bool_] = self._table["place"] == LEASED
        return leased

    def grow(self, n: int, now: float, phase: Array) -> None:
        """Add pages, not crawled until they get a rate; ``phase`` is the share of a crawl that counts as planned."""
        self._table.append(n, since=now, work=phase)
        self._bind()

    def _bind(self) -> None:
        room = self._table.room
        if self._heap.shape[1] < room:
            grown = np.zeros((2, room), np.int64)
            grown[:, : self._heap.shape[1]] = self._heap
            self._heap = grown
        self.book = Book(**self._table.raw, heap=self._heap, size=self._size)

    def columns(self) -> dict[str, NDArray[Any]]:
        """What to save: rates, work, counts, and the end of each lease (NaN: none)."""
        saved = {name: self._table[name].copy() for name in ("rate", "since", "work", "done")}
        return {**saved, "lease_ends": np.where(self.leased, self._table["key"], np.nan)}

    def load(self, columns: dict[str, NDArray[Any]], now: float) -> None:
        """Fill an empty execution with what was saved."""
        ends = np.asarray(columns["lease_ends"], np.float64)
        empty = {"key": np.zeros(len(ends)), "place": np.full(len(ends), IDLE), "slot": np.zeros(len(ends))}
        self._table.load({**columns, **empty})
        self._bind()
        kernels.put_leased(self.book, ends)
        self._resume(np.flatnonzero(np.isnan(ends)), now)

    def _next_wake(self) -> float:
        return float(self.book.key[self._heap[WAKE, 0]]) if self._size[WAKE] else np.inf

    def _resume(self, pages: Ids, now: float) -> None:
        raise NotImplementedError

    def _check(self) -> None:
        """Raise AssertionError where columns and heaps disagree."""
        place, key, slot = self._table["place"], self._table["key"], self._table["slot"]
        for which, places in ((WAKE, (kernels.WAITING, LEASED)), (kernels.DUE, (kernels.READY,))):
            heap = self._heap[which, : self._size[which]]
            assert sorted(heap) == sorted(np.flatnonzero(np.isin(place, places)))
            assert (slot[heap] == np.arange(len(heap))).all()
            parent = (np.arange(1, len(heap)) - 1) // 2
            assert (key[heap[parent]] <= key[heap[1:]]).all()


class Deadlines(Execution):
    """A page's j-th crawl is released when its work reaches j − 1 and due when it reaches j; the earliest due is first.

    (Azar et al. 2018, Algorithm 3.) Work grows by rate · time. With phases of 0 and rates that add up to no more than
    the crawls per time, the count of every page stays within 1 of rate · time.
    """

    def wake(self, now: float) -> int:
        """End leases that ran out; how many."""
        return int(kernels.wake(self.book, horizon(now)))

    def pick(self, n: int, until: float) -> Ids:
        """Lease the n released crawls that are due first."""
        out = np.empty(min(n, int(self._size[kernels.DUE])), np.int64)
        return out[: kernels.pick_due(self.book, until, out)]

    def set_rates(self, rate: Array, now: float) -> None:
        """New rates from now on."""
        kernels.change_rates(self.book, rate, now, horizon(now))

    def crawled(self, pages: Ids, now: float) -> None:
        """Crawls that ended."""
        kernels.crawled(self.book, pages, horizon(now))

    def released(self, pages: Ids, now: float) -> int:
        """Crawls that did not happen; how many were leased."""
        return int(kernels.released(self.book, pages, horizon(now)))

    def drop(self, pages: Ids) -> None:
        """Pages that are not crawled any more."""
        kernels.drop(self.book, pages)

    def postpone(self, by: float, now: float) -> None:
        """Put off all that is planned."""
        kernels.postpone(self.book, len(self), by, horizon(now))

    def next_at(self, now: float) -> float:
        """When a crawl is released or a lease ends."""
        return now if self._size[kernels.DUE] else max(now, self._next_wake())

    def _resume(self, pages: Ids, now: float) -> None:
        kernels.schedule_all(self.book, pages, horizon(now))


class Draws(Execution):
    """Every crawl is drawn among the pages that are not leased, with probability proportional to their rates.

    With many pages, each page's crawls form a Poisson process of its rate. Where the rates add up to less than the
    budget, a share of the crawls is left out at random.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.tree = np.zeros(2)
        self._total = 0.0
        self._rng = rng
        super().__init__()

    def _bind(self) -> None:
        super()._bind()
        leaves = 1 << max(self._table.room - 1, 0).bit_length()
        if leaves > len(self.tree) >> 1:
            held = self.tree[len(self.tree) >> 1 :]
            self.tree = np.zeros(2 * leaves)
            self.tree[leaves : leaves + len(held)] = held
            self._sum_up()

    def _sum_up(self) -> None:
        width = len(self.tree) >> 1
        while width > 1:
            level = self.tree[width : 2 * width]
            width >>= 1
            self.tree[width : 2 * width] = level[::2] + level[1::2]

    def wake(self, now: float) -> int:
        """End leases that ran out; how many."""
        return int(draws.end_leases(self.book, self.tree, horizon(now)))

    def pick(self, n: int, until: float) -> Ids:
        """Lease n pages, drawn."""
        n = min(n, len(self))
        if self.budget is not None and self._total < self.budget * (1 - 1e-12):
            n = int(self._rng.binomial(n, self._total / self.budget))
        out = np.empty(n, np.int64)
        return out[: draws.pick_drawn(self.book, self.tree, self._rng.random(n), until, out)]

    def chances(self, n: int) -> tuple[Array, float]:
        """A random number for each of n crawls, and the share of them below which the crawl is made."""
        used = min(1.0, self._total / (self.budget or self._total or 1.0))
        return self._rng.random(n), used

    def set_rates(self, rate: Array, now: float) -> None:
        """New rates from now on."""
        self._table["rate"][:] = rate
        self._resume(np.flatnonzero(~self.leased), now)

    def crawled(self, pages: Ids, now: float) -> None:
        """Crawls that ended."""
        draws.give_back(self.book, self.tree, pages)

    def released(self, pages: Ids, now: float) -> int:
        """Crawls that did not happen; how many were leased."""
        return int(draws.give_back(self.book, self.tree, pages))

    def drop(self, pages: Ids) -> None:
        """Pages that are not crawled any more."""
        kernels.drop(self.book, pages)
        self._resume(pages, -np.inf)

    def postpone(self, by: float, now: float) -> None:
        """Nothing is planned that could be put off."""

    def next_at(self, now: float) -> float:
        """Now, or when a lease ends."""
        return now if self.tree[1] > 0 else max(now, self._next_wake())

    def _resume(self, pages: Ids, now: float) -> None:
        leaves = len(self.tree) >> 1
        self.tree[leaves + pages] = self.rate[pages]
        self._sum_up()
        self._total = float(self.rate.sum())

    def _check(self) -> None:
        super()._check()
        leaves = len(self.tree) >> 1
        expected = np.where(self.leased, 0.0, self.rate)
        assert (self.tree[leaves : leaves + len(self)] == expected).all()
        assert not self.tree[leaves + len(self) :].any()
        assert (self.tree[1:leaves] == self.tree[2 : 2 * leaves : 2] + self.tree[3 : 2 * leaves : 2]).all()


def executor(execution: str, phases: str, rng: np.random.Generator | None) -> Deadlines | Draws:
    """An empty execution of the kind asked for."""
    if execution not in ("deadline", "poisson"):
        raise ParameterError(f"execution {execution!r} is not one of deadline, poisson")
    if phases not in ("zero", "random"):
        raise ParameterError(f"phases {phases!r} is not one of zero, random")
    if rng is None and (execution == "poisson" or phases == "random"):
        raise ParameterError("rng: drawing needs a numpy random Generator")
    return Draws(rng) if execution == "poisson" and rng is not None else Deadlines()
