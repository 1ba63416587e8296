"""The index of names: open addressing over fingerprints, with the bytes of all names in one buffer."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit

Bytes = NDArray[np.uint8]
Ids = NDArray[np.int64]

FREE, DELETED, _TAGS = 0, 1, 254  # tags of slots; those of names follow
BLOCK_BITS = 12  # of 4,096 names, the place of the first is kept in full
LONGEST = (1 << (32 - BLOCK_BITS)) - 1  # bytes of a name, so that 32 bits number the bytes of a block
_OFFSET, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_MIX, _HALF, _TOP = np.uint64(0xFF51AFD7ED558CCD), np.uint64(32), np.uint64(56)
_LOW = np.uint64(0xFFFFFFFF)


class Index(NamedTuple):
    """Name i is data[start_of(i):start_of(i + 1)]; a slot holds a number, its tag eight bits of the fingerprint."""

    data: Bytes
    low: NDArray[np.uint32]  # the lower half of the start of each name; of one more, the end of the last
    block: Ids  # the start of the first name of each block
    tags: Bytes
    slots: NDArray[np.int32]
    bits: NDArray[np.uint64]  # one number: which bits of fingerprints are used


@inline
def start_of(index: Index, number: int) -> int:
    """Where a name begins; of the number after the last one, where that ends."""
    first = index.block[number >> BLOCK_BITS]
    return int(first + np.int64((np.uint64(index.low[number]) - np.uint64(first)) & _LOW))


@inline
def _set_start(index: Index, number: int, start: int) -> None:
    if number & ((1 << BLOCK_BITS) - 1) == 0:
        index.block[number >> BLOCK_BITS] = start
    index.low[number] = np.uint32(np.uint64(start) & _LOW)


@jit
def fingerprint(data: Bytes, start: int, end: int) -> np.uint64:
    """64 bits that differ for most names: FNV-1a, then mixed so that the low bits depend on all bytes."""
    value = _OFFSET
    for k in range(start, end):
        value = (value ^ np.uint64(data[k])) * _PRIME
    value = (value ^ (value >> _HALF)) * _MIX
    return value ^ (value >> _HALF)


@jit
def _find(index: Index, data: Bytes, start: int, end: int, value: np.uint64) -> int:
    """The slot of a name, or −1 − (the slot that it can have)."""
    last = index.tags.size - 1
    tag = np.uint8(2 + np.int64(value >> _TOP) % _TAGS)
    slot = np.int64(value & np.uint64(last))
    while index.tags[slot] != FREE:
        if index.tags[slot] == tag:
            number = int(index.slots[slot])
            first = start_of(index, number)
            if start_of(index, number + 1) - first == end - start:
                k = 0
                while k < end - start and index.data[first + k] == data[start + k]:
                    k += 1
                if k == end - start:
                    return int(slot)
        slot = (slot + 1) & last
    return int(-1 - slot)


@jit
def _put(index: Index, slot: int, number: int, value: np.uint64) -> None:
    index.tags[slot] = np.uint8(2 + np.int64(value >> _TOP) % _TAGS)
    index.slots[slot] = number


@jit
def find_all(index: Index, data: Bytes, starts: Ids, ends: Ids, out: Ids) -> None:
    """The number of each name; −1: it is not there."""
    for j in range(starts.size):
        value = fingerprint(data, starts[j], ends[j]) & index.bits[0]
        slot = _find(index, data, starts[j], ends[j], value)
        out[j] = index.slots[slot] if slot >= 0 else -1


@jit
def put_all(index: Index, counts: Ids, data: Bytes, starts: Ids, ends: Ids, fresh: bool, out: Ids) -> None:
    """Number names that are not there; there must be room. With ``fresh`` names that are there get new numbers too.

    ``counts`` are how many names and slots are in use, before and after.
    """
    for j in range(starts.size):
        value = fingerprint(data, starts[j], ends[j]) & index.bits[0]
        slot = _find(index, data, starts[j], ends[j], value)
        if slot >= 0 and not fresh:
            out[j] = index.slots[slot]
            continue
        number = counts[0]
        if slot < 0:
            slot = -1 - slot
            counts[1] += 1
        _put(index, slot, number, value)
        at = start_of(index, number)
        for k in range(ends[j] - starts[j]):
            index.data[at + k] = data[starts[j] + k]
        _set_start(index, number + 1, at + ends[j] - starts[j])
        counts[0] += 1
        out[j] = number


@jit
def drop_all(index: Index, numbers: Ids) -> None:
    """Let names not be found any more, where they are still found by these numbers."""
    for number in numbers:
        start, end = start_of(index, number), start_of(index, number + 1)
        value = fingerprint(index.data, start, end) & index.bits[0]
        slot = _find(index, index.data, start, end, value)
        if slot >= 0 and index.slots[slot] == number:
            index.tags[slot] = DELETED


@jit
def file_all(index: Index, numbers: Ids) -> None:
    """Put names with their numbers into an empty index."""
    last = index.tags.size - 1
    for number in numbers:
        value = fingerprint(index.data, start_of(index, number), start_of(index, number + 1)) & index.bits[0]
        slot = np.int64(value & np.uint64(last))
        while index.tags[slot] != FREE:
            slot = (slot + 1) & last
        _put(index, int(slot), number, value)


@jit
def starts_of(index: Index, numbers: Ids, out: Ids) -> None:
    """Where names begin."""
    for j in range(numbers.size):
        out[j] = start_of(index, numbers[j])


@jit
def link(group: NDArray[np.int32], newest: NDArray[np.int32], before: NDArray[np.int32], first: int) -> None:
    """Chain the members of groups, from the newest to the oldest; ``group`` is that of members from ``first`` on."""
    for j in range(group.size):
        before[first + j] = newest[group[j]]
        newest[group[j]] = first + j


@jit
def chain(newest: int, before: NDArray[np.int32]) -> NDArray[np.int64]:
    """The members of a chain that ``link`` made, from the oldest to the newest."""
    n, member = 0, newest
    while member >= 0:
        n, member = n + 1, before[member]
    out = np.empty(n, np.int64)
    member = newest
    while n > 0:
        n -= 1
        out[n] = member
        member = before[member]
    return out
