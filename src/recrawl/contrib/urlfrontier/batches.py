"""Batches: the URLs of `PutDiscovered` in columns. One pass finds the usual ones; the others are read one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit
from recrawl.contrib.urlfrontier.items import DEFAULT_CRAWL, LONGEST_NAME, LONGEST_URL, Put, read_info
from recrawl.engine.names.arena import Arena, Packed

Bytes = NDArray[np.uint8]
Spans = NDArray[np.int64]

URL, KEY, METADATA, CRAWL = 0, 2, 4, 6  # rows of spans: where each begins, and where it ends in the next
_ROWS = 8
_ITEM, _TEXT = 0x12, 0x0A  # tags: an item of a batch, its URL; those of the other fields follow in steps of 8


@dataclass(frozen=True, slots=True)
class Discovered:
    """URLs that were discovered, in columns. Those that cannot be used are in no crawl (−1)."""

    data: Bytes
    spans: Spans
    crawls: list[str]
    crawl: Spans  # of each URL: which of the crawls

    def __len__(self) -> int:
        return len(self.crawl)

    @classmethod
    def of(cls, puts: Iterable[Put | None]) -> Discovered:
        """Puts in columns; None is one that cannot be used."""
        rows = [("",) * 4 if put is None else (put.url, put.key, put.metadata, put.crawl) for put in puts]
        fields = [field if isinstance(field, bytes) else field.encode() for row in rows for field in row]
        ends = np.cumsum([0, *map(len, fields)], dtype=np.int64)
        spans = np.stack([ends[:-1], ends[1:]]).reshape(2, -1, 4).transpose(2, 0, 1).reshape(_ROWS, -1)
        return cls.at(np.frombuffer(bytearray().join(fields), np.uint8), spans)

    @classmethod
    def at(cls, data: Bytes, spans: Spans) -> Discovered:
        """Those whose fields are at some places; URLs without a crawl cannot be used."""
        names, crawl = Packed(data, spans[CRAWL], spans[CRAWL + 1]), np.zeros(spans.shape[1], np.int64)
        if len(crawl) and _are_equal(names):
            crawls = [data[names.starts[0] : names.ends[0]].tobytes().decode()]
        else:
            arena = Arena()
            crawl = arena.add(names)
            crawls = arena.texts(np.arange(len(arena)))
        if "" in crawls:
            crawl[crawl == crawls.index("")] = -1
        return cls(data, spans, crawls, crawl)

    def take(self, rows: Sequence[int] | Spans) -> Discovered:
        """Some of them."""
        return replace(self, spans=np.take(self.spans, rows, axis=1), crawl=np.take(self.crawl, rows))

    def column(self, field: int) -> Packed:
        """One field of all."""
        return Packed(self.data, self.spans[field], self.spans[field + 1])

    def put(self, row: int) -> Put:
        """One of them."""
        url, key, metadata = (
            self.data[self.spans[field, row] : self.spans[field + 1, row]].tobytes() for field in (URL, KEY, METADATA)
        )
        return Put(self.crawls[self.crawl[row]], key.decode(), url.decode(), None, metadata)


def read_batches(batches: Sequence[Any]) -> Discovered:
    """The URLs of messages, one after the other, as `read_info` reads each."""
    parts = [batch.SerializeToString() for batch in batches]
    sizes = np.array([len(batch.items) for batch in batches], np.int64)
    data = np.frombuffer(bytearray().join([*parts, DEFAULT_CRAWL.encode()]), np.uint8)
    spans = np.zeros((_ROWS, int(sizes.sum())), np.int64)
    _scan(data, np.cumsum([len(part) for part in parts], dtype=np.int64), np.cumsum(sizes) - sizes, spans)
    odd = np.flatnonzero(spans[URL + 1] == 0)
    if len(odd):
        infos = [info for batch in batches for info in batch.items]
        others = Discovered.of([read_info(infos[row], None) for row in odd.tolist()])
        spans[:, odd] = others.spans + len(data)
        data = np.concatenate([data, others.data])
    return Discovered.at(data, spans)


def prefixed(numbers: Spans, names: Packed) -> Packed:
    """Names with a number before each, as bytes."""
    return Packed(*_prefix_all(numbers, names))


@jit
def _prefix_all(numbers: Spans, names: Packed) -> tuple[Bytes, Spans, Spans]:
    starts, ends, at = np.empty(numbers.size, np.int64), np.empty(numbers.size, np.int64), 0
    for j in range(numbers.size):
        starts[j] = at
        at += 8 + names.ends[j] - names.starts[j]
        ends[j] = at
    data = np.empty(at, np.uint8)
    for j in range(numbers.size):
        for k in range(8):
            data[starts[j] + k] = (numbers[j] >> (8 * k)) & 255
        for k in range(names.ends[j] - names.starts[j]):
            data[starts[j] + 8 + k] = names.data[names.starts[j] + k]
    return data, starts, ends


@jit
def _are_equal(names: Packed) -> bool:
    """Whether all names are the same."""
    first, size, equal = names.starts[0], names.ends[0] - names.starts[0], True
    for j in range(1, names.starts.size):
        equal = equal and names.ends[j] - names.starts[j] == size
        for k in range(size if equal else 0):
            equal = equal and names.data[names.starts[j] + k] == names.data[first + k]
    return equal


@jit
def _size(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """A size and where it ends; it ends after ``end`` if it is none."""
    size, shift = 0, 0
    while at < end and shift < 35:
        size |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return size, at
    return 0, end + 1


@jit
def _is_usual(data: Bytes, start: int, end: int, most: int) -> bool:
    """Whether a text is short, of ASCII, and without spaces and control characters."""
    if end - start > most:
        return False
    usual = True
    for k in range(start, end):
        usual &= 0x20 < data[k] < 0x7F
    return usual


@jit
def _host_end(data: Bytes, start: int, end: int) -> int:
    """Where the host of an http or https URL ends; −1: it is none. The host begins after the second slash."""
    k = start
    for byte in (104, 116, 116, 112):  # http
        if k >= end or data[k] != byte:
            return -1
        k += 1
    if k < end and data[k] == 115:
        k += 1
    for byte in (58, 47, 47):  # ://
        if k >= end or data[k] != byte:
            return -1
        k += 1
    while k < end and data[k] != 58 and data[k] != 47 and data[k] != 63 and data[k] != 38:  # :/?&
        k += 1
    return k


@jit
def _scan_item(data: Bytes, at: int, end: int, spans: Spans) -> bool:
    """Find the fields of an item; False: it is not as most are."""
    while at < end:
        column = (data[at] - _TEXT) >> 2
        if data[at] & 7 != 2 or column < URL or column > CRAWL:
            return False
        size, first = _size(data, at + 1, end)
        last = first + size
        if last > end or (spans[column + 1] and (column != METADATA or spans[column + 1] != at)):
            return False
        if column != METADATA:
            spans[column] = first
        elif not spans[column + 1]:
            spans[column] = at
        spans[column + 1] = last
        at = last
    url, url_end = spans[URL], spans[URL + 1]
    host_end = _host_end(data, url, url_end)
    if host_end < 0 or not _is_usual(data, url, url_end, LONGEST_URL):
        return False
    if spans[KEY] == spans[KEY + 1]:
        spans[KEY], spans[KEY + 1] = url + 7 + (data[url + 4] == 115), host_end
    key, crawl = spans[KEY : KEY + 2], spans[CRAWL : CRAWL + 2]
    usual = key[0] < key[1] and _is_usual(data, key[0], key[1], LONGEST_NAME)
    return usual and _is_usual(data, crawl[0], crawl[1], LONGEST_NAME)


@jit
def _scan(data: Bytes, ends: Spans, rows: Spans, out: Spans) -> None:
    """Where the fields of items are, whose messages end at ``ends`` and begin in ``rows``; nowhere: ask `read_info`.

    The messages are ones of protobuf; after the last comes the name of the crawl of items that name none.
    """
    at, item = 0, np.zeros(_ROWS, np.int64)
    for end, row in zip(ends, rows):  # noqa: B905 - a kernel
        while at < end:
            size, first = _size(data, at + 1, end)
            if data[at] & 7 != 2 or first + size > end:  # no field of this message; what follows is odd
                break
            if data[at] == _ITEM:
                item[:] = 0
                if _scan_item(data, first, first + size, item):
                    if item[CRAWL] == item[CRAWL + 1]:
                        item[CRAWL], item[CRAWL + 1] = ends[-1], data.size
                    out[:, row] = item
                row += 1
            at = first + size
        at = end


@jit
def records_of(data: Bytes, spans: Spans, rows: Spans) -> tuple[Bytes, NDArray[np.uint32]]:
    """The URLs of rows one after the other, each with its metadata after a zero byte if it has any; where each ends."""
    size = rows.size
    for row in rows:
        size += spans[URL + 1, row] - spans[URL, row] + spans[METADATA + 1, row] - spans[METADATA, row]
    at, out, ends = 0, np.empty(size, np.uint8), np.empty(rows.size, np.uint32)
    for j, row in enumerate(rows):
        for k in range(spans[URL, row], spans[URL + 1, row]):
            out[at] = data[k]
            at += 1
        if spans[METADATA, row] < spans[METADATA + 1, row]:
            out[at] = 0
            at += 1
        for k in range(spans[METADATA, row], spans[METADATA + 1, row]):
            out[at] = data[k]
            at += 1
        ends[j] = at
    return out[:at], ends
