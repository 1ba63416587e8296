"""Observations: the crawl outcomes of many pages, as columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


class Observations:
    """Crawl outcomes of many pages: rows ``offset[i]`` to ``offset[i + 1]`` belong to page i, oldest first.

    ``interval`` is the time since the page's previous crawl (any unit), ``changed`` whether the page changed in it,
    ``signals`` how many change signals arrived in between: shape (m,), or (m, k) for k sources. Intervals of length 0
    (duplicate crawl times) are allowed and carry no information.

    >>> seen = Observations([0, 2, 3], interval=[1.0, 2.0, 5.0], changed=[True, False, False])
    >>> len(seen), seen.n_crawls.tolist(), seen.total_time.tolist()
    (2, [2, 1], [3.0, 5.0])
    """

    __slots__ = ("changed", "interval", "offset", "signals")

    offset: Rows
    interval: Array
    changed: NDArray[np.bool_]
    signals: Array | None

    def __init__(
        self, offset: ArrayLike, interval: ArrayLike, changed: ArrayLike, signals: ArrayLike | None = None
    ) -> None:
        self.interval = _column("interval", interval)
        self.changed = _flags(changed, len(self.interval))
        self.offset = _offsets(offset, len(self.interval))
        self.signals = None if signals is None else _signals(signals, len(self.interval))

    @classmethod
    def from_pages(
        cls,
        page: ArrayLike,
        interval: ArrayLike,
        changed: ArrayLike,
        signals: ArrayLike | None = None,
        *,
        n_pages: int | None = None,
    ) -> Observations:
        """Observations from rows with page numbers, in any order of pages; each page's rows oldest first.

        >>> Observations.from_pages([1, 0, 1], [1.0, 2.0, 3.0], [True, False, True]).interval.tolist()
        [2.0, 1.0, 3.0]
        """
        rows = np.asarray(page, dtype=np.int64)
        n = int(rows.max(initial=-1)) + 1 if n_pages is None else n_pages
        if rows.ndim != 1 or (len(rows) and (rows.min() < 0 or rows.max() >= n)):
            raise ParameterError("page must be a column of page numbers from 0 on")
        order = np.argsort(rows, kind="stable")
        offset = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
        taken = [np.asarray(column)[order] for column in (interval, changed)]
        return cls(offset, taken[0], taken[1], None if signals is None else np.asarray(signals)[order])

    def __len__(self) -> int:
        return len(self.offset) - 1

    def __repr__(self) -> str:
        return f"<Observations: {len(self.interval)} crawls of {len(self)} pages>"

    def __getitem__(self, pages: ArrayLike) -> Observations:
        """The chosen pages: a mask or page numbers."""
        chosen = np.arange(len(self))[np.asarray(pages)]
        length = self.n_crawls[chosen]
        offset = np.concatenate([[0], np.cumsum(length)])
        rows = np.repeat(self.offset[chosen] - offset[:-1], length) + np.arange(offset[-1])
        signals = None if self.signals is None else self.signals[rows]
        return Observations(offset, self.interval[rows], self.changed[rows], signals)

    @property
    def page(self) -> Rows:
        """The page number of every row."""
        return np.repeat(np.arange(len(self)), self.n_crawls)

    @property
    def n_crawls(self) -> Rows:
        """Number of intervals per page."""
        return np.diff(self.offset)

    @property
    def n_changes(self) -> Rows:
        """Number of changed intervals per page."""
        return self.per_page(self.changed).astype(np.int64)

    @property
    def total_time(self) -> Array:
        """Sum of the intervals per page."""
        return self.per_page(self.interval)

    @property
    def n_sources(self) -> int:
        """Number of signal sources; 0 without signals."""
        return 0 if self.signals is None else self.signals.shape[1]

    def per_page(self, column: ArrayLike) -> Array:
        """Sum of a column of rows over every page."""
        total = np.zeros(len(self))
        crawled = self.n_crawls > 0
        if crawled.any():
            total[crawled] = np.add.reduceat(column, self.offset[:-1][crawled], dtype=np.float64)
        return total

    def unit(self) -> float:
        """A time of which a sample of the intervals are small whole multiples (such as a day), or 0."""
        sample = self.interval[:: max(1, len(self.interval) // 1000)]
        sample = sample[sample > 0]
        if not len(sample):
            return 0.0
        smallest = float(sample.min())
        multiple = np.rint(sample / smallest)
        return smallest if bool(np.all((multiple * smallest == sample) & (multiple <= 8))) else 0.0


def _column(name: str, value: ArrayLike) -> Array:
    try:
        column = np.ascontiguousarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is not an array of numbers") from None
    if column.ndim != 1:
        raise ParameterError(f"{name} has {column.ndim} dimensions; one row per crawl is expected")
    bad = ~((column >= 0) & (column < np.inf))
    if bad.any():
        row = int(np.argmax(bad))
        raise ParameterError(f"{name}, row {row} is {column[row]}: must be finite and at least 0")
    return column


def _flags(value: ArrayLike, m: int) -> NDArray[np.bool_]:
    column = np.asarray(value)
    if column.shape != (m,):
        raise ParameterError(f"changed has {len(np.atleast_1d(column))} rows but interval has {m}")
    if column.dtype != np.bool_:
        bad = ~np.isin(column, (0, 1))
        if bad.any():
            row = int(np.argmax(bad))
            raise ParameterError(f"changed, row {row} is {column[row]}: must be true or false")
    return np.ascontiguousarray(column, dtype=np.bool_)


def _offsets(value: ArrayLike, m: int) -> Rows:
    offset = np.ascontiguousarray(value, dtype=np.int64)
    if offset.ndim != 1 or len(offset) < 1 or offset[0] != 0 or offset[-1] != m:
        raise ParameterError(f"offset must be one column from 0 to the number of rows, {m}")
    falls = np.diff(offset) < 0
    if falls.any():
        raise ParameterError(f"offset, row {int(np.argmax(falls)) + 1} is below the row before")
    return offset


def _signals(value: ArrayLike, m: int) -> Array:
    counts = np.asarray(value, dtype=np.float64)
    if counts.ndim not in (1, 2) or len(counts) != m:
        raise ParameterError(f"signals must have one row per crawl, {m}, and one column per source")
    counts = counts[:, None] if counts.ndim == 1 else counts
    bad = ~((counts >= 0) & (counts < np.inf))
    if bad.any():
        row, source = (int(i) for i in np.argwhere(bad)[0])
        raise ParameterError(f"signals, row {row}, source {source} is {counts[row, source]}: must be a count")
    return np.ascontiguousarray(counts)
