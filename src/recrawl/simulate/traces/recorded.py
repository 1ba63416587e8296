"""Recorded traces: real pages with the times at which they changed, as traces that policies can be run against."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from itertools import chain, count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.simulate.trace import Past, Signals, Trace
from recrawl.simulate.traces.files import Record, read_record
from recrawl.simulate.worlds.events import Events

Array = NDArray[np.float64]
Ids = NDArray[np.int64]
DAY = 86400.0


def read_trace(
    folder: Path | str,
    *,
    start: float | str | date | None = None,
    days: float = 365.0,
    warm: float = 0.0,
) -> Trace:
    """A window of a recorded trace: ``days`` from ``start`` on (default: the last ones); times are seconds since 1970.

    A page lives from the latest of its creation, the first time it was watched and the window's start to the earliest
    of the three ends, and its copy is fresh when it comes. With ``warm`` the trace begins that many days earlier: count
    from ``trace.start + 86400·warm``. Unknown importance is the median of the known, 1 where none is known.
    """
    folder = Path(folder)
    record = read_record(folder)
    begin, end = _window(folder, record, start, days, warm)
    low = np.maximum(np.maximum(record.created, record.obs_start), begin)
    high = np.minimum(np.minimum(record.deleted, record.obs_end), end)
    rows = np.flatnonzero(high > low)
    if len(rows) == 0:
        raise ParameterError(f"{folder}: no page was watched from {_day(begin)} to {_day(end)}")
    rows = rows[np.argsort(low[rows], kind="stable")]
    changes = _changes(record, rows, low, high)
    since = np.maximum(record.created, record.obs_start)
    if len(changes.at) == 0:
        raise ParameterError(f"{folder}: no page changed from {_day(begin)} to {_day(end)}")
    known = record.importance[~np.isnan(record.importance)]
    importance = np.where(np.isnan(record.importance), np.median(known) if len(known) else 1.0, record.importance)
    return Trace(
        begin,
        end,
        offset=changes.offset,
        changed_at=changes.at,
        importance=importance[rows],
        created_at=low[rows],
        deleted_at=high[rows],
        url=_urls(record)[rows],
        group=np.array(record.group, dtype=np.str_)[rows],
        signals=_signals(record, rows, low, high),
        past=Past(_changes(record, rows, since, np.nextafter(low, np.inf)), since[rows]),
        name=folder.resolve().name,
        day=DAY,
    )


def _window(
    folder: Path, record: Record, start: float | str | date | None, days: float, warm: float
) -> tuple[float, float]:
    if not (0 < days < np.inf and 0 <= warm < np.inf):
        raise ParameterError(f"days is {days:g}, warm is {warm:g}: days must be above 0, warm at least 0")
    first, last = float(record.obs_start.min()), float(record.obs_end.max())
    begin = last - days * DAY if start is None else epoch(start)
    end = begin + days * DAY
    if begin - warm * DAY < first or end > last + 1.0:
        asked = f"{_day(begin - warm * DAY)} to {_day(end)}"
        raise ParameterError(f"{folder}: was watched from {_day(first)} to {_day(last)}, asked for is {asked}")
    return begin - warm * DAY, min(end, last)


def epoch(when: float | str | date) -> float:
    """Seconds since 1970 of an instant: a number, a date or text in ISO 8601, UTC unless it says otherwise.

    >>> epoch("1970-01-02"), epoch("1970-01-01T01:00+01:00"), epoch(5)
    (86400.0, 0.0, 5.0)
    """
    if isinstance(when, (int, float)):
        if not np.isfinite(when):
            raise ParameterError(f"start is {when}: must be finite")
        return float(when)
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when)
        except ValueError:
            raise ParameterError(f"{when!r} is not a date such as 2020-04-01") from None
    if not isinstance(when, datetime):
        when = datetime.combine(when, time())
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _day(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).date().isoformat()


def _places(record: Record, rows: Ids) -> Ids:
    """The place of each page of the record in the window; −1 where it has none."""
    place = np.full(len(record.created), -1, np.int64)
    place[rows] = np.arange(len(rows))
    return place


def _changes(record: Record, rows: Ids, low: Array, high: Array) -> Events:
    page = np.repeat(np.arange(len(low)), np.diff(record.offset))
    place, at = _places(record, rows)[page], record.changed_at
    inside = (place >= 0) & (at > low[page]) & (at < high[page])
    return Events.of(place[inside], at[inside], len(rows))


def _signals(record: Record, rows: Ids, low: Array, high: Array) -> Signals | None:
    if record.signals is None:
        return None
    at, page, source, about = record.signals
    place = _places(record, rows)[page]
    inside = (place >= 0) & (at > low[page]) & (at < high[page])
    return Signals(at[inside], place[inside], source[inside], about[inside])


def _urls(record: Record) -> NDArray[Any]:
    """https://group/key, distinct also where groups differ only in signs, or a page came back."""
    hosts: dict[str, str] = {}
    taken: set[str] = set()
    urls: set[str] = set()
    column = []
    for group, key in zip(record.group, record.key, strict=True):
        if group not in hosts:
            hosts[group] = _distinct(re.sub(r"[^a-z0-9.]+", "-", group.lower()).strip("-.") or "all", taken, "-")
        column.append(_distinct(f"https://{hosts[group]}/{quote(key, errors='replace')}", urls, "?"))
    return np.array(column, dtype=np.str_)


def _distinct(name: str, taken: set[str], mark: str) -> str:
    """The name, with a number behind it where it is taken."""
    numbered = chain([name], (f"{name}{mark}{k}" for k in count(2)))
    free = next(each for each in numbered if each not in taken)
    taken.add(free)
    return free
