"""Changes computed from what a log says of contents: digests, entity tags, dates of modification, lengths."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.cli.shared.logs.cells import Columns
from recrawl.cli.shared.logs.roles import COMPARED

Ids = NDArray[np.int64]


def compared(rows: Columns, good: Ids, start: Ids, end: Ids) -> tuple[NDArray[np.int8], dict[str, int]]:
    """Whether pages changed between rows ``start`` and ``end`` (−1: unknown), and how many were computed, by role.

    ``good`` are the rows that did not fail, in order of page and time. What the log says itself counts first. "Not
    modified" (304) is unchanged. Otherwise the first role counts that both rows have.
    """
    changed, computed = rows.changed[end].copy(), dict[str, int]()
    unknown = (changed < 0) & rows.not_modified[end]
    changed[unknown] = 0
    if unknown.any():
        computed["status 304"] = int(unknown.sum())
    codes = _carried(rows, good)
    for k, role in enumerate(COMPARED):
        both = (changed < 0) & (codes[start, k] >= 0) & (codes[end, k] >= 0)
        if role == "digest":
            both &= codes[start, -1] == codes[end, -1]
        changed[both] = codes[end, k][both] != codes[start, k][both]
        if both.any():
            computed[role] = int(both.sum())
    return changed, computed


def _carried(rows: Columns, good: Ids) -> NDArray[np.int64]:
    """Codes of contents; a row that says "not modified" has those of the page's row before."""
    codes = rows.codes.copy()
    first = np.ones(len(good), np.bool_)
    first[1:] = rows.page[good][1:] != rows.page[good][:-1]
    for k in range(codes.shape[1]):
        mine = codes[good, k]
        empty = rows.not_modified[good] & ((mine < 0) | (k == len(COMPARED)))
        origin = np.maximum.accumulate(np.where(empty & ~first, 0, np.arange(len(good))))
        codes[good, k] = mine[origin]
    return codes
