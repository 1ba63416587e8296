"""Outcomes: what is recorded of crawls that ended. Policies share these keywords and their checks."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.schedule.table import column_of, flags_of, options_of

Flags = NDArray[np.bool_]
_NONE: dict[str, Any] = {"changed": None, "failed": None, "gone": None, "as_of": None}


class Outcomes(TypedDict, total=False):
    """Keywords of ``record``, one value per id or one for all; `Policy.record` describes them."""

    changed: ArrayLike | None
    as_of: ArrayLike | None
    failed: ArrayLike | None
    gone: ArrayLike | None


class Ended(NamedTuple):
    """Outcomes as columns, one value per id; what was not given is false, and ``as_of`` infinity."""

    changed: Flags
    failed: Flags
    gone: Flags
    as_of: NDArray[np.float64]


def ended_of(outcomes: Outcomes, n: int) -> Ended:
    """Check the outcomes of ``n`` ids; ParameterError names the first wrong column.

    >>> ended = ended_of({"changed": [True, False], "gone": False}, 2)
    >>> ended.changed.tolist(), ended.failed.tolist(), ended.as_of.tolist()
    ([True, False], [False, False], [inf, inf])
    """
    given = options_of(_NONE, outcomes)
    changed, failed, gone = (flags_of(name, given[name], n) for name in ("changed", "failed", "gone"))
    return Ended(changed, failed, gone, column_of("as_of", given["as_of"], n, math.inf))
