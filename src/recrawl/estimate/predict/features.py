"""Features: the input columns of a predictor, and the matrix of numbers made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.predict.encode import Category, Outcomes, WordRates
from recrawl.estimate.predict.urls import URL_CATEGORIES, URL_NUMBERS, Words, url_columns

Array = NDArray[np.float64]
Table = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Columns:
    """Input columns: numbers, categories, combinations of categories (``crosses``), and whether URLs are read."""

    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    crosses: tuple[tuple[str, ...], ...] = ()
    url: bool = False

    def __post_init__(self) -> None:
        if not self.inputs:
            raise ParameterError("a predictor needs input columns: numbers, categories or url")
        names = self.inputs
        if len(set(names)) != len(names):
            raise ParameterError(f"a column is named twice: {', '.join(names)}")
        for cross in self.crosses:
            lacking = [name for name in cross if name not in self.categories]
            if lacking:
                raise ParameterError(f"{lacking[0]} is crossed but is not a category")

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that a page table must have."""
        return (*(("url",) if self.url else ()), *self.numbers, *self.categories)


@dataclass(eq=False)
class Features:
    """Input columns with the learned encodings of their categories and words."""

    columns: Columns
    categories: list[Category] = field(default_factory=list)
    words: WordRates = field(default_factory=WordRates)

    @property
    def numbers(self) -> tuple[str, ...]:
        """All number columns, including those of the URL."""
        return (*self.columns.numbers, *(URL_NUMBERS if self.columns.url else ()))

    @property
    def names(self) -> list[str]:
        """The names of the features, in the order of the matrix."""
        words = WordRates.names if self.columns.url else ()
        return [*self.numbers, *(category.name for category in self.categories), *words]

    def fit(self, given: Mapping[str, ArrayLike], seen: Outcomes) -> Array:
        """Learn the encodings from rows and outcomes, and return the cross-fitted features of these rows."""
        table, words = self.read(given)
        rate = seen.rate()
        single = (*self.columns.categories, *(URL_CATEGORIES if self.columns.url else ()))
        self.categories = [Category((name,)) for name in single] + [Category(cross) for cross in self.columns.crosses]
        found = [category.fit(table, seen, rate) for category in self.categories]
        if words is not None:
            found += self.words.fit(words, seen, rate)
        return self._matrix(table, found)

    def matrix(self, given: Mapping[str, ArrayLike]) -> Array:
        """The features of rows that were not learned from."""
        table, words = self.read(given)
        found = [category.feature(table) for category in self.categories]
        if words is not None:
            found += self.words.features(words)
        return self._matrix(table, found)

    def read(self, given: Mapping[str, ArrayLike]) -> tuple[Table, Words | None]:
        """The input columns, checked, with those made from URLs. ParameterError if one is missing."""
        lacking = [name for name in self.columns.inputs if name not in given]
        if lacking:
            wanted = ", ".join(self.columns.inputs)
            raise ParameterError(f"the page table lacks {', '.join(lacking)}; the model reads {wanted}")
        table: Table = {name: _number(given[name], name) for name in self.columns.numbers}
        table |= {name: np.asarray(given[name]) for name in self.columns.categories}
        words = None
        if self.columns.url:
            found, words = url_columns(np.asarray(given["url"]).tolist())
            table |= found
        lengths = {name: len(column) for name, column in table.items()}
        if len(set(lengths.values())) > 1:
            raise ParameterError(f"columns differ in length: {', '.join(f'{k} {v}' for k, v in lengths.items())}")
        return table, words

    def _matrix(self, table: Table, found: list[Array]) -> Array:
        return np.ascontiguousarray(np.stack([*(table[name] for name in self.numbers), *found], axis=1))


def _number(column: ArrayLike, name: str) -> Array:
    try:
        values = np.asarray(column, np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is not a column of numbers") from None
    if values.ndim != 1:
        raise ParameterError(f"{name} is not a column of numbers")
    if np.isinf(values).any():
        raise ParameterError(f"{name}, row {int(np.argmax(np.isinf(values)))} is infinite: leave unknown ones empty")
    return values
