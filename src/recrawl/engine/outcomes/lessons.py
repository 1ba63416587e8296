"""Lessons: what an engine's own pages teach about all pages, as sums that engines of other pages can add to their own.

Pages of a host lie in one shard, so that the tables and clocks of hosts and folders stay there. What is fitted to all
pages is fitted from sums: the table of all rates (a count per rate), the likelihood of each pair of strengths, the bins
of the clock of all pages, the likelihood of the weights of clocks, and per source of signals the statistics and the
posteriors that its tables are made of. Each engine publishes the sums of its own pages alone; with those of the others
added, its fits are those of one engine with all pages.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self, get_type_hints

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError

Array = NDArray[np.float64]

_PACKED = 256  # numbers from which on an array is compressed


@dataclass(frozen=True)
class _Sums:
    """Arrays and numbers with a form for JSON."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `of` is the way back."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self)}

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> Self:
        """The sums of `as_dict`."""
        kinds = get_type_hints(cls)
        missing = [one.name for one in fields(cls) if one.name not in saved]
        if missing:
            raise ParameterError(f"lessons have no {missing[0]}")
        return cls(**{one.name: _read(kinds[one.name], saved[one.name]) for one in fields(cls)})


@dataclass(frozen=True)
class ClockLessons(_Sums):
    """The clock of all pages: changes found and expected by bins, and the likelihood of the weights of clocks."""

    span: float  # width of a bin
    newest: int  # number of the last bin
    found: Array  # (bins,), oldest first
    expected: Array
    usual: Array  # (2,): changes found and expected in the long run
    slope: Array  # (terms,)
    curvature: Array  # (terms, terms)

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> Self:
        """The sums of `as_dict`; those of earlier versions say nothing about weights."""
        n = len(saved.get("credit", ()))
        return super().of({"slope": np.zeros(n), "curvature": np.zeros((n, n)), **saved} if n else saved)


@dataclass(frozen=True)
class SourceLessons(_Sums):
    """One source of signals."""

    statistics: Array  # sums over pages
    counts: Array  # (2, bins, rates, classes): sums of posteriors, without repetitions and with them
    evidence: Array  # (3,): ln evidence of both, and the sum of the squared differences by page
    score: Array  # (2,): by how much signals have predicted outcomes better, as the source's gate counts it


@dataclass(frozen=True)
class Lessons(_Sums):
    """What the pages of one engine teach about all pages."""

    day: float
    pages: int
    budget: float  # crawls per time; 0: none
    crawls: int  # outcomes learned from
    table: Array  # (rates,): how many pages have each change rate, in units of 1/255
    strengths: Array  # (hosts, folders): ln likelihood of strengths; 0 before the first fit
    clocks: ClockLessons
    sources: dict[str, SourceLessons] = field(default_factory=dict)  # by name


def _plain(value: Any) -> Any:
    if isinstance(value, _Sums):
        return value.as_dict()
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if not isinstance(value, np.ndarray):
        return value
    if value.size < _PACKED:
        return value.tolist()
    packed = zlib.compress(np.ascontiguousarray(value, "<f8").tobytes())
    return {"shape": list(value.shape), "f8": base64.b64encode(packed).decode()}


def _read(kind: Any, value: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, _Sums):
        return kind.of(value)
    if getattr(kind, "__origin__", None) is dict:
        return {str(name): SourceLessons.of(one) for name, one in value.items()}
    if kind in (int, float):
        return kind(value)
    if isinstance(value, Mapping):
        return np.frombuffer(zlib.decompress(base64.b64decode(value["f8"])), "<f8").reshape(value["shape"]).copy()
    return np.array(value, np.float64)


def alike(others: Sequence[Lessons], day: float, table: Array) -> list[Lessons]:
    """The lessons that go with an engine: of the same day and the same grid of rates."""
    strange = [one for one in others if one.day != day or one.table.shape != table.shape]
    if strange:
        raise ParameterError("lessons of an engine with another day or other rates cannot be used")
    return list(others)
