"""Observations of pages from stored outcomes, for rows of earlier versions, which have counts but no observations.

A page's outcomes in the order in which they were saved give its intervals. An interval of length d that ended when
the page had been watched for another w since counts 2^{−w/half_life}: unchanged, d; changed, 1 and ln d. Crawls that
are counted but not stored come first, at equal distances. Where the counts contradict the outcomes, they stay alone.

Rows of versions that credited changes to signals (``own`` of them not) have observations without those changes. They
are rebuilt too: now a page's observations have all of its changes, and signals are learned from the beginning.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.beliefs.arrays import CHANGES, LOG_INTERVALS, UNCHANGED
from recrawl.engine.beliefs.beliefs import estimated_seen
from recrawl.engine.rows import NO_FIT, RATE_EVIDENCE, known_rows
from recrawl.store.protocol import Outcome, Store

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_ONE_BY_ONE = 50  # up to so many pages are read one by one; of more, all outcomes are read
_TOLERANCE = 1.0  # seconds by which sums of times may differ


async def replay_outcomes(store: Store, saved: dict[str, Any]) -> list[str]:
    """Fill in the observations of rows that have none from stored outcomes; the URLs of these pages.

    Pages with a given rate are left out: their rows do not tell the given rate from what was observed.
    """
    n = len(saved["url"])
    missing = ~known_rows(saved.get("seen", [None] * n))
    crawled = (np.asarray(saved["n_crawls"]) > 0) & ~np.asarray(saved["fixed_rate"], np.bool_)
    credited = np.asarray(saved["own"], np.float64) < np.asarray(saved["n_changes"], np.float64) - 1e-9
    rows = np.flatnonzero(crawled & (missing | credited))
    if len(rows) == 0:
        return []
    seen = list(saved.get("seen", [None] * n))
    urls = [saved["url"][j] for j in rows]
    page, interval, changed = await _intervals(store, urls)
    stored = np.bincount(page, minlength=len(rows)) > 0
    half_life = float(saved["settings"]["half_life"]) * float(saved["settings"]["day"])
    counts = {name: np.asarray(saved[name], np.float64)[rows] for name in ("n_crawls", "n_changes", "watched")}
    found = replayed_seen(page, interval, changed, counts, half_life)
    given = list(saved.get(RATE_EVIDENCE, [None] * n))
    for j, row in zip(rows[stored].tolist(), found[stored].tolist(), strict=True):
        seen[j], given[j] = row, [0.0, 0.0]
    saved["seen"], saved[RATE_EVIDENCE] = seen, given
    saved["prior_at"] = np.array(saved["prior_at"])
    saved["prior_at"][rows[stored]] = NO_FIT
    return [saved["url"][j] for j in rows[stored]]


async def _intervals(store: Store, urls: list[str]) -> tuple[Ids, Array, NDArray[np.bool_]]:
    """Page, length and outcome of every interval between two copies that a crawl has judged."""
    number = {url: j for j, url in enumerate(urls)}
    copied = np.full(len(urls), np.nan)
    found: list[tuple[int, float, bool]] = []
    async for one in _outcomes(store, urls):
        j = number.get(one.url)
        if j is None or one.failure is not None or one.began_at < copied[j]:
            continue
        interval, copied[j] = one.began_at - copied[j], one.began_at
        if one.changed is not None and not one.gone and interval > 0.0:
            found.append((j, interval, one.changed))
    columns = list(zip(*found, strict=True)) or [(), (), ()]
    return np.array(columns[0], np.int64), np.array(columns[1], np.float64), np.array(columns[2], np.bool_)


async def _outcomes(store: Store, urls: list[str]) -> AsyncIterator[Outcome]:
    for url in urls if len(urls) <= _ONE_BY_ONE else [None]:
        async for one in store.observations(url):
            yield one


def replayed_seen(
    page: Ids, interval: Array, changed: NDArray[np.bool_], counts: Mapping[str, Array], half_life: float
) -> Array:
    """Observations (pages, 3) from intervals, each page's in order of time, and from the counts of earlier crawls."""
    n = len(counts["watched"])

    def total(column: Array) -> Array:
        return np.asarray(np.bincount(page, column, n), np.float64)

    rest = {
        "n_crawls": counts["n_crawls"] - np.bincount(page, minlength=n),
        "n_changes": counts["n_changes"] - total(changed.astype(np.float64)),
        "watched": counts["watched"] - total(interval),
    }
    agree = (rest["n_changes"] >= 0.0) & (rest["n_crawls"] >= rest["n_changes"]) & (rest["watched"] >= -_TOLERANCE)
    rest["watched"] = np.where(rest["n_crawls"] > 0.0, np.maximum(rest["watched"], 0.0), 0.0)
    fade = np.exp2(-_later(page, interval, n) / half_life)
    seen = estimated_seen(**rest) * np.exp2(-total(interval) / half_life)[:, None]
    seen[:, UNCHANGED] += total(np.where(changed, 0.0, interval) * fade)
    weight = np.where(changed, fade, 0.0)
    seen[:, CHANGES] += total(weight)
    seen[:, LOG_INTERVALS] += total(weight * np.log(interval))
    alone = estimated_seen(counts["n_crawls"], counts["n_changes"], counts["watched"])
    return np.where(agree[:, None], seen, alone)


def _later(page: Ids, interval: Array, n: int) -> Array:
    """For how long a page was watched after each interval."""
    order = np.argsort(page, kind="stable")
    so_far = np.cumsum(interval[order])
    end = np.append(so_far, 0.0)[np.searchsorted(page[order], np.arange(n), side="right") - 1]
    later = np.empty(len(page))
    later[order] = end[page[order]] - so_far
    return np.maximum(later, 0.0)
