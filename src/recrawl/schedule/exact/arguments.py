"""Checks of the arguments of a scheduler: times, and values per id."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.model.kinds import first_row

Ids = NDArray[np.int64]
Array = NDArray[np.float64]


def flags_per_id(name: str, value: ArrayLike, rows: Ids) -> NDArray[np.bool_]:
    """True or false per id, or one for all."""
    return per_id(name, value, rows).astype(np.bool_)


def check_time(name: str, time: float) -> None:
    """ParameterError for a time that is not finite."""
    if not math.isfinite(time):
        raise ParameterError(f"{name} is {time}: must be finite")


def per_id(name: str, value: ArrayLike, rows: Ids) -> Array:
    """A number per id, or one for all (then an array of length 1)."""
    column = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if column.ndim != 1 or len(column) not in (1, len(rows)):
        raise ParameterError(f"{name} has {len(column)} values for {len(rows)} ids")
    first_row(name, np.isnan(column), "must be a number")
    return column
