"""Signals of the demo's sites: pings while the web changes, and how the crawler took all signals."""

from __future__ import annotations

from collections import Counter

from recrawl.crawl.clock import Clock
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.signals.inbox import Signal
from recrawl.crawl.signals.sources import Source
from recrawl.demo.verdict import SourceCounts
from recrawl.demo.web import DemoWeb
from recrawl.engine.views.signals import signal_facts

SOURCES = 4  # that the engine has room for: sitemap, feed and the name of the site that pings
_PING_EVERY = 0.1  # seconds of the demo


async def ping(web: DemoWeb, crawler: Crawler, clock: Clock) -> None:
    """Send the pings of the sites that ping, from now on, until it is cancelled."""
    before = web.now()
    while True:
        await clock.sleep(_PING_EVERY)
        now = web.now()
        for name, said in web.pings(before, now).items():
            source = Source("webhook", name)
            await crawler.components.inbox.take([Signal(url, source, web.started_at + at) for url, at in said])
        before = now


def source_counts(web: DemoWeb, crawler: Crawler) -> list[SourceCounts]:
    """Signals of each site that sends any, and whether the engine uses them."""
    taken = Counter[str]()
    for source, counts in crawler.components.inbox.counts.items():
        taken[source.speaker.partition(":")[0]] += counts["accepted"] + counts["repeated"]
    engine, found = crawler.engine, []
    for site in web.world.sites:
        if site.says == "nothing":
            continue
        urls = [web.url(site, page.path) for page in web.world.pages if page.site is site]
        facts = [one for page in engine.id(urls).tolist() for one in signal_facts(engine, page)]
        precision = max(((one.host_pages, one.host_precision) for one in facts if one.host_pages), default=None)
        found.append(
            SourceCounts(
                site.name,
                site.says,
                signals=taken[site.host] + taken[site.name],
                precision=None if precision is None else precision[1],
                used=any(one.counts for one in facts),
            )
        )
    return found
