"""Memory that is not used costs nothing: zeros that were never written take none, and freed memory is given back."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 16  # bytes looked at together


def larger(column: NDArray[Any], room: int) -> NDArray[Any]:
    """A column with room for more rows, which are 0; zeros are not copied: pages of memory without others stay unused.

    >>> larger(np.array([1.0, 0.0]), 3)
    array([1., 0., 0.])
    """
    out = np.zeros((room, *column.shape[1:]), column.dtype)
    rows = max(_BLOCK // max(column.itemsize * int(np.prod(column.shape[1:])), 1), 1)
    for first in range(0, len(column), rows):
        block = column[first : first + rows]
        if block.any():
            out[first : first + len(block)] = block
    return out


def give_back() -> None:
    """Give memory that was freed back to the system, where the C library keeps it for later."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # not in every C library
        if trim is not None:
            trim(0)
