"""Crawl logs: rows of (url, time, changed) in any form that ``logs`` reads, as observations.

Errors count rows from 1: the first line after a CSV file's header is row 1. Strict reading raises at the first bad row.
Lenient reading repairs bad rows and counts the repairs by kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.cli.shared.logs.cells import Columns, LogReader
from recrawl.cli.shared.logs.changes import compared
from recrawl.cli.shared.logs.roles import COMPARED, LogOptions
from recrawl.cli.shared.logs.text_lines import check_encoding
from recrawl.errors import ParameterError
from recrawl.estimate import Observations

Array = NDArray[np.float64]
Progress = Callable[[float], None]


@dataclass(frozen=True)
class CrawlLog:
    """A crawl log as observations; ``ended_at`` is the time (UTC, seconds) at which each interval ended."""

    urls: list[str]
    observations: Observations
    ended_at: Array
    importance: Array | None
    sources: list[str]
    n_rows: int
    n_failed: int
    crawled_at: Array  # when each page was last crawled without failure; NaN: never
    gone: NDArray[np.bool_]  # pages whose last crawl found them gone (404, 410)
    left_at: Array  # when a gone page was first found gone; else the end of the log
    days: float
    rows: Columns  # in order of page and time; changed as given or computed
    repairs: dict[str, int] = field(default_factory=dict)
    computed: dict[str, int] = field(default_factory=dict)  # intervals whose outcome was computed, by column
    unused: list[str] = field(default_factory=list)  # columns without a role
    details: list[dict[str, Any]] = field(default_factory=list)  # cells of recrawl's own exports, in order of rows
    notes: list[str] = field(default_factory=list)  # of the history of another tool

    def part(self, pages: NDArray[np.int64]) -> CrawlLog:
        """The rows of some pages, as an import uses them; observations and figures stay those of all pages."""
        rows = np.flatnonzero(np.isin(self.rows.page, pages))
        number = np.zeros(len(self.urls), np.int64)
        number[pages] = np.arange(len(pages))
        mine = self.rows.take(rows)
        return replace(
            self,
            urls=[self.urls[k] for k in pages],
            importance=None if self.importance is None else self.importance[pages],
            n_rows=len(rows),
            rows=replace(mine, page=number[mine.page]),
            details=[self.details[k] for k in rows] if self.details else [],
        )

    @property
    def hosts(self) -> list[str]:
        """The host of every page."""
        return [host_of(url) for url in self.urls]

    @property
    def folders(self) -> list[str]:
        """Host and folder of every page: its URL without what follows the last slash of the path."""
        return [folder_of(url) for url in self.urls]


def remarks(log: CrawlLog) -> list[str]:
    """How changes were computed, and which columns have no role, one sentence each."""
    said = []
    if log.computed:
        parts = ", ".join(f"{name} ({n})" for name, n in log.computed.items())
        weak = "; changes that keep the length are missed" if "length" in log.computed else ""
        said.append(f"changed is computed from {parts}{weak}")
    said += log.notes
    if log.unused:
        said.append(f"columns that are not used: {', '.join(log.unused)}")
    return said


def host_of(url: str) -> str:
    """The host of a URL; a name without a scheme counts as one host up to its first slash.

    >>> host_of("https://docs.example.org/a/b.html"), host_of("docs.example.org/a")
    ('docs.example.org', 'docs.example.org')
    """
    return url.split("://", 1)[-1].split("/", 1)[0].split("?", 1)[0].rsplit("@", 1)[-1].lower()


def folder_of(url: str) -> str:
    """Host and path of a URL up to its last slash.

    >>> folder_of("https://docs.example.org/a/b.html?x=1/2")
    'docs.example.org/a/'
    """
    bare = url.split("://", 1)[-1].split("?", 1)[0].split("#", 1)[0]
    host, slash, path = bare.partition("/")
    return host.lower() + slash + path[: path.rfind("/") + 1]


def read_crawl_log(
    path: Path, options: LogOptions | None = None, *, lenient: bool = False, progress: Progress | None = None
) -> CrawlLog:
    """Read a log. Every row after a page's first is one observation: interval, changed or not, signals in between.

    A row with a status of 400 or more is a failed crawl: it is no observation, and its signals count for the next row.
    """
    options = options or LogOptions(lenient)
    check_encoding(options.encoding)
    repairs: Counter[str] = Counter()
    reader = LogReader(path, options, repairs)
    columns = reader.read(progress)
    if not len(columns.time):
        raise ParameterError("; ".join([f"{path}: no usable {reader.rows.counted}", *reader.rows.notes[-1:]]))
    if reader.rows.is_history:
        order = np.lexsort((columns.row, columns.time, columns.page))
    else:
        order = _order(path, columns, options.lenient or reader.rows.header.exported, repairs)
    return _observe(path, columns.take(order), reader, [reader.details[j] for j in order] if reader.details else [])


def _order(path: Path, columns: Columns, lenient: bool, repairs: Counter[str]) -> NDArray[np.int64]:
    """Order of rows by page and time. Strict reading requires that each page's rows are in order of time."""
    order = np.argsort(columns.page, kind="stable")
    page, time = columns.page[order], columns.time[order]
    back = np.flatnonzero((np.diff(time) < 0) & (page[1:] == page[:-1]))
    if not len(back):
        return order
    if not lenient:
        first = back[np.argmin(columns.row[order[back + 1]])]
        row, before = columns.row[order[first + 1]], columns.row[order[first]]
        gap = time[first] - time[first + 1]
        raise ParameterError(
            f"{path}: column time, row {row}: {gap:g} s before the page's crawl in row {before}; "
            "a page's rows must be in order of time (--lenient sorts them)"
        )
    repairs["rows out of order, sorted"] += len(back)
    return np.lexsort((columns.row, columns.time, columns.page))


def _observe(path: Path, rows: Columns, reader: LogReader, details: list[dict[str, Any]]) -> CrawlLog:
    """Observations between successive rows of a page that did not fail."""
    urls, n_pages = reader.urls, len(reader.urls)
    good = np.flatnonzero(~rows.failed)
    page = rows.page[good]
    pair = np.flatnonzero(page[1:] == page[:-1])
    end, start = good[pair + 1], good[pair]
    changed, computed = compared(rows, good, start, end)
    rows.changed[:] = -1
    rows.changed[end] = changed
    unknown = changed < 0
    if unknown.any():
        _unknown(path, int(rows.row[end][unknown].min()), int(unknown.sum()), reader)
        end, start, changed = end[~unknown], start[~unknown], changed[~unknown]
    total = np.concatenate([np.zeros((1, rows.signals.shape[1])), np.cumsum(rows.signals, axis=0)])
    signals = total[end + 1] - total[start + 1] if reader.sources else None
    offset = np.concatenate([[0], np.cumsum(np.bincount(rows.page[end], minlength=n_pages))])
    seen = Observations(offset, rows.time[end] - rows.time[start], changed > 0, signals)
    header = reader.rows.header
    importance = _last(rows.page, rows.importance, n_pages) if "importance" in header.used else None
    n_failed = int(rows.failed.sum())
    crawled_at, gone, left_at = _ends(rows, good, n_pages)
    days = float(rows.time.max() - rows.time.min()) / 86400.0
    ends = (len(rows.time), n_failed, crawled_at, gone, left_at, days, rows)
    rest = (dict(reader.repairs), computed, header.unused, details, reader.rows.notes)
    return CrawlLog(urls, seen, rows.time[end], importance, reader.sources, *ends, *rest)


def _unknown(path: Path, row: int, n: int, reader: LogReader) -> None:
    """Rows of which it is not known whether the page changed: left out, or an error if nothing can be compared."""
    comparable = bool(reader.rows.header.used & set(COMPARED))
    if not comparable and not reader.lenient:
        raise ParameterError(f"{path}: column changed, row {row}: is empty")
    what = "intervals with nothing to compare, left out" if comparable else "rows with empty changed, dropped"
    reader.repairs[what] += n


def _ends(rows: Columns, good: NDArray[np.int64], n_pages: int) -> tuple[Array, NDArray[np.bool_], Array]:
    """Per page: time of the last crawl, whether it is gone, since when. Rows are in order of page and time."""
    first = np.searchsorted(rows.page, np.arange(n_pages))
    last = np.append(first[1:], len(rows.page)) - 1
    crawled_at, left_at = np.full(n_pages, np.nan), np.full(n_pages, rows.time.max())
    crawled_at[rows.page[good]] = rows.time[good]
    next_row = first.copy()
    next_row[rows.page[good]] = good + 1
    gone = rows.gone[last]
    left_at[gone] = rows.time[next_row[gone]]
    return crawled_at, gone, left_at


def _last(page: NDArray[np.int64], value: Array, n_pages: int) -> Array:
    """Each page's last known value; 1 where none is known."""
    known = ~np.isnan(value)
    out = np.ones(n_pages)
    out[page[known]] = value[known]
    return out
