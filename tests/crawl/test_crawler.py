"""The crawler on a web in memory: rules, hours, its ends, and pages that come and go while it runs."""

import asyncio

import numpy as np
import pytest

from recrawl import ParameterError
from recrawl.crawl.config.rules import Rule, Rules
from recrawl.crawl.http.memory import Answer
from recrawl.crawl.run.commands import add_command, remove_command

from .driving import DAY, START, URLS, World, changing, gaps_by_host, largest_share


@pytest.mark.slow
def test_rules_hold():
    rules = Rules(
        [
            Rule("*/pinned", every=3600.0),
            Rule("*/old", max_interval=1800.0, importance=0.001),
            Rule("*/seldom", min_interval=7200.0, importance=1000.0),
            Rule("*/never", never=True),
        ]
    )
    urls = [f"https://a.example/{name}" for name in ("pinned", "old", "seldom", "never", "other")]
    world = World(lambda url, now: f"<p>{now}", urls, budget=0.01, rules=rules, robots=False)
    for _ in range(4):
        world.run(6 * 3600.0)
    gaps = {name: np.diff(world.asked("/" + name)) for name in ("pinned", "old", "seldom", "other")}
    assert len(world.asked("/never")) == 0
    assert np.abs(gaps["pinned"] - 3600.0).max() < 400.0
    assert gaps["old"].max() < 1800.0 + 200.0
    assert gaps["seldom"].min() >= 7200.0
    assert len(gaps["other"]) > 100


@pytest.mark.slow
def test_nothing_is_asked_outside_the_hours():
    from datetime import UTC

    from recrawl.crawl.polite.hours import Hours

    world = World(changing, URLS, budget=0.02, hours=Hours("22-6", UTC))
    world.run(1.1 * DAY)  # from 22:13 to the next day's 0:37
    hour = (world.asked() % DAY) / 3600.0
    assert len(hour) > 0.9 * 0.02 * 10.4 * 3600
    assert ((hour >= 22.0 - 1e-6) | (hour <= 6.0 + 1e-6)).all()


def test_once_crawls_every_page_one_time():
    world = World(changing, URLS, budget=4.0)
    counts = world.run(once=True)
    assert counts.ended == len(URLS)
    assert sorted(url for _, url in world.web.requests if "robots" not in url) == sorted(URLS)
    assert min(gaps_by_host(world.web.requests).values()) >= 1.0 - 1e-6
    assert largest_share(world.asked(), 4.0) <= 1.0


def test_n_crawls_and_then_the_end():
    world = World(changing, URLS, budget=4.0, robots=False)
    assert world.run(n=17).acknowledged == 17


def test_stop_ends_cleanly():
    world = World(lambda url, now: Answer("<p>x", took=3.0), URLS, budget=4.0, robots=False)
    crawler = world.crawler()

    async def main():
        run = asyncio.ensure_future(crawler.run())
        await world.clock.advance(10.5)
        crawler.stop()
        return await world.clock.drive(run)

    counts = asyncio.run(main())
    crawler.close()
    assert counts.started == counts.ended == counts.acknowledged == world.store.counts()["observations"]
    assert world.clock.now() < START + 14.0


def queued_while_it_runs(world, after, commands, seconds):
    """Run a crawl, and queue commands for it after a time."""
    crawler = world.crawler(commands_every=2.0)

    async def main():
        run = asyncio.ensure_future(crawler.run(START + seconds))
        await world.clock.advance(after)
        await world.store.store.queue(commands)
        return await world.clock.drive(run)

    asyncio.run(main())
    crawler.close()


def test_pages_come_and_go_while_it_runs():
    world = World(changing, URLS[:20], budget=1.0)
    queued_while_it_runs(world, 60.0, [add_command(URLS[100:110], 5.0), remove_command(URLS[:10])], 300.0)
    assert world.store.commands() == []
    assert sorted(world.store.urls()) == sorted(URLS[10:20] + URLS[100:110])
    late = {url for at, url in world.web.requests if at > START + 70.0 and "robots" not in url}
    assert late.isdisjoint(URLS[:10])
    assert set(URLS[100:110]) <= late


def test_pages_may_come_with_predicted_rates():
    world = World(changing, URLS[:5], budget=1.0)
    known = add_command(URLS[100:102], 1.0, change_rate=[1e-3, 1e-6], evidence=[1e6, 1e6])
    queued_while_it_runs(world, 5.0, [known], 30.0)
    engine = world.opened()
    believed = engine.pages(engine.id(URLS[100:102])).change_rate
    np.testing.assert_allclose(believed, [1e-3, 1e-6], rtol=1e-3)


def test_a_crawl_without_budget_or_places_is_refused():
    world = World(changing, URLS[:2], budget=None)
    with pytest.raises(ParameterError, match="no budget"):
        world.crawler()
    world.budget = 1.0
    with pytest.raises(ParameterError, match="concurrency"):
        world.crawler(concurrency=0)


def test_a_mistake_in_a_fetcher_is_one_page_s_failure_and_is_reported():
    def page(url, now):
        if url.endswith("/1"):
            raise RuntimeError("a mistake in a fetcher")
        return "<p>x"

    world = World(page, URLS[:3], robots=False)
    counts = world.run(50.0)
    assert counts.errors == counts.failed == 1
    assert counts.unchanged > 20
    assert [o.failure for o in world.store.observations(URLS[1])] == ["error: RuntimeError"]
    assert [str(fields["problem"]) for name, fields in world.events if name == "error"] == ["a mistake in a fetcher"]
