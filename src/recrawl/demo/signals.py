"""Signals of the demo's sites: pings while the web changes, and how the crawler took all signals."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from recrawl.crawl.clock import Clock
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.signals.sorting import Signal
from recrawl.crawl.signals.sources import Source
from recrawl.demo.verdict import SourceCounts
from recrawl.demo.web import DemoWeb
from recrawl.demo.world import Site
from recrawl.engine.views.sources import SourceFacts, source_facts

SOURCES = 4  # that the engine has room for: sitemap, feed and the name of the site that pings
_PING_EVERY = 0.1  # seconds of the demo


Send = Callable[[str, Sequence[tuple[str, float]]], Awaitable[None]]  # name of a site; URLs and times of changes
Receiver = Callable[[Crawler, Sequence[str]], AbstractAsyncContextManager[Send]]  # of the sites of these names


@asynccontextmanager
async def to_inbox(crawler: Crawler, names: Sequence[str]) -> AsyncIterator[Send]:
    """Pings go to the inbox of the crawl, without a server."""

    async def send(name: str, said: Sequence[tuple[str, float]]) -> None:
        assert name in names
        await crawler.components.inbox.take([Signal(url, Source("webhook", name), at) for url, at in said])

    yield send


async def ping(web: DemoWeb, send: Send, clock: Clock) -> None:
    """Send the pings of the sites that ping, from now on, until it is cancelled."""
    before = web.now()
    while True:
        await clock.sleep(_PING_EVERY)
        now = web.now()
        for name, said in web.pings(before, now).items():
            await send(name, [(url, web.started_at + at) for url, at in said])
        before = now


def source_counts(web: DemoWeb, crawler: Crawler) -> list[SourceCounts]:
    """Signals of each site that sends any, and what the engine has learned of them."""
    taken = Counter[str]()
    for source, counts in crawler.components.inbox.counts.items():
        taken[source.speaker] += counts["accepted"] + counts["repeated"]
    facts = {one.host: one for one in reversed(source_facts(crawler.engine))}  # of a host, that of most pages
    found = []
    for site in web.world.sites:
        if site.says != "nothing":
            signals = taken[site.host] + taken[site.name]
            found.append(_counts(site, signals, facts.get(site.host)))
    return found


def _counts(site: Site, signals: int, facts: SourceFacts | None) -> SourceCounts:
    if facts is None:
        return SourceCounts(site.name, site.says, signals)
    return SourceCounts(
        site.name,
        site.says,
        signals,
        crawls=round(facts.crawls),
        changes=round(facts.changes),
        precision=None if facts.precision is None else facts.precision.mean,
        trust=facts.trust,
    )
