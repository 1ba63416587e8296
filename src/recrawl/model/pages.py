"""Pages: what is known about every page, as validated columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError

Array = NDArray[np.float64]

MOST_IMPORTANT = 1e100  # sums and products of larger weights would overflow


class Pages:
    """Columns with one row per page; a scalar stands for a whole column.

    ``recall`` (share of changes that are signalled) and ``false_rate`` (signals per time with no change behind them)
    have shape (n,), or (n, k) for k independent signal sources. ``evidence`` is the gamma shape behind an estimated
    ``change_rate``; infinity means the rate is known exactly. ``cost`` is what one crawl takes from the budget.

    >>> pages = Pages([0.5, 2.0], importance=[1.0, 3.0], recall=0.75, false_rate=[0.0, 0.5])
    >>> pages.missed_rate.tolist()
    [0.125, 0.5]
    >>> pages.precision.tolist()
    [1.0, 0.75]
    """

    __slots__ = ("change_rate", "cost", "evidence", "false_rate", "host", "importance", "recall")

    change_rate: Array
    importance: Array
    recall: Array
    false_rate: Array
    cost: Array
    evidence: Array
    host: NDArray[Any] | None

    def __init__(
        self,
        change_rate: ArrayLike,
        importance: ArrayLike = 1.0,
        recall: ArrayLike = 0.0,
        false_rate: ArrayLike = 0.0,
        host: ArrayLike | None = None,
        cost: ArrayLike = 1.0,
        evidence: ArrayLike = np.inf,
    ) -> None:
        given = {
            "change_rate": change_rate,
            "importance": importance,
            "recall": recall,
            "false_rate": false_rate,
            "cost": cost,
            "evidence": evidence,
        }
        columns = {name: _numbers(name, value) for name, value in given.items()}
        n = _common_length(columns, host)
        n_sources = _common_sources(columns["recall"], columns["false_rate"])
        for name, column in columns.items():
            shape = (n, n_sources) if name in ("recall", "false_rate") and n_sources > 1 else (n,)
            _check_range(name, column)
            object.__setattr__(self, name, _stretch(column, shape))
        object.__setattr__(self, "host", None if host is None else _labels(host, n))

    @classmethod
    def from_quality(
        cls,
        change_rate: ArrayLike,
        importance: ArrayLike = 1.0,
        *,
        precision: ArrayLike,
        recall: ArrayLike,
        host: ArrayLike | None = None,
        cost: ArrayLike = 1.0,
        evidence: ArrayLike = np.inf,
    ) -> Pages:
        """Pages whose signals are described by precision (share of signals with a change behind them) and recall.

        false_rate = recall · change_rate · (1 − precision) / precision.

        >>> Pages.from_quality(0.5, precision=[0.5], recall=0.8).false_rate.tolist()
        [0.4]
        """
        quality = {"precision": _numbers("precision", precision), "recall": _numbers("recall", recall)}
        for name, column in quality.items():
            _check_range(name, column)
        rate = _numbers("change_rate", change_rate)
        share, caught = quality["precision"], quality["recall"]
        if rate.ndim == 1 and max(share.ndim, caught.ndim) == 2:
            rate = rate[:, None]
        try:
            share, caught, rate = np.broadcast_arrays(share, caught, rate)
        except ValueError:
            raise ParameterError("precision, recall and change_rate have different lengths") from None
        _first_bad("precision", share, (share == 0) & (caught * rate > 0), "must be above 0 where recall is")
        with np.errstate(divide="ignore", invalid="ignore"):
            false_rate = np.where(caught * rate > 0, caught * rate * ((1 - share) / share), 0.0)
        return cls(change_rate, importance, caught, false_rate, host, cost, evidence)

    def __len__(self) -> int:
        return len(self.change_rate)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Pages are read-only; use replace({name}=…)")

    def __getitem__(self, rows: Any) -> Pages:
        """The chosen rows: a mask, an index array or a slice."""
        index = slice(rows, rows + 1 or None) if isinstance(rows, (int, np.integer)) else rows
        rows_of: dict[str, Any] = {name: col if col is None else col[index] for name, col in self.columns().items()}
        for name in ("recall", "false_rate", "cost", "evidence"):  # one value for all rows stays one value
            column = getattr(self, name)
            if column.ndim == 1 and column.strides[0] == 0 and len(column) > 1:
                rows_of[name] = column[0]
        return Pages(**rows_of)

    def __repr__(self) -> str:
        sources = f", {self.n_sources} signal sources" if self.n_sources > 1 else ""
        return f"<Pages: {len(self)} rows{sources}>"

    def columns(self) -> Mapping[str, NDArray[Any] | None]:
        """All columns by name, in the order of the constructor's arguments."""
        names = ("change_rate", "importance", "recall", "false_rate", "host", "cost", "evidence")
        return {name: getattr(self, name) for name in names}

    def replace(self, **columns: Any) -> Pages:
        """A copy with some columns exchanged."""
        unknown = sorted(set(columns) - set(self.columns()))
        if unknown:
            raise ParameterError(f"{unknown[0]} is not a column of Pages")
        return Pages(**{**self.columns(), **columns})

    @property
    def n_sources(self) -> int:
        """How many signal sources each page has a column for."""
        return 1 if self.recall.ndim == 1 else self.recall.shape[1]

    @property
    def has_signals(self) -> bool:
        """Whether any page can be signalled at all."""
        return any(
            bool(np.any(column)) for column in (_one_if_constant(self.recall), _one_if_constant(self.false_rate))
        )

    @property
    def missed_rate(self) -> Array:
        """Changes per time that no source signals: Δ·∏(1 − recall)."""
        kept = 1.0 - self.recall
        return self.change_rate * (kept if kept.ndim == 1 else kept.prod(axis=1))

    @property
    def signal_rate(self) -> Array:
        """Signals per time, true and false: recall·Δ + false_rate; shape of ``recall``."""
        return self.recall * _beside(self.change_rate, self.recall) + self.false_rate

    @property
    def precision(self) -> Array:
        """Share of signals with a change behind them; 0 where there are no signals."""
        true_rate = self.recall * _beside(self.change_rate, self.recall)
        rate = true_rate + self.false_rate
        return np.divide(true_rate, rate, out=np.zeros(rate.shape), where=rate > 0)


_LIMITS = {
    "change_rate": (0.0, np.inf, "must be finite and at least 0"),
    "importance": (0.0, MOST_IMPORTANT, f"must be at least 0 and at most {MOST_IMPORTANT:g}"),
    "recall": (0.0, 1.0, "must lie between 0 and 1"),
    "precision": (0.0, 1.0, "must lie between 0 and 1"),
    "false_rate": (0.0, np.inf, "must be finite and at least 0"),
    "cost": (0.0, np.inf, "must be finite and above 0"),
    "evidence": (0.0, np.inf, "must be above 0 (infinity: known exactly)"),
}


def _numbers(name: str, value: ArrayLike) -> Array:
    try:
        column = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is not an array of numbers") from None
    if column.ndim > (2 if name in ("recall", "false_rate", "precision") else 1):
        raise ParameterError(f"{name} has {column.ndim} dimensions; one row per page is expected")
    return column


def _common_length(columns: Mapping[str, Array], host: ArrayLike | None) -> int:
    lengths = {name: len(column) for name, column in columns.items() if column.ndim}
    if host is not None:
        lengths["host"] = len(np.atleast_1d(np.asarray(host)))
    if not lengths:
        return 1
    first = "change_rate" if "change_rate" in lengths else next(iter(lengths))
    for name, length in lengths.items():
        if length != lengths[first]:
            raise ParameterError(f"{name} has {length} rows but {first} has {lengths[first]}")
    if lengths[first] == 0:
        raise ParameterError(f"{first} is empty; at least one page is needed")
    return lengths[first]


def _common_sources(recall: Array, false_rate: Array) -> int:
    widths = {column.shape[1] for column in (recall, false_rate) if column.ndim == 2}
    if len(widths) > 1:
        raise ParameterError("recall and false_rate have a different number of signal sources")
    if 0 in widths:
        raise ParameterError("recall has no signal source; leave it out instead")
    return widths.pop() if widths else 1


def _check_range(name: str, column: Array) -> None:
    low, high, rule = _LIMITS[name]
    bad = ~((column >= low) & (column <= high))
    if name != "evidence":
        bad |= np.isinf(column)
    if name in ("cost", "evidence"):
        bad |= column == 0
    _first_bad(name, column, bad, rule)


def _first_bad(name: str, column: Array, bad: NDArray[np.bool_], rule: str) -> None:
    if not bad.any():
        return
    if column.ndim == 0:
        raise ParameterError(f"{name} is {column[()]}: {rule}")
    place = tuple(int(i) for i in np.argwhere(bad)[0])
    source = f", source {place[1]}" if len(place) == 2 and column.shape[1] > 1 else ""
    raise ParameterError(f"{name}, row {place[0]}{source} is {column[place]}: {rule}")


def _stretch(column: Array, shape: tuple[int, ...]) -> Array:
    if column.ndim == 2 and len(shape) == 1:
        column = column[:, 0]
    elif column.ndim == 1 and len(shape) == 2:
        column = column[:, None]
    if column.shape == shape and column.strides[0] > 0:
        column = np.ascontiguousarray(column).view()
        column.flags.writeable = False
        return column
    return np.broadcast_to(column, shape)


def _labels(host: ArrayLike, n: int) -> NDArray[Any]:
    column = np.atleast_1d(np.asarray(host))
    return np.broadcast_to(column, (n,)) if len(column) != n else column


def _beside(column: Array, other: Array) -> Array:
    return column[:, None] if other.ndim == 2 else column


def _one_if_constant(column: Array) -> Array:
    return column[:1] if column.strides[0] == 0 else column
