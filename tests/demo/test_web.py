"""The changing web: what it serves is what its ground truth says, and noise is no change."""

import asyncio
from collections import defaultdict

import numpy as np
import pytest

from recrawl.crawl.clock import SystemClock
from recrawl.crawl.detect.detector import VisibleText
from recrawl.crawl.http.fetcher import HttpFetcher
from recrawl.crawl.polite.robots import Robots
from recrawl.demo.resolver import LoopbackResolver
from recrawl.demo.server import DemoServer
from recrawl.demo.web import DemoWeb
from recrawl.demo.world import SITES, draw_world


def on_web(work, seed=1):
    """Run ``work(web, fetcher)`` while the web is served."""

    async def run():
        web = DemoWeb(draw_world(seed, 60.0), SystemClock())
        async with DemoServer(web):
            fetcher = HttpFetcher("recrawl-test/1", allow_private=True, resolver=LoopbackResolver())
            try:
                return await work(web, fetcher)
            finally:
                await fetcher.close()

    return asyncio.run(run())


def pages_of(web, name):
    return [page for page in web.world.pages if page.site.name == name]


def url_of(web, page):
    return web.url(page.site, page.path)


def test_the_same_seed_is_the_same_world():
    one, same, other = draw_world(3, 60.0), draw_world(3, 60.0), draw_world(4, 60.0)
    assert np.array_equal(one.trace.changed_at, same.trace.changed_at)
    assert not np.array_equal(one.trace.offset, other.trace.offset)
    assert [page.path for page in one.pages] == [page.path for page in other.pages]


def test_a_longer_run_begins_the_same():
    short, longer = draw_world(3, 10.0), draw_world(3, 600.0)
    assert np.array_equal(short.trace.changed_at, longer.trace.changed_at)


def test_five_hundred_pages_far_more_changes_than_the_budget_and_folders_that_change_together():
    world = draw_world(1, 60.0)
    assert len(world.pages) == len({page.site.host + page.path for page in world.pages}) == 500
    assert 50.0 < len(world.trace.changed_at) / world.trace.end < 100.0
    docs = [page.number for page in world.pages if page.site.name == "docs"]
    instants = defaultdict(set)
    for number in docs:
        first, last = world.trace.offset[number : number + 2]
        for at in world.trace.changed_at[first:last].tolist():
            instants[at].add(world.pages[number].path.split("/")[1])
    assert all(len(folders) == 1 for folders in instants.values())  # never two folders at once
    total = sum(int(world.trace.n_changes[number]) for number in docs)
    assert len(instants) < 0.5 * total  # most changes are shared


@pytest.mark.parametrize("name", ["news", "shop", "docs", "blog"])
def test_what_is_seen_changes_exactly_with_the_version(name):
    async def look(web, fetcher):
        page, seen = pages_of(web, name)[0], []
        while len({entry.version for entry in web.log if entry.page == page.number}) < 3:
            before = len(web.log)
            fetched = await fetcher.fetch(url_of(web, page))
            seen.append((web.log[before].version, VisibleText().digest(fetched), fetched.body))
            web.skip(2.0)
        return seen

    seen = on_web(look)
    by_version = defaultdict(set)
    for version, digest, _ in seen:
        by_version[version].add(digest)
    assert all(len(digests) == 1 for digests in by_version.values())
    assert len({min(digests) for digests in by_version.values()}) == len(by_version) >= 3
    assert len({body for _, _, body in seen}) == len(seen)  # noise in every response


def test_validators_tell_the_truth_and_fickle_ones_nothing():
    async def look(web, fetcher):
        found = {}
        for name in ("docs", "blog", "news", "shop"):
            url = url_of(web, pages_of(web, name)[3])
            first = await fetcher.fetch(url)
            tags = {"etag": first.headers.get("etag"), "last_modified": first.headers.get("last-modified")}
            again = await fetcher.fetch(url, **tags)
            web.skip(300.0)
            found[name] = (again.status, (await fetcher.fetch(url, **tags)).status)
            web.skip(-300.0)
        return found

    found = on_web(look)
    assert found["docs"] == found["blog"] == (304, 200)
    assert found["news"] == found["shop"] == (200, 200)


def test_robots_slow_and_failing_hosts():
    async def look(web, fetcher):
        robots = Robots(fetcher, "recrawl-test/1", fetcher._clock)
        rules = [await robots.rules(url) for url in web.private_urls]
        flaky, slow = pages_of(web, "flaky"), pages_of(web, "slow")
        rule = await robots.rules(url_of(web, flaky[0]))
        begin = web.world.outages[flaky[0].site.host][0, 0]
        web.skip(begin + 0.5 - web.now())
        out = await fetcher.fetch(url_of(web, flaky[0]))
        late = await fetcher.fetch(url_of(web, slow[0]))
        sitemap = await fetcher.fetch(rules[0].sitemaps[0])
        strange = await fetcher.fetch(f"http://elsewhere.localhost:{web.port}/")
        return rules, rule, out, late, sitemap, strange

    rules, rule, out, late, sitemap, strange = on_web(look)
    assert not any(rule.allowed for rule in rules)
    assert rule.allowed
    assert rule.crawl_delay == 0.25
    assert out.failure == "busy"
    assert out.retry_after == 1.0
    assert late.took >= 0.3
    assert sitemap.body.count(b"<loc>") == SITES[0].n_pages + 1
    assert strange.status == 421
