"""Table of a listing: fingerprints of its URLs with their dates, in arrays, and what changed since the last poll."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np
import xxhash
from numpy.typing import NDArray

from recrawl.crawl.formats.sitemaps import ENTRIES
from recrawl.crawl.listings.reading import Listed
from recrawl.errors import StoreError

Keys = NDArray[np.uint64]
_FORM = b"\x01"  # of the packed bytes
_ROW = 16  # bytes per entry


def fingerprint(url: str) -> int:
    """64 bits of a URL.

    >>> fingerprint("https://a.example/") == fingerprint("https://a.example/")
    True
    """
    return xxhash.xxh3_64_intdigest(url.encode("utf-8", "replace"))


def fingerprints(urls: Iterable[str]) -> Keys:
    """The fingerprint of each URL."""
    return np.array([fingerprint(url) for url in urls], np.uint64)


class Difference(NamedTuple):
    """What a listing says that it did not say before: rows of its entries, and keys that it has no more."""

    new: NDArray[np.int64]
    moved: NDArray[np.int64]
    vanished: Keys


class Table:
    """At most 50,000 entries, 16 bytes each; ``keys`` ascend, ``dates`` are NaN where an entry has none."""

    def __init__(self, keys: Keys, dates: NDArray[np.float64]) -> None:
        self.keys, self.dates = keys, dates

    @classmethod
    def of(cls, entries: Sequence[Listed]) -> Self:
        """The table of a listing."""
        keys = fingerprints(one.url for one in entries[:ENTRIES])
        dates = np.array([np.nan if one.at is None else one.at for one in entries[:ENTRIES]], np.float64)
        keys, rows = np.unique(keys, return_index=True)
        return cls(keys, dates[rows])

    def __len__(self) -> int:
        return len(self.keys)

    def difference(self, entries: Sequence[Listed]) -> Difference:
        """What entries say that this table does not.

        >>> before = Table.of([Listed("a", 1.0), Listed("b", 1.0), Listed("c")])
        >>> found = before.difference([Listed("a", 1.0), Listed("b", 2.0), Listed("d")])
        >>> found.new.tolist(), found.moved.tolist(), len(found.vanished)
        ([2], [1], 1)
        """
        keys = fingerprints(one.url for one in entries)
        if not len(self.keys):
            return Difference(np.arange(len(keys)), np.empty(0, np.int64), np.empty(0, np.uint64))
        rows = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        known = self.keys[rows] == keys
        dates = np.array([np.nan if one.at is None else one.at for one in entries], np.float64)
        moved = known & ~np.isnan(dates) & (dates != self.dates[rows])
        vanished = self.keys[~np.isin(self.keys, keys)]
        return Difference(np.flatnonzero(~known), np.flatnonzero(moved), vanished)

    def merged(self, newer: Self) -> Self:
        """This table with all entries of a newer one, as far as there is room."""
        old = ~np.isin(self.keys, newer.keys)
        room = max(ENTRIES - len(newer), 0)
        keys = np.concatenate([newer.keys, self.keys[old][:room]])
        dates = np.concatenate([newer.dates, self.dates[old][:room]])
        order = np.argsort(keys)
        return type(self)(keys[order], dates[order])

    def date(self, url: str) -> float | None:
        """The date of a URL; NaN if it has none, None if it is not listed."""
        row = int(np.searchsorted(self.keys, np.uint64(fingerprint(url))))
        return float(self.dates[row]) if row < len(self) and self.keys[row] == fingerprint(url) else None

    def pack(self) -> bytes:
        """As bytes, compressed."""
        return _FORM + zlib.compress(self.keys.astype("<u8").tobytes() + self.dates.astype("<f8").tobytes(), 1)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """The table of packed bytes; none at all are an empty table."""
        if not packed:
            return cls(np.empty(0, np.uint64), np.empty(0, np.float64))
        try:
            if packed[:1] != _FORM:
                raise ValueError("form")
            unpacker = zlib.decompressobj()
            data = unpacker.decompress(packed[1:], _ROW * ENTRIES + 1)
            n, odd = divmod(len(data), _ROW)
            if odd or not unpacker.eof:
                raise ValueError("length")
            keys, dates = np.frombuffer(data, "<u8", n), np.frombuffer(data, "<f8", n, 8 * n)
        except (zlib.error, ValueError) as problem:
            raise StoreError(f"the table of a listing cannot be read: {problem}") from None
        return cls(keys.astype(np.uint64), dates.astype(np.float64))
