"""Pages from the columns of a table. Errors name the file, the column and the first bad row."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from recrawl.cli.shared.files.tables import Array, Table
from recrawl.errors import ParameterError
from recrawl.model import Pages
from recrawl.model.budget import unit_name

_SIGNAL = re.compile(r"(recall|precision|false_rate)(?:_([1-9]\d*))?", re.ASCII)
UNIT = "unit"  # the column that names the time unit of rates
_AT_LEAST_0 = "must be finite and at least 0"
_ABOVE_0 = "must be finite and above 0"
_SHARE = "must lie between 0 and 1"


def read_pages(table: Table, *, hosts: bool = False, whole: bool = True) -> Pages:
    """The pages of a table; with ``hosts`` also their hosts, from the column ``host`` or else ``url``.

    Of the ``whole`` table some page must count; a piece of one may hold others alone.
    """
    if "change_rate" not in table.names:
        have = ", ".join(table.names)
        raise ParameterError(f"{table.path}: column change_rate is missing; the columns are {have}")
    change_rate = _finite(table, "change_rate")
    recall, false_rate = _signals(table, change_rate)
    return Pages(
        change_rate,
        importance=_importance(table, whole),
        recall=recall,
        false_rate=false_rate,
        host=_hosts(table) if hosts else None,
        cost=_cost(table),
        evidence=_evidence(table),
    )


def unit_of(table: Table) -> str | None:
    """The time unit of a table's rates, by its column ``unit``; None without one."""
    if UNIT not in table.names:
        return None
    cells = [cell.strip() for cell in table.text(UNIT)]
    for row, cell in enumerate(cells):
        if cell != cells[0]:
            raise table.error(UNIT, row, f"{cell!r} is not {cells[0]!r}, as in row 1: all rows must have one unit")
    try:
        return unit_name(cells[0])
    except ParameterError as problem:
        raise table.error(UNIT, 0, str(problem)) from None


def _importance(table: Table, whole: bool) -> Array | float:
    if "importance" not in table.names:
        return 1.0
    importance = _finite(table, "importance")
    if whole and not importance.any():
        raise ParameterError(f"{table.path}: column importance is 0 in every row; some page must count")
    return importance


def _cost(table: Table) -> Array | float:
    if "cost" not in table.names:
        return 1.0
    cost = table.numbers("cost", default=1.0)
    _check(table, "cost", cost, (cost > 0) & np.isfinite(cost), _ABOVE_0)
    return cost


def _evidence(table: Table) -> Array | float:
    if "evidence" not in table.names:
        return np.inf
    evidence = table.numbers("evidence", default=np.inf)
    _check(table, "evidence", evidence, evidence > 0, "must be above 0 (inf: the rate is known exactly)")
    return evidence


def _signals(table: Table, change_rate: Array) -> tuple[Array | float, Array | float]:
    sources: dict[int, dict[str, str]] = {}
    for name in table.names:
        match = _SIGNAL.fullmatch(name)
        if match:
            source = sources.setdefault(int(match[2] or 1), {})
            if match[1] in source:
                raise ParameterError(f"{table.path}: columns {source[match[1]]} and {name} mean the same source")
            source[match[1]] = name
    if not sources:
        return 0.0, 0.0
    columns = [_source(table, sources[number], change_rate) for number in sorted(sources)]
    recalls, false_rates = zip(*columns, strict=True)
    return np.stack(recalls, axis=1), np.stack(false_rates, axis=1)


def _source(table: Table, names: dict[str, str], change_rate: Array) -> tuple[Array, Array]:
    given = " and ".join(names.values())
    if len(names) != 2 or "recall" not in names:
        what = "recall and one of precision and false_rate"
        raise ParameterError(f"{table.path}: a signal source needs {what}, this one has {given}")
    recall = _share(table, names["recall"], default=0.0)
    if "false_rate" in names:
        return recall, _finite(table, names["false_rate"], default=0.0)
    precision = _share(table, names["precision"], default=0.0)
    true_rate = recall * change_rate
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        useful = (true_rate == 0) | np.isfinite(true_rate / precision)
    _check(table, names["precision"], precision, useful, "must be above 0 where recall is")
    quality = Pages.from_quality(change_rate, precision=precision, recall=recall)
    return recall, quality.false_rate


def _hosts(table: Table) -> NDArray[np.str_]:
    if "host" in table.names:
        return np.array([host.strip().lower() for host in table.text("host")])
    if "url" not in table.names:
        raise ParameterError(f"{table.path}: column host (or url) is missing; limits per host need it")
    return np.array([_host_of(table, row, url.strip()) for row, url in enumerate(table.text("url"))])


def _host_of(table: Table, row: int, url: str) -> str:
    try:
        host = urlsplit(url if "//" in url else "//" + url).hostname
    except ValueError:
        host = None
    if not host:
        raise table.error("url", row, f"{url!r} has no host")
    return host


def _finite(table: Table, name: str, default: float | None = None) -> Array:
    column = table.numbers(name, default)
    _check(table, name, column, (column >= 0) & np.isfinite(column), _AT_LEAST_0)
    return column


def _share(table: Table, name: str, default: float) -> Array:
    column = table.numbers(name, default)
    _check(table, name, column, (column >= 0) & (column <= 1), _SHARE)
    return column


def _check(table: Table, name: str, column: Array, good: NDArray[np.bool_], rule: str) -> None:
    if not good.all():
        row = int(np.argmin(good))
        raise table.error(name, row, f"{column[row]:g} {rule}")
