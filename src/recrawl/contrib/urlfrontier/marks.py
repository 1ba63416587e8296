"""Marks: which texts were seen for an owner, as hashes of 64 bits in one table of open addressing."""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl._compile.jit import jit
from recrawl.engine.names.arena import Packed

Hashes = NDArray[np.uint64]

_FREE, _GONE, _FIRST = np.uint64(0), np.uint64(1), np.uint64(2)  # slots; hashes begin with the last
_FEWEST = 1024  # slots
_SEED = np.uint64(secrets.randbits(64))  # whoever names URLs cannot choose two that collide
_MULTIPLY, _SHIFT, _BYTE = np.uint64(0x9E3779B97F4A7C15), np.uint64(29), np.uint64(8)


@jit
def _mixed(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> _SHIFT)) * _MULTIPLY
    return value ^ (value >> np.uint64(32))


@jit
def _hash_all(owners: NDArray[np.int64], names: Packed, seed: np.uint64, out: Hashes) -> None:
    """The hash of each name of an owner: eight bytes at a time, each mixed into all bits before the next."""
    for j in range(out.size):
        value = _mixed(_mixed(seed ^ np.uint64(owners[j])) + np.uint64(names.ends[j] - names.starts[j]))
        word, n = np.uint64(0), 0
        for k in range(names.starts[j], names.ends[j]):
            word = (word << _BYTE) | np.uint64(names.data[k])
            n += 1
            if n == 8:
                value = _mixed((value ^ word) + seed)
                word, n = np.uint64(0), 0
        out[j] = max(_mixed(_mixed((value ^ word) + seed)), _FIRST)


@jit
def _find(table: Hashes, value: np.uint64) -> int:
    """The slot of a hash, or −1 − (the slot that it can have)."""
    last = table.size - 1
    slot = np.int64(value & np.uint64(last))
    while table[slot] != _FREE:
        if table[slot] == value:
            return int(slot)
        slot = (slot + 1) & last
    return int(-1 - slot)


@jit
def _add_all(table: Hashes, values: Hashes, new: NDArray[np.bool_]) -> None:
    for j in range(values.size):
        slot = _find(table, values[j])
        new[j] = slot < 0
        if slot < 0:
            table[-1 - slot] = values[j]


@jit
def _has_all(table: Hashes, values: Hashes, there: NDArray[np.bool_]) -> None:
    for j in range(values.size):
        there[j] = _find(table, values[j]) >= 0


@jit
def _remove_all(table: Hashes, values: Hashes) -> int:
    """Remove hashes; how many there were of those."""
    n = 0
    for value in values:
        slot = _find(table, value)
        if slot >= 0:
            table[slot] = _GONE
            n += 1
    return n


def hashes(owners: ArrayLike, names: Packed) -> Hashes:
    """A hash of each name of its owner; other ones in another process."""
    out = np.empty(len(names.starts), np.uint64)
    _hash_all(np.asarray(owners, np.int64), names, _SEED, out)
    return out


class Marks:
    """A set of hashes."""

    def __init__(self) -> None:
        self.clear()

    def __len__(self) -> int:
        return self._n

    def clear(self) -> None:
        """Forget all."""
        self._table, self._n, self._used = np.zeros(_FEWEST, np.uint64), 0, 0

    def add(self, values: Hashes) -> NDArray[np.bool_]:
        """Add hashes; which of them are new, each once."""
        new = np.empty(len(values), np.bool_)
        if 2 * (self._used + len(values)) > len(self._table):
            self._rebuild(len(values))
        _add_all(self._table, values, new)
        n = int(np.count_nonzero(new))
        self._n += n
        self._used += n
        return new

    def has(self, values: Hashes) -> NDArray[np.bool_]:
        """Which hashes are there."""
        there = np.empty(len(values), np.bool_)
        _has_all(self._table, values, there)
        return there

    def remove(self, values: Hashes) -> None:
        """Forget hashes."""
        self._n -= _remove_all(self._table, values)

    def _rebuild(self, more: int) -> None:
        """Make room for more, and free the slots of those that were removed."""
        kept, room = self._table[self._table > _GONE], _FEWEST
        while 3 * (len(kept) + more) > room:
            room *= 2
        self._table, self._used = np.zeros(room, np.uint64), len(kept)
        _add_all(self._table, kept, np.empty(len(kept), np.bool_))
