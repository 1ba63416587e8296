"""Table: columns that grow together, and the checks of ids, times and flags that policies share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError

Ids = NDArray[np.int64]


class Table:
    """Named columns with one row per page; room is doubled when it runs out.

    >>> table = Table(rate=np.float64)
    >>> table.append(2, rate=[1.0, 2.0])
    >>> len(table), table["rate"].tolist()
    (2, [1.0, 2.0])
    """

    def __init__(self, **dtypes: Any) -> None:
        self.raw: dict[str, NDArray[Any]] = {name: np.zeros(0, dtype) for name, dtype in dtypes.items()}
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.raw[name][: self._n]

    @property
    def room(self) -> int:
        """Rows there is room for."""
        return len(next(iter(self.raw.values())))

    def append(self, n: int, **values: ArrayLike) -> None:
        """Add rows; a column without values gets zeros."""
        first, last = self._n, self._n + n
        if last > self.room:
            room = max(16, last, 2 * self.room if self.room < 1 << 20 else self.room + self.room // 4)
            for name, column in self.raw.items():
                grown = np.zeros(room, column.dtype)
                grown[:first] = column[:first]
                self.raw[name] = grown
        self._n = last
        for name, value in values.items():
            self.raw[name][first:last] = value

    def copy(self) -> dict[str, NDArray[Any]]:
        """The columns, without spare room."""
        return {name: self[name].copy() for name in self.raw}

    def load(self, columns: Mapping[str, ArrayLike]) -> None:
        """Fill an empty table with copied columns."""
        lengths = {len(np.asarray(columns[name])) for name in self.raw}
        if len(lengths) != 1:
            raise ParameterError("state: columns have different lengths")
        self.append(lengths.pop(), **{name: columns[name] for name in self.raw})


def time_of(now: float) -> float:
    """A time as a finite number."""
    try:
        number = float(now)
    except (TypeError, ValueError):
        raise ParameterError(f"now is {now!r}: a number is needed") from None
    if not math.isfinite(number):
        raise ParameterError(f"now is {number}: must be finite")
    return number


def horizon(now: float) -> float:
    """The latest instant that cannot be distinguished from ``now``: a few units of its resolution later.

    >>> horizon(1.0) - 1.0 < 1e-15
    True
    """
    return now + 4.0 * math.ulp(now)


def count_of(n: int) -> int:
    """How many pages are asked for."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        raise ParameterError(f"n is {n!r}: a whole number of at least 0 is needed")
    return int(n)


def ids_of(ids: ArrayLike, status: NDArray[np.uint8], removed: int, *, repeated: bool = False) -> Ids:
    """Ids as an array, each in range, not removed and, unless repetition is allowed, different from the others."""
    given = np.atleast_1d(np.asarray(ids))
    if given.size == 0:
        return np.zeros(0, np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ParameterError("ids: a list of whole numbers is needed")
    bad = (given < 0) | (given >= len(status))
    if bad.any():
        raise ParameterError(f"id {given[np.argmax(bad)]} was never given out")
    rows = given.astype(np.int64)
    lost = status[rows] == removed
    if lost.any():
        raise ParameterError(f"id {rows[np.argmax(lost)]} was removed")
    if not repeated and len(rows) > 1:
        ordered = np.sort(rows)
        same = ordered[1:] == ordered[:-1]
        if same.any():
            raise ParameterError(f"id {ordered[1:][np.argmax(same)]} is given twice")
    return rows


def column_of(name: str, value: ArrayLike | None, n: int, default: float) -> NDArray[np.float64]:
    """A value per id, or one for all, as numbers that are not NaN."""
    if value is None:
        return np.full(n, default)
    try:
        column = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is not an array of numbers") from None
    if column.ndim > 1 or (column.ndim == 1 and len(column) != n):
        raise ParameterError(f"{name} has {len(column)} rows but there are {n} ids")
    if np.isnan(column).any():
        raise ParameterError(f"{name} is not a number in row {int(np.argmax(np.isnan(column)))}")
    return column if column.ndim else np.full(n, column)


def flags_of(name: str, value: ArrayLike | None, n: int) -> NDArray[np.bool_]:
    """True or false per id, or one for all."""
    return np.not_equal(column_of(name, value, n, 0.0), 0.0)


def positive(name: str, value: float, *, endless: bool = False) -> float:
    """A number above 0, finite unless endless is allowed."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is {value!r}: a number is needed") from None
    if not (number > 0 and (endless or number < math.inf)):
        raise ParameterError(f"{name} is {number}: must be above 0{'' if endless else ' and finite'}")
    return number


def options_of(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, over the defaults; TypeError for a name that is none of them.

    >>> options_of({"start": 0.0, "lease": 300.0}, {"lease": 60.0})
    {'start': 0.0, 'lease': 60.0}
    """
    for name in given.keys() - defaults.keys():
        raise TypeError(f"unexpected option {name!r}: not one of {', '.join(defaults)}")
    return {**defaults, **given}


def generator_of(state: dict[str, Any] | None) -> np.random.Generator | None:
    """The random generator whose state was saved."""
    if state is None:
        return None
    bits = getattr(np.random, state["bit_generator"])()
    bits.state = state
    return np.random.Generator(bits)
