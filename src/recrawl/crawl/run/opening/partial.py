"""Engines of a part of a store's pages: what one page, or figures about all pages, need.

What was learned of all pages together is small and is read as a whole. Of single pages only those are read that an
answer depends on: to explain a page, the page or, where its belief is older than the last fit or it was crawled after
signals, all pages (of a large database, those of its host); for figures about a large database, a sample; to add pages,
none.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from recrawl.crawl.run.opening.assemble import engine_of
from recrawl.crawl.run.opening.pages import Part
from recrawl.crawl.signals.sources import NOTE, Sources
from recrawl.engine.clocks.folders import beside
from recrawl.engine.names.addresses import host_of
from recrawl.estimate.sampling import sampling_error
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.crawl.config.settings import Settings
    from recrawl.engine import Engine
    from recrawl.engine.views.explain import Explanation
    from recrawl.store.protocol import Store, Totals

WHOLE = 50_000  # up to so many pages figures are about all of them
SAMPLED = 20_000  # pages of a sample, where there are more
_HOST = 0  # level of groups: pages of one host


@dataclass(frozen=True)
class Sampled:
    """An engine for figures about all pages: of all of them, or of a sample."""

    engine: Engine
    totals: Totals  # of all pages
    error: float | None  # of a share of pages, by the choice of the sample: standard error; None: all pages are there


async def open_sampled(store: Store, settings: Settings, now: float, hosts: Container[str] = ()) -> Sampled:
    """The engine of all pages of a store or, where there are many, of a sample; ``hosts``: whose rules are needed."""
    totals = await store.totals()
    if totals.pages <= WHOLE:
        return Sampled(await engine_of(store, settings, now), totals, None)
    urls, stands_for = await store.sample(SAMPLED)
    engine = await engine_of(store, settings, now, Part(urls, totals, hosts))
    places = {url: j for j, url in enumerate(urls)}
    counts = stands_for[[places[url] for url in engine.url(engine.ids())]]
    importance = access.importance(engine.scheduler, engine.ids())
    engine.stand_for(counts)
    return Sampled(engine, totals, sampling_error(importance, counts))


async def open_for(store: Store, settings: Settings, urls: Sequence[str], now: float) -> Engine:
    """An engine to which URLs are added: their rows are those that an engine of all pages would save.

    It has those of the URLs that are pages already. New pages depend on other pages where readers' requests are
    counted; then the engine has all pages.
    """
    totals = await store.totals()
    if totals.requested:
        return await engine_of(store, settings, now)
    return await engine_of(store, settings, now, Part(urls, totals, {host_of(url) for url in urls}))


async def explain_page(store: Store, settings: Settings, url: str, now: float) -> Explanation:
    """What `Engine.explain` says of a page with an engine of all pages."""
    totals = await store.totals()
    engine = await engine_of(store, settings, now, Part([url], totals))
    if engine.beliefs.renewed or engine.beliefs.signals.judged:
        part = None if totals.pages <= WHOLE else Part(await _on_host(store, url), totals)
        engine = await engine_of(store, settings, now, part)
    page = int(engine.id([url])[0])
    found = replace(engine.explain(page, now), importance_rank=await _importance_rank(store, settings, engine, page))
    found = found.named(Sources.restore(await store.notes(NOTE)).names)
    unasked = found.request_rate is None and totals.requested  # readers asked for other pages only
    return replace(found, request_rate=0.0) if unasked else found


async def _on_host(store: Store, url: str) -> list[str]:
    """A page and the others of its host, not more than a sample has."""
    found = [url]
    for prefix in beside(url, _HOST):
        others = (other for other in await store.urls(prefix) if other != url and host_of(other) == host_of(url))
        found += islice(others, max(SAMPLED - len(found), 0))
    return found


async def _importance_rank(store: Store, settings: Settings, engine: Engine, page: int) -> float:
    """The share of pages that are at least as important as a page.

    Rules may give pages an importance that is not stored yet: then the share is estimated as figures are.
    """
    weight = float(access.importance(engine.scheduler, np.array([page]))[0])
    rules = settings.rules()
    if not any(rule.importance is not None for rule in rules.rules):
        totals = await store.totals(importance=weight)
        return totals.as_important / totals.pages
    n_pages = (await store.totals()).pages
    urls, stands_for = await store.sample(n_pages if n_pages <= WHOLE else SAMPLED)
    saved = await store.load(urls)
    assert saved is not None
    counts = dict(zip(urls, stands_for.tolist(), strict=True))
    ruled = np.array([rules.of(one).importance for one in saved["url"]], np.float64)  # not a number: no rule
    importance = np.where(np.isnan(ruled) | (ruled == saved["given"]), saved["importance"], ruled)
    return float(np.average(importance >= weight, weights=[counts[one] for one in saved["url"]]))
