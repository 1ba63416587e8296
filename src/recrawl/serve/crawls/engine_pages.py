"""Rows of pages from an engine that knows them: of the crawl of this process, or of a part of a shard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recrawl.crawl.audit.freshness import audited_pages
from recrawl.crawl.run.opening.pages import is_paused
from recrawl.engine import Engine
from recrawl.schedule.exact import access
from recrawl.serve.crawls.view import STALEST, PageRow
from recrawl.store.protocol import Copy


def page_rows(engine: Engine, urls: Sequence[str], copies: Mapping[str, Copy], now: float) -> list[PageRow]:
    """What lists show of pages; those that the engine does not have are left out."""
    known = engine.addresses.known(urls)
    ids = known[known >= 0]
    fresh, paused = engine.fresh(ids, now).tolist(), is_paused(engine, ids).tolist()
    weight, waiting = access.importance(engine.scheduler, ids).tolist(), engine.eligibility.waiting
    found = []
    for k, (page, url) in enumerate(zip(ids.tolist(), engine.url(ids), strict=True)):
        copy = copies.get(url)
        changed = copy is not None and copy.changed_at > 0 and engine.beliefs.belief.n_changes[page] > 0
        found.append(
            PageRow(
                url,
                weight[k],
                fresh[k] if copy is not None else None,
                None if copy is None else copy.fetched_at,
                copy.changed_at if copy is not None and changed else None,
                _state(paused[k], waiting.failures(page), waiting.times_gone(page), copy is None),
            )
        )
    return found


def stalest_pages(engine: Engine, now: float) -> list[dict[str, Any]]:
    """The pages with the largest importance x probability of being stale."""
    ids = audited_pages(engine)
    if not len(ids):
        return []
    fresh, weight = engine.fresh(ids, now), access.importance(engine.scheduler, ids)
    if engine.stands_for is not None:
        weight = weight / engine.stands_for[ids]
    order = np.argsort(-weight * (1.0 - fresh), kind="stable")[:STALEST]
    fetched = engine.fetched_at(ids[order])
    columns = zip(engine.url(ids[order]), fresh[order].tolist(), weight[order].tolist(), fetched.tolist(), strict=True)
    return [dict(zip(("url", "fresh", "importance", "fetched_at"), row, strict=True)) for row in columns]


def _state(paused: bool, failures: int, gone: int, no_copy: bool) -> str:
    if paused:
        return "paused"
    return "gone" if gone else "failing" if failures else "waiting" if no_copy else "watched"
