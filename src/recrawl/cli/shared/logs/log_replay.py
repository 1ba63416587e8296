"""Replay of a crawl log in an engine: it learns from every crawl, and from the signals before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from recrawl.cli.shared.logs.cells import Columns
from recrawl.cli.shared.logs.crawl_log import CrawlLog
from recrawl.crawl.signals.sources import KINDS, WEBHOOK, Source, Sources
from recrawl.engine import Engine

Ids = NDArray[np.int64]

_UNNAMED = "signals"  # the column of signals without the name of a source
_MOST_HEARD = 16  # signals of a source before one crawl that are passed on


def log_sources(columns: Sequence[str]) -> tuple[Sources, list[int]]:
    """Sources of a log's columns of signals, and their numbers: a kind keeps its name, others are webhooks.

    >>> sources, numbers = log_sources(["sitemap", "cms", "signals"])
    >>> sources.names, numbers
    (['sitemap', 'webhook:cms', 'webhook:log'], [0, 1, 2])
    """
    sources = Sources()
    named = ["log" if name == _UNNAMED else name for name in columns]
    return sources, [sources.number(Source(name if name in KINDS else WEBHOOK, name or "log")) for name in named]


def replay_crawls(engine: Engine, log: CrawlLog, ids: Ids, now: float) -> None:
    """Record the k-th row of every page with more than k rows, for each k; signals are left out."""
    rows = log.rows
    first = np.searchsorted(rows.page, np.arange(len(ids)))
    count = np.diff(np.append(first, len(rows.page)))
    for k in range(int(count.max(initial=0))):
        mine = np.flatnonzero(count > k)
        _record(engine, ids[mine], rows, first[mine] + k, now)


def replay_signals(engine: Engine, log: CrawlLog, ids: Ids, numbers: Sequence[int]) -> None:
    """Record all rows in the order of time, each after its signals.

    A log says how many signals came between two crawls, not when. The engine hears them before the later crawl, at the
    time up to which it knows everything.
    """
    rows = log.rows
    for batch in _in_time(rows):
        for column, number in enumerate(numbers):
            heard = np.minimum(rows.signals[batch, column], _MOST_HEARD)
            for k in range(int(heard.max(initial=0))):
                engine.signal(ids[rows.page[batch[heard > k]]], engine.now, source=number)
        _record(engine, ids[rows.page[batch]], rows, batch, float(rows.time[batch].max()))


def _in_time(rows: Columns) -> Iterator[Ids]:
    """Rows in the order of time, in parts none of which has two rows of a page."""
    order = np.argsort(rows.time, kind="stable")
    begin, seen = 0, set[int]()
    for k, page in enumerate(rows.page[order].tolist()):
        if page in seen:
            yield order[begin:k]
            begin, seen = k, set()
        seen.add(page)
    if begin < len(order):
        yield order[begin:]


def _record(engine: Engine, ids: Ids, rows: Columns, at: Ids, now: float) -> None:
    """Record one row of each of some pages."""
    judged = (rows.changed[at] >= 0) & ~rows.failed[at]
    some, rest = at[judged], at[~judged]
    if len(some):
        engine.record(ids[judged], now, changed=rows.changed[some] > 0, as_of=rows.time[some])
    if len(rest):
        gone = rows.gone[rest]
        failed = rows.failed[rest] & ~gone
        engine.record(ids[~judged], now, as_of=rows.time[rest], failed=failed, gone=gone)
