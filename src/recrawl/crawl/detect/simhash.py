"""Simhash: 64 bits of which texts that are nearly the same share nearly all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GRAM = 4  # characters
_MOST = 1 << 20  # characters that are looked at
_BLOCK = 1 << 14  # features at a time
_FIRST, _SECOND = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)  # the mix of MurmurHash3's end
_STEP, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(33)


def simhash(text: bytes) -> int:
    """The simhash (Charikar 2002) of the features of a text: its sequences of four characters, blanks left out.

    Bit b is set where more features have it set than not; features are mixed to 64 bits each.

    >>> f"{simhash(b'abcd'):016x}"
    '9798a50ae9f9eb97'
    """
    letters = "".join(text.decode("utf-8", "replace").split())[:_MOST].encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(letters, np.uint32).astype(np.uint64)
    if not len(codes):
        return 0
    balance = np.zeros(64, np.int64)
    n = max(len(codes) - _GRAM + 1, 1)
    for first in range(0, n, _BLOCK):
        part = codes[first : first + _BLOCK + _GRAM - 1]
        mixed = _mixed(part)
        bits = np.unpackbits(mixed.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        balance += 2 * bits.sum(axis=0, dtype=np.int64) - len(mixed)
    return int(np.packbits(balance > 0, bitorder="little").view(np.uint64)[0])


def _mixed(codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """64 bits for every four characters in a row; for fewer, for all there are."""
    n = max(len(codes) - _GRAM + 1, 1)
    key = np.zeros(n, np.uint64)
    for k in range(min(_GRAM, len(codes))):
        key = (key + codes[k : k + n]) * _STEP
    for factor in (_FIRST, _SECOND):
        key = (key ^ (key >> _HALF)) * factor
    return np.ascontiguousarray(key ^ (key >> _HALF), "<u8")


def differing(a: int, b: int) -> int:
    """How many of 64 bits differ.

    >>> differing(0b1011, 0b0010)
    2
    """
    return (a ^ b).bit_count()
