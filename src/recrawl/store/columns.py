"""Columns: the engine's rows as cells of a table, and back.

Columns that the table does not have go to ``more`` as JSON, so that a store does not lose what a later engine adds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

SPREAD = {  # columns of several numbers by their parts; a first part below 0: unknown, or among `more`
    "seen": ("seen_time", "seen_changes", "seen_logs"),
    "rate_evidence": ("given_changes", "given_time"),
}
_PLAIN_REALS = (
    "given",
    "fetched_at",
    "change_rate",
    "importance",
    "cost",
    "evidence",
    "watched",
    "own",
    "request_weight",
    "requested_at",
    "watched_from",
    "wait_until",
)
REALS = (*_PLAIN_REALS, *SPREAD["seen"], *SPREAD["rate_evidence"])
WHOLES = ("prior_at", "n_crawls", "n_changes", "failures", "times_gone")
FLAGS = ("fixed_rate", "paused")
_OTHERS = ("url", "gamma")
NUMBERS = (*REALS, *WHOLES, *FLAGS, "shape", "rate")
TABLE = ("url", *NUMBERS, "sources", "more")  # `sources` is no longer used

TIMES = ("fetched_at", "requested_at", "watched_from", "wait_until")  # columns that are instants
_MANY = 20_000


def cells(rows: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """One tuple per page, in the order of TABLE."""
    n = len(rows["url"])
    for first in range(0, n, _MANY):
        part = slice(first, first + _MANY)
        yield from _cells({name: value[part] if is_column(name, rows) else value for name, value in rows.items()})


def _cells(rows: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    n = len(rows["url"])
    gamma = np.asarray(rows["gamma"], np.float64)
    columns: list[Iterable[Any]] = [rows["url"]]
    columns += [np.asarray(rows[name], np.float64).tolist() for name in _PLAIN_REALS]
    columns += [part for name in SPREAD for part in _parts(name, rows).T.tolist()]
    columns += [np.asarray(rows[name], np.int64).tolist() for name in (*WHOLES, *FLAGS)]
    columns += [gamma[:, 0].tolist(), gamma[:, 1].tolist(), [b""] * n]
    yield from zip(*columns, _more(rows, n), strict=True)


def _parts(name: str, rows: Mapping[str, Any]) -> NDArray[np.float64]:
    """A column of several numbers; −1 where it is not known."""
    n, width = len(rows["url"]), len(SPREAD[name])
    values = rows.get(name)
    if isinstance(values, np.ndarray) and values.dtype != object:
        return np.asarray(values, np.float64).reshape(n, width)
    unknown = [-1.0] * width
    return np.array([unknown if row is None else row for row in values or [None] * n], np.float64).reshape(n, width)


def _more(rows: Mapping[str, Any], n: int) -> Sequence[str | None]:
    """What is in the rows but not in the table; a column that no page has is left out if `columns` names it."""
    known = {*_OTHERS, *REALS, *WHOLES, *FLAGS, *SPREAD}
    extra = {name: value for name, value in rows.items() if is_column(name, rows) and name not in known}
    arrays = [value if isinstance(value, np.ndarray) else _values(list(value)) for value in extra.values()]
    used = ["columns" not in rows or _is_used(array) for array in arrays]
    extra, arrays = dict(compress(extra.items(), used)), list(compress(arrays, used))
    if not extra:
        return [None] * n
    texts: dict[bytes, str] = {}  # by what is in them: pages of which nothing is known yet have the same text
    found: list[str] = []
    for key, *row in zip(_keys(arrays, n), *(array.tolist() for array in arrays), strict=True):
        text = texts.get(key)
        if text is None:
            texts[key] = text = json.dumps(dict(zip(extra, row, strict=True)))
        found.append(text)
    return found


def _is_used(array: NDArray[Any]) -> bool:
    return not array.dtype.hasobject or any(value is not None for value in array.tolist())


def _keys(arrays: Sequence[NDArray[Any]], n: int) -> Iterable[bytes]:
    """The bytes of each row; a row with an object that is not None has none to compare, and gets a number."""
    strange = np.zeros(n, np.int64)
    plain = [array for array in arrays if not array.dtype.hasobject]
    for array in (array for array in arrays if array.dtype.hasobject):
        there = np.array([value is not None for value in array.tolist()], np.bool_)
        strange[there] = 1 + np.flatnonzero(there)
    parts = [np.ascontiguousarray(array).reshape(n, -1).view(np.uint8).reshape(n, -1) for array in (strange, *plain)]
    return (row.tobytes() for row in np.concatenate(parts, axis=1))


def is_column(name: str, rows: Mapping[str, Any]) -> bool:
    """Whether a part of the rows has one entry per page: as ``columns`` in them say, else by name and length.

    >>> is_column("prior", {"url": ["a", "b"], "prior": np.zeros((2, 2))}), is_column("url", {"url": ["a"]})
    (False, True)
    """
    if "columns" in rows:
        return name in rows["columns"]
    value = rows[name]
    return name not in WHOLE and isinstance(value, list | np.ndarray) and len(value) == len(rows["url"])


WHOLE = ("settings", "prior", "priors", "scores", "crawls", "refit_at", "hosts", "threshold")


def whole(rows: Mapping[str, Any]) -> str:
    """What belongs to the engine as a whole, without hosts, as JSON."""
    mine = {name: value for name, value in rows.items() if not is_column(name, rows) and name != "hosts"}
    return json.dumps(mine, default=_plain)


def _plain(value: Any) -> Any:
    """What JSON itself cannot write: arrays and numbers of numpy, and mappings of other types."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"rows hold a {type(value).__name__}, which JSON cannot write")


class More:
    """The columns that tables do not have, from the JSON of many pages at a time; equal texts are parsed once."""

    def __init__(self) -> None:
        self._parts: dict[str, list[tuple[int, NDArray[Any]]]] = {}  # by name: first page, values
        self._n = 0

    def take(self, texts: Sequence[str | None]) -> None:
        """The texts of the next pages; None: no such columns."""
        numbers: dict[str | None, int] = {}
        places = np.fromiter((numbers.setdefault(text, len(numbers)) for text in texts), np.int64, len(texts))
        parsed = json.loads(f"[{','.join(text or '{}' for text in numbers)}]")
        for name in dict.fromkeys(name for one in parsed for name in one):
            values = _values([one.get(name) for one in parsed])
            self._parts.setdefault(name, []).append((self._n, values[places]))
        self._n += len(texts)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Each column; of objects, with None where a page does not have it, if some pages do not."""
        return {name: self._column(parts) for name, parts in self._parts.items()}

    def _column(self, parts: list[tuple[int, NDArray[Any]]]) -> NDArray[Any]:
        found = [values for _, values in parts]
        if sum(map(len, found)) == self._n and len({(values.dtype, values.shape[1:]) for values in found}) == 1:
            return np.concatenate(found)
        mixed: NDArray[Any] = np.full(self._n, None, dtype=object)
        for first, values in parts:
            mixed[first : first + len(values)] = _objects(values.tolist())
        return _values(mixed.tolist())


def _values(values: list[Any]) -> NDArray[Any]:
    """Values of one column as an array, of objects where one is missing or they have different lengths."""
    if None not in values:
        try:
            return np.array(values)
        except ValueError:
            pass
    return _objects(values)


def _objects(values: list[Any]) -> NDArray[Any]:
    found: NDArray[Any] = np.empty(len(values), dtype=object)
    for j, value in enumerate(values):
        found[j] = value
    return found


class Gathered:
    """Columns of all pages, filled with many cells at a time: in numpy arrays from the start, to stay small."""

    def __init__(self, n: int) -> None:
        self.urls: list[str] = []
        self._columns: dict[str, NDArray[Any]] = {name: np.empty(n) for name in (*REALS, "shape", "rate")}
        self._columns |= {name: np.empty(n, np.int64) for name in WHOLES}
        self._columns |= {name: np.empty(n, np.bool_) for name in FLAGS}
        self._more, self._n = More(), 0

    def take(self, tuples: list[tuple[Any, ...]]) -> None:
        """The next cells, in the order of TABLE."""
        columns = dict(zip(TABLE, zip(*tuples, strict=True), strict=True))
        self.take_fixed(columns)
        self.take_texts(columns["url"], columns["more"])

    def take_fixed(self, columns: Mapping[str, Any] | NDArray[Any]) -> None:
        """The next numbers and flags by name; those of the same pages as the next texts."""
        n = len(columns[REALS[0]])
        for name, column in self._columns.items():
            column[self._n : self._n + n] = columns[name]
        self._n += n

    def take_texts(self, urls: Sequence[str], more: Sequence[str | None]) -> None:
        """The next URLs, and the JSON of their further columns."""
        self._more.take(more)
        self.urls.extend(urls)

    def loaded(self, saved: str, hosts: Mapping[str, Any]) -> dict[str, Any]:
        """Rows as `Store.load` gives them, with the engine as a whole (JSON) and hosts; None where pages have none."""
        state = json.loads(saved)
        found = {**state, "hosts": hosts, **self.rows()}
        absent: NDArray[Any] = np.full(len(self.urls), None, dtype=object)
        return {**{name: absent for name in state.get("columns", ()) if name not in found}, **found}

    def rows(self) -> dict[str, Any]:
        """The columns by the engine's names."""
        found: dict[str, Any] = {"url": self.urls, **self._columns}
        gamma = np.stack([found.pop("shape"), found.pop("rate")], axis=1)
        more = self._more.columns()
        spread = {name: _joined([found.pop(part) for part in parts], more.get(name)) for name, parts in SPREAD.items()}
        return {**found, "gamma": gamma, **more, **{name: rows for name, rows in spread.items() if rows is not None}}


def _joined(parts: Sequence[NDArray[np.float64]], others: NDArray[Any] | None) -> NDArray[Any] | None:
    """A column from its parts; where these are unknown, from another form of it; None: no page has it."""
    unknown = parts[0] < 0.0
    if not unknown.any():
        return np.stack(parts, axis=1)
    if unknown.all() and others is None:
        return None
    rows = np.stack(parts, axis=1).tolist()
    other = [None] * len(rows) if others is None else others.tolist()
    return _objects([other[j] if lacks else rows[j] for j, lacks in enumerate(unknown.tolist())])
