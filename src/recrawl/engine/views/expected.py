"""Expected freshness and rates as they are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.engine.beliefs.staleness_kernels import fill_fresh
from recrawl.engine.signals.pages import fill_columns
from recrawl.model.pages import Pages
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.engine.questions import Questions

Array = NDArray[np.float64]
Ids = NDArray[np.int64]


def expected_fresh(engine: Questions, ids: ArrayLike, now: float) -> Array:
    """The probability that each page's copy is fresh, as computed; 0 without a copy."""
    rows = access.check_ids(engine.scheduler, ids)
    out = np.empty(len(rows))
    fill_fresh(access.header(engine.scheduler), engine.beliefs.belief, rows, now, out)
    return np.where(engine.copied(rows), out, 0.0)


def expected_pages(engine: Questions, rows: Ids) -> Pages:
    """Pages with the rates that are reported.

    ``evidence`` is the shape of the belief about a page's change rate. Rates of pages with signals that count are
    taken as known, because plans with signals take them so.
    """
    n, sources = len(rows), engine.settings.sources
    change_rate, evidence = np.zeros(n), np.zeros(n)
    recall, false_rate = np.zeros((n, sources)), np.zeros((n, sources))
    fill_columns(engine.beliefs.belief, rows, change_rate, recall, false_rate, evidence)
    quality = (recall, false_rate) if sources > 1 else (column.sum(axis=1) for column in (recall, false_rate))
    columns = dict(zip(("recall", "false_rate"), quality, strict=True)) | access.cost_column(engine.scheduler, rows)
    return Pages(change_rate, access.importance(engine.scheduler, rows), evidence=evidence, **columns)
