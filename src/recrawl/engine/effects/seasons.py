"""Seasons: at which hours of the day and on which days of the week pages change, held to all hours being alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.effects.kernels import CREDIT, EXPECTED
from recrawl.schedule.exact.access_kernels import HOURS

Array = NDArray[np.float64]

_HELD_BY = 30.0  # each hour, and each day, is held to the others as by so many changes


def flat_clock() -> Array:
    """A clock by which all hours are alike."""
    return np.arange(HOURS + 1, dtype=np.float64)


def fitted_clock(season: Array) -> Array:
    """Time by the season at each full hour of a week: hour of the day times day of the week."""
    table = season.reshape(7, 24, 2)
    by_hour, by_day = (_held(table.sum(axis=axis)) for axis in (0, 1))
    pace = np.outer(by_day, by_hour).ravel()
    return np.concatenate([[0.0], np.cumsum(pace * (HOURS / pace.sum()))])


def _held(counted: Array) -> Array:
    share = counted[:, EXPECTED].sum() and counted[:, CREDIT].sum() / counted[:, EXPECTED].sum()
    return np.asarray((counted[:, CREDIT] + _HELD_BY) / (share * counted[:, EXPECTED] + _HELD_BY))
