"""Arena: names by number, their bytes in one buffer, found by an index of open addressing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.names.kernels import (
    BLOCK_BITS,
    DELETED,
    FREE,
    LONGEST,
    Bytes,
    Ids,
    Index,
    drop_all,
    file_all,
    find_all,
    put_all,
    starts_of,
)
from recrawl.errors import ParameterError

_FEWEST = 16  # slots
_CODEC = "utf-8", "surrogatepass"  # any two texts differ in their bytes


class Packed(NamedTuple):
    """Names one after the other: name j is data[starts[j]:ends[j]]."""

    data: Bytes
    starts: Ids
    ends: Ids

    def take(self, rows: Ids) -> Packed:
        """Some of the names."""
        return Packed(self.data, self.starts[rows], self.ends[rows])

    def texts(self) -> list[str]:
        """The names as texts."""
        view = self.data.data
        spans = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [str(view[first:last], *_CODEC) for first, last in spans]


def pack(names: Sequence[str]) -> Packed:
    """Names as bytes; TypeError if one is not a text.

    >>> pack(["a", "bc"]).texts()
    ['a', 'bc']
    """
    whole = "".join(names)
    if whole.isascii():
        data, sizes = bytearray(whole, "ascii"), np.fromiter(map(len, names), np.int64, len(names))
    else:
        parts = [name.encode(*_CODEC) for name in names]
        data, sizes = bytearray().join(parts), np.fromiter(map(len, parts), np.int64, len(parts))
    ends = np.cumsum(sizes)
    return Packed(np.frombuffer(data, np.uint8), ends - sizes, ends)


class Arena:
    """Names numbered from 0; one that was dropped keeps its number and text but is not found.

    ``bits`` says which bits of fingerprints are used: with few of them, tests see collisions.
    """

    def __init__(self, bits: int = 2**64 - 1) -> None:
        self._index = Index(
            np.zeros(0, np.uint8),
            np.zeros(1, np.uint32),
            np.zeros(1, np.int64),
            np.full(_FEWEST, FREE, np.uint8),
            np.zeros(_FEWEST, np.int32),
            np.array([bits], np.uint64),
        )
        self._counts = np.zeros(2, np.int64)  # names, slots that are or were in use

    def __len__(self) -> int:
        return int(self._counts[0])

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(column.nbytes for column in self._index)

    def find(self, names: Packed) -> Ids:
        """The number of each name, −1 where it has none."""
        out = np.empty(len(names.starts), np.int64)
        find_all(self._index, *names, out)
        return out

    def add(self, names: Packed, *, fresh: bool = False) -> Ids:
        """The number of each name; those that are not there get the next ones, with ``fresh`` all of them."""
        out, sizes = np.empty(len(names.starts), np.int64), names.ends - names.starts
        if len(out) and sizes.max() > LONGEST:
            raise ParameterError(f"a name has {sizes.max()} bytes: at most {LONGEST}")
        self._reserve(len(out), int(sizes.sum()))
        put_all(self._index, self._counts, *names, fresh, out)
        return out

    def drop(self, numbers: Ids) -> None:
        """Names that are not to be found any more."""
        drop_all(self._index, numbers)

    def cut(self, n: int) -> None:
        """Forget all names but the first n, as if they had not come; none of them may have been there before."""
        drop_all(self._index, np.arange(n, len(self)))
        self._counts[0] = n

    def present(self) -> Ids:
        """The numbers by which names are found."""
        return np.sort(self._index.slots[self._index.tags > DELETED]).astype(np.int64)

    def packed(self, numbers: Ids) -> Packed:
        """Names by their numbers; the bytes are those of the arena and not for long."""
        return Packed(self._index.data, self._starts(numbers), self._starts(numbers + 1))

    def texts(self, numbers: Ids) -> list[str]:
        """Names by their numbers."""
        return self.packed(numbers).texts()

    def text(self, number: int) -> str:
        """One name."""
        first, last = self._starts(np.array([number, number + 1])).tolist()
        return str(self._index.data.data[first:last], *_CODEC)

    def saved(self) -> dict[str, Any]:
        """The names (the arrays themselves), and the numbers by which none is found."""
        absent = np.ones(len(self), np.bool_)
        absent[self._index.slots[self._index.tags > DELETED]] = False
        n = len(self) + 1
        return {
            "data": self._index.data[: self._size()],
            "low": self._index.low[:n],
            "block": self._index.block[: _blocks(n)],
            "absent": np.flatnonzero(absent),
        }

    @classmethod
    def load(cls, saved: Mapping[str, Any]) -> Arena:
        """What was saved."""
        arena = cls()
        arena._index = arena._index._replace(**{name: np.array(saved[name]) for name in ("data", "low", "block")})
        n = len(saved["low"]) - 1
        arena._counts[0] = n
        arena._file(np.delete(np.arange(n), saved["absent"]))
        return arena

    def _starts(self, numbers: Ids) -> Ids:
        """Where names begin; of the number after the last one, where that ends."""
        out = np.empty(len(numbers), np.int64)
        starts_of(self._index, np.ascontiguousarray(numbers, np.int64), out)
        return out

    def _size(self) -> int:
        """Bytes of all names."""
        return int(self._starts(self._counts[:1])[0])

    def _reserve(self, n: int, size: int) -> None:
        """Room for n more names of so many bytes."""
        index, (count, used) = self._index, self._counts.tolist()
        self._index = index._replace(
            data=_roomy(index.data, self._size() + size),
            low=_roomy(index.low, count + n + 1),
            block=_roomy(index.block, _blocks(count + n + 1)),
        )
        if 10 * (used + n) > 7 * len(index.tags):
            self._file(self.present(), n)

    def _file(self, numbers: Ids, n: int = 0) -> None:
        """Build the index of these names, with room for n more."""
        room = _FEWEST
        while 10 * (len(numbers) + n) > 7 * room:
            room *= 2
        self._index = self._index._replace(tags=np.full(room, FREE, np.uint8), slots=np.zeros(room, np.int32))
        self._counts[1] = len(numbers)
        file_all(self._index, numbers)


def _roomy(column: NDArray[Any], n: int) -> NDArray[Any]:
    """The column, or a longer one that begins like it; longer by half, so that single names cost little."""
    if n <= len(column):
        return column
    out = np.zeros(max(n, len(column) * 3 // 2), column.dtype)
    out[: len(column)] = column
    return out


def _blocks(n: int) -> int:
    """Blocks of so many names."""
    return (n - 1 >> BLOCK_BITS) + 1


def new_rows(numbers: Ids, before: int) -> Ids:
    """The rows at which numbers from ``before`` on come for the first time, where new ones came in order.

    >>> new_rows(np.array([3, 0, 3, 4]), before=3).tolist()
    [0, 3]
    """
    highest = np.maximum.accumulate(np.maximum(numbers, before - 1))
    return np.flatnonzero(np.diff(highest, prepend=before - 1) > 0)
