"""Encoding of categories and words as change rates (target encoding), cross-fitted by page.

The feature of a category is ln of the change rate of the rows with the same value, shrunk towards the rate of all rows
if there are few. In training, the feature of a row comes from rows of other pages only: a rate that includes the row's
own outcome would look better in training than on new pages. The feature of an unknown value is nan. In training each
value is hidden on a tenth of the pages, so that the model learns to predict without it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.predict.loss import expected_changes
from recrawl.estimate.predict.urls import N_BUCKETS, Words

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Ids = NDArray[np.int64]

PULL = 2.0  # shrinkage of every value towards the rate of all rows, in changes
_FOLDS = 5
_ROUNDS = 6


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes of rows: interval, whether the page changed in it, and the page number."""

    interval: Array
    changed: Flags
    page: Ids

    @property
    def fold(self) -> Ids:
        """The fold of each row's page."""
        return (
            np.asarray((self.page.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)).astype(np.int64)
            % _FOLDS
        )

    def rate(self) -> float:
        """The change rate of all rows together (EM for censored counts)."""
        rate = (self.changed.sum() + 0.5) / self.interval.sum()
        for _ in range(40):
            found = expected_changes(np.full(len(self.interval), np.log(rate)), self.interval, self.changed)
            rate = (found.sum() + 0.5) / self.interval.sum()
        return float(rate)


def value_rates(code: Ids, n_values: int, seen: Outcomes, rate: float, rows: Ids | None = None) -> Array:
    """ln of the change rate of each value: EM for censored rows, shrunk towards ``rate`` by `PULL` changes."""
    whose = np.arange(len(code)) if rows is None else rows
    interval, changed = seen.interval[whose], seen.changed[whose]
    time = np.bincount(code, weights=interval, minlength=n_values) + PULL / rate
    log_rate = np.full(n_values, np.log(rate))
    hit = np.flatnonzero(changed)
    for _ in range(_ROUNDS):
        found = expected_changes(log_rate[code[hit]], interval[hit], changed[hit])
        log_rate = np.log((np.bincount(code[hit], weights=found, minlength=n_values) + PULL) / time)
    return np.asarray(log_rate)


def cross_fitted(code: Ids, n_values: int, seen: Outcomes, rate: float, rows: Ids | None = None) -> Array:
    """ln of the rate of each row's value, from rows of the other folds."""
    fold = seen.fold if rows is None else seen.fold[rows]
    whose = np.arange(len(code)) if rows is None else rows
    feature = np.empty(len(code))
    for k in range(_FOLDS):
        inside = fold == k
        log_rate = value_rates(code[~inside], n_values, seen, rate, whose[~inside])
        feature[inside] = log_rate[code[inside]]
    return feature


@dataclass(eq=False)
class Category:
    """The known values of a column (or of several columns, joined), and ln of the rate of each."""

    columns: tuple[str, ...]
    values: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.str_))
    log_rate: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def name(self) -> str:
        """The feature's name."""
        return " x ".join(self.columns)

    def fit(self, table: dict[str, NDArray[Any]], seen: Outcomes, rate: float) -> Array:
        """Learn the rates of the values and return the cross-fitted feature of these rows."""
        self.values, code = np.unique(joined(table, self.columns), return_inverse=True)
        self.log_rate = value_rates(code, len(self.values), seen, rate)
        return np.where(hidden(seen.page, self.columns), np.nan, cross_fitted(code, len(self.values), seen, rate))

    def code(self, table: dict[str, NDArray[Any]]) -> Ids:
        """The index of each row's value; −1 for an unknown value."""
        column = joined(table, self.columns)
        if len(self.values) == 0 or column.dtype.kind != self.values.dtype.kind:
            return np.full(len(column), -1)
        place = np.minimum(np.searchsorted(self.values, column), len(self.values) - 1)
        return np.where(self.values[place] == column, place, -1)

    def feature(self, table: dict[str, NDArray[Any]]) -> Array:
        """ln of the rate of each row's value; nan for an unknown value."""
        return np.append(self.log_rate, np.nan)[self.code(table)]


@dataclass(eq=False)
class WordRates:
    """ln of the rate of each bucket of hashed words; the features are mean, least and most over a URL's words."""

    log_rate: Array = field(default_factory=lambda: np.zeros(N_BUCKETS))
    unseen: float = 0.0

    names = ("words_mean", "words_least", "words_most")

    def fit(self, words: Words, seen: Outcomes, rate: float) -> list[Array]:
        """Learn the rates of words and return the cross-fitted features."""
        bucket, row = words.bucket.astype(np.int64), words.row
        self.log_rate = value_rates(bucket, N_BUCKETS, seen, rate, row)
        self.unseen = float(np.log(rate))
        return self._pooled(cross_fitted(bucket, N_BUCKETS, seen, rate, row), words)

    def features(self, words: Words) -> list[Array]:
        """The three features of each row."""
        return self._pooled(self.log_rate[words.bucket], words)

    def _pooled(self, value: Array, words: Words) -> list[Array]:
        n = np.diff(words.offset)
        none = n == 0
        if not len(value):
            return [np.full(len(n), self.unseen) for _ in range(3)]
        begin = np.minimum(words.offset[:-1], len(value) - 1)
        total = np.concatenate([[0.0], np.cumsum(value)])
        mean = (total[words.offset[1:]] - total[words.offset[:-1]]) / np.maximum(n, 1)
        pooled = [mean, np.minimum.reduceat(value, begin), np.maximum.reduceat(value, begin)]
        return [np.where(none, self.unseen, column) for column in pooled]


def hidden(page: Ids, columns: tuple[str, ...]) -> Flags:
    """Rows on which a category is hidden in training: a tenth of the pages; a folder also where its host is hidden."""
    if columns == ("url_folder",):
        return hidden(page, ("url_host",)) | hidden(page, ("only the folder",))
    mixed = (page.astype(np.uint64) + np.uint64(crc32("\x1f".join(columns).encode()))) * np.uint64(0x9FB21C651E98DF25)
    return np.asarray((mixed >> np.uint64(32)) % np.uint64(10) == 0)


def joined(table: dict[str, NDArray[Any]], columns: tuple[str, ...]) -> NDArray[Any]:
    """One category column, or several joined into one. Whole numbers stay numbers, everything else becomes text."""
    parts = [_categorical(table[name], name) for name in columns]
    if len(parts) == 1:
        return parts[0]
    if all(part.dtype.kind == "i" and len(part) and part.min() >= 0 and part.max() < 1 << 20 for part in parts):
        code = parts[0]
        for part in parts[1:]:
            code = (code << 20) | part
        return code
    text = parts[0].astype(np.str_)
    for part in parts[1:]:
        text = np.strings.add(np.strings.add(text, "\x1f"), part.astype(np.str_))
    return text


def _categorical(column: NDArray[Any], name: str) -> NDArray[Any]:
    if column.ndim != 1:
        raise ParameterError(f"{name} is not a column")
    if column.dtype.kind in "iub":
        return column.astype(np.int64)
    if column.dtype.kind == "f":
        return np.char.mod("%g", column)
    return np.array(["" if value is None else str(value)[:200] for value in column.tolist()], np.str_)
