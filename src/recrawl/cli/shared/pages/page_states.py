"""Pages of a database as a table, and back: what `recrawl export --pages` writes and `recrawl import --pages` reads."""

from __future__ import annotations

import time
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.cli.shared.files.columns import UNIT, unit_of
from recrawl.cli.shared.files.tables import Table, read_table
from recrawl.engine import Engine
from recrawl.engine.beliefs.beliefs import estimated_seen
from recrawl.engine.rows import RATE_EVIDENCE
from recrawl.engine.views.expected import expected_pages
from recrawl.errors import ParameterError
from recrawl.model.budget import unit_seconds
from recrawl.urls import canonical

Array = NDArray[np.float64]

_DAY = 86400.0
_TIMES = ("fetched_at", "wait_until")
_COUNTS = ("n_crawls", "n_changes", "failures", "times_gone")
_FLAGS = ("paused", "given_rate")
PAGE = {
    "url": "string",
    "importance": "double",
    "change_rate": "double",
    UNIT: "string",
    "evidence": "double",
    "recall": "double",
    "false_rate": "double",
    "given_rate": "bool",
    "n_crawls": "int64",
    "n_changes": "int64",
    "watched": "double",
    "fetched_at": "double",
    "failures": "int64",
    "times_gone": "int64",
    "wait_until": "double",
    "paused": "bool",
}
_TRUE, _FALSE = ("true", "1", "1.0"), ("false", "0", "0.0", "")
_STRONGEST = 1e9  # evidence of a rate that is known


def page_rows(engine: Engine, now: float) -> Iterator[tuple[Any, ...]]:
    """One row per page, in the order of PAGE; rates per day, as forecasts use them. Empty cells are None."""
    ids = engine.ids()
    if len(ids) == 0:
        return
    rows, pages = engine.rows(ids), expected_pages(engine, ids)
    recall, false_rate = (np.reshape(column, (len(ids), -1))[:, :1] for column in (pages.recall, pages.false_rate))
    columns = {
        **{name: rows[name] for name in ("url", *_COUNTS, "watched", "paused")},
        "importance": pages.importance,
        "change_rate": pages.change_rate * _DAY,
        UNIT: ["day"] * len(ids),
        "evidence": pages.evidence,
        "recall": recall.ravel() if recall.size else np.zeros(len(ids)),
        "false_rate": false_rate.ravel() * _DAY if false_rate.size else np.zeros(len(ids)),
        "given_rate": rows["fixed_rate"],
        "fetched_at": _cells(rows["fetched_at"]),
        "wait_until": _cells(rows["wait_until"]),
    }
    plain = [column.tolist() if isinstance(column, np.ndarray) else column for column in map(columns.get, PAGE)]
    yield from zip(*plain, strict=True)


def _cells(column: Array) -> list[float | None]:
    """Times; None for "never" (−infinity)."""
    return [value if there else None for value, there in zip(column.tolist(), np.isfinite(column), strict=True)]


@dataclass(frozen=True)
class PageStates:
    """A table of pages; ``rate`` is the change rate per second and None if the table has none."""

    urls: list[str]
    importance: Array
    rate: Array | None
    evidence: Array
    watched: Array
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)  # counts, times, flags

    def part(self, urls: Container[str]) -> PageStates:
        """Some of the pages."""
        rows = np.flatnonzero([url in urls for url in self.urls])
        rate = None if self.rate is None else self.rate[rows]
        columns = {name: column[rows] for name, column in self.columns.items()}
        mine = [self.urls[k] for k in rows]
        return PageStates(mine, self.importance[rows], rate, self.evidence[rows], self.watched[rows], columns)

    @property
    def learned(self) -> NDArray[np.bool_]:
        """Which pages have a rate that crawls may move with that of other pages."""
        return np.asarray(~self.columns["given_rate"], np.bool_)


def read_page_states(path: Path) -> PageStates:
    """The pages of a table. Only ``url`` is required."""
    table = read_table(path)
    if "url" not in table.names:
        raise ParameterError(f"{path}: column url is missing; the columns are {', '.join(table.names)}")
    n, given = len(table), "change_rate" in table.names
    columns: dict[str, NDArray[Any]] = {}
    for name in _COUNTS:
        columns[name] = _numbers(table, name, 0.0, whole=True).astype(np.int64)
    for name in _TIMES:
        columns[name] = _numbers(table, name, np.nan)
    late = columns["fetched_at"] > time.time() + 60.0
    if late.any():
        raise table.error("fetched_at", int(np.argmax(late)), "lies in the future")
    columns["paused"] = _flags(table, "paused", False)
    columns["given_rate"] = _flags(table, "given_rate", given)
    unit = unit_seconds(unit_of(table) or "day")
    evidence = _numbers(table, "evidence", 2.0)
    known = np.isinf(evidence)  # with signals; the rate is believed as far as changes were seen
    evidence = np.where(known & (columns["n_crawls"] > 0), columns["n_changes"] + 1.0, np.minimum(evidence, _STRONGEST))
    if not (evidence > 0).all():
        raise table.error("evidence", int(np.argmin(evidence > 0)), "must be above 0")
    rate = _numbers(table, "change_rate", 0.0) / unit if given else None
    watched = _numbers(table, "watched", 0.0)
    return PageStates(
        _urls(table), _numbers(table, "importance", 1.0), rate, np.broadcast_to(evidence, n), watched, columns
    )


def _urls(table: Table) -> list[str]:
    found: dict[str, int] = {}
    for row, text in enumerate(table.text("url")):
        try:
            url = canonical(text)
        except ParameterError as problem:
            raise table.error("url", row, str(problem)) from None
        if url in found:
            raise table.error("url", row, f"{text} is the same page as in row {found[url] + 1}")
        found[url] = row
    return list(found)


def _numbers(table: Table, name: str, default: float, *, whole: bool = False) -> Array:
    if name not in table.names:
        return np.full(len(table), default)
    column = table.numbers(name, default)
    empty = np.isnan(column) if np.isnan(default) else np.zeros(len(column), np.bool_)
    good = empty | ((column >= 0) & (np.isfinite(column) | (name == "evidence")))
    if whole:
        good &= (column == np.floor(column)) & (column < 2**53)
    if not good.all():
        row = int(np.argmin(good))
        raise table.error(name, row, f"{column[row]:g} must be {'a whole number' if whole else 'finite'} of at least 0")
    return column


def _flags(table: Table, name: str, default: bool) -> NDArray[np.bool_]:
    if name not in table.names:
        return np.full(len(table), default)
    cells = [cell.strip().lower() for cell in table.text(name)]
    for row, cell in enumerate(cells):
        if cell not in (*_TRUE, *_FALSE):
            raise table.error(name, row, f"{cell!r} is neither true nor false")
    return np.array([cell in _TRUE for cell in cells], np.bool_)


def with_states(engine: Engine, states: PageStates, now: float) -> Engine:
    """An engine of the same pages, of which those of a table are as the table says.

    What is believed of a page is taken over until its next crawl; then it follows from the counts and all pages.
    """
    return Engine.restore(_rows_with(engine, states), now)


def _rows_with(engine: Engine, states: PageStates) -> dict[str, Any]:
    rows = {name: value for name, value in engine.rows().items() if name != "calibration"}
    at = engine.id(states.urls)
    mine = {**states.columns, "watched": states.watched, "own": states.columns["n_changes"]}
    mine["fixed_rate"] = mine.pop("given_rate")
    mine |= {name: np.where(np.isnan(mine[name]), -np.inf, mine[name]) for name in _TIMES}
    if states.rate is not None:
        rate = np.maximum(states.rate, 1e-6 * float(engine.beliefs.prior.mean))
        mine |= {"change_rate": rate, "evidence": states.evidence}
        rows["gamma"] = rows["gamma"].copy()
        rows["gamma"][at] = own = np.stack([states.evidence, states.evidence / rate], axis=1)
        mine[RATE_EVIDENCE] = np.where(mine["fixed_rate"][:, None], own, 0.0)
    mine["seen"] = _observed(engine, states, at)
    for name, column in mine.items():
        rows[name] = np.array(rows[name])
        rows[name][at] = column
    seen = int(states.columns["n_crawls"].sum())
    if engine.beliefs.crawls < seen:
        rows |= {"crawls": seen, "fits": 1, "refit_at": max(int(rows["refit_at"]), int(1.3 * seen) + 1)}
    rows["prior_at"] = np.full(len(rows["url"]), rows["fits"])  # what is believed is not computed again
    return rows


def _observed(engine: Engine, states: PageStates, at: NDArray[np.int64]) -> Array:
    """Observations: those of the log where the table counts the same crawls, else what goes with its counts."""
    crawls, changes = (np.asarray(states.columns[name], np.float64) for name in ("n_crawls", "n_changes"))
    belief = engine.beliefs.belief
    same = (belief.n_crawls[at] == crawls) & (belief.n_changes[at] == changes)
    return np.where(same[:, None], belief.seen[at], estimated_seen(crawls, changes, states.watched))
