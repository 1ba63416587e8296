"""Placing: how the methods of a scheduler run kernels on its memory, and place pages again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.schedule.exact import layout as at
from recrawl.schedule.exact.columns import PageColumns
from recrawl.schedule.exact.kernels import events
from recrawl.schedule.exact.memory import Memory
from recrawl.schedule.exact.selfcheck import check_memory

Ids = NDArray[np.int64]


class Placing:
    """A memory, its columns, and what puts pages where their values belong."""

    def __init__(self, memory: Memory, columns: PageColumns) -> None:
        self._memory, self._columns = memory, columns

    @property
    def _now(self) -> float:
        """The largest time seen."""
        return float(self._memory.state.head["now"][0])

    def _check(self) -> None:
        """Raise AssertionError if the memory contradicts itself."""
        check_memory(self._memory.state, float(self._memory.state.head[0]["now"]))

    def _withdraw(self, ids: ArrayLike, state: int) -> None:
        events.withdraw(self._memory.header, self._columns.check(ids), state)

    def _place(self, rows: Ids, now: float) -> None:
        self._in_parts(events.put_back, rows, float(now))

    def _place_all(self) -> None:
        """Place all waiting pages again, after the parameters of all of them have changed."""
        now = float(self._memory.state.head[0]["now"])
        status = self._memory.state.rec["state"][: self._memory.state.head[0]["n_pages"]]
        waiting = np.flatnonzero((status == at.ASLEEP) | (status == at.NEAR))
        events.reset_layers(self._memory.header, now)
        self._place(waiting, now)

    def _in_parts(self, kernel: Any, rows: Ids, now: float, *columns: NDArray[Any]) -> None:
        """Run a kernel over ids, growing small arrays when it asks for that."""
        status, done = kernel(self._memory.header, rows, now, *columns)
        while status != at.DONE:
            self._columns.raise_for(status, done)
            self._memory.grow(status)
            rest = [column if len(column) == 1 else column[done:] for column in columns]
            status, more = kernel(self._memory.header, rows[done:], now, *rest)
            done += more

    def _place_waiting(self, rows: Ids, now: float) -> None:
        """Place pages again after a change of their parameters, except paused and parked ones."""
        status = self._memory.state.rec["state"][rows]
        self._place(rows[(status != at.PAUSED) & (status != at.PARKED)], now)
