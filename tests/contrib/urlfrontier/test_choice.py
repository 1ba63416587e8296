"""Which pages a call gets of managed crawls while others are worth more."""

import pytest

from recrawl.contrib.urlfrontier import Modes
from recrawl.contrib.urlfrontier.frontier import Ask
from recrawl.contrib.urlfrontier.managed import choice
from recrawl.contrib.urlfrontier.testing.bench import discovered
from recrawl.desk import picks
from tests.contrib.urlfrontier.services import served

MANAGED = Modes.of("managed")
BETTER = [f"http://big{k % 3}.example/{k}" for k in range(60)]
OWN = [f"http://h{k % 4}.example/{k}" for k in range(20)]


async def put(client, crawl, urls):
    async for _ in client.PutURLs(iter([discovered(url, crawl) for url in urls])):
        pass


def value(world, urls, importance):
    engine = world.desks.crawler.engine
    engine.update(engine.id(urls), importance=[importance] * len(urls))


async def get(client, **fields):
    return [info.url async for info in client.GetURLs(**{"delay_requestable": 1000, **fields})]


@pytest.fixture(params=[10_000, 7, 2], ids=lambda most: f"{most} valued at once")
def few_examined(request, monkeypatch):
    """A pick looks at 8 pages of all; then at so many of its own, of several queues or of a part of one."""
    monkeypatch.setattr(picks, "_EXAMINED", 8)
    monkeypatch.setattr(picks, "_EXAMINED_FIRST", 8)
    monkeypatch.setattr(choice, "_MOST", request.param)
    return request.param


def test_better_pages_of_another_crawl_starve_nobody(tmp_path, few_examined):
    async def test(world, client):
        await put(client, "big", BETTER)
        await put(client, "small", OWN)
        value(world, BETTER, 9.0)
        value(world, OWN[7:8], 5.0)
        await client.SetDelay(delay_requestable=0)
        first = await get(client, crawlID="small", max_urls_per_queue=1, max_queues=1)
        assert len(first) == 1
        if few_examined > len(OWN):
            assert first == OWN[7:8], "the best of its own"
        found = list(first)
        for _ in range(len(OWN)):
            found += await get(client, crawlID="small")
        assert sorted(found) == sorted(OWN), "each once"
        assert await get(client, crawlID="small") == []
        assert sorted(await get(client, crawlID="big")) == sorted(BETTER), "what was looked at is free"
        world.desks.crawler.engine.scheduler._check()
        world.desks.crawler.engine.eligibility._check()

    served(test, tmp_path, MANAGED)


@pytest.mark.usefixtures("few_examined")
def test_better_pages_of_a_blocked_queue_starve_no_other(tmp_path):
    async def test(world, client):
        await put(client, "news", [*BETTER, *OWN])
        value(world, BETTER, 9.0)
        for k in range(3):
            await client.BlockQueueUntil(crawlID="news", key=f"big{k}.example", time=int(world.clock.now()) + 9000)
        found = []
        for _ in OWN:
            found += await get(client, crawlID="news", max_urls_per_queue=1)
            world.clock._now += 2.0
        assert sorted(url.split("/")[2] for url in found) == [f"h{k}.example" for k in range(4)], "one of each queue"
        assert len(await get(client, crawlID="news", key="h2.example")) == 4
        assert await get(client, crawlID="news", key="big1.example") == []

    served(test, tmp_path, MANAGED)


@pytest.mark.parametrize("others", [BETTER, []], ids=["among better pages", "alone"])
def test_a_call_ends_where_the_next_best_is_of_one_queue_more(tmp_path, monkeypatch, others):
    """Also where a crawl's own pages are valued by themselves."""
    monkeypatch.setattr(picks, "_EXAMINED_FIRST", 8)

    async def test(world, client):
        await put(client, "big", others)
        await put(client, "small", OWN)
        value(world, others, 9.0)
        for importance, url in ((7.0, OWN[0]), (6.0, OWN[4]), (5.0, OWN[1])):
            value(world, [url], importance)
        found = await world.service.crawls.take("small", Ask(1, 100, 30.0))
        assert [one.row.url for one in found] == [OWN[0], OWN[4]]

    served(test, tmp_path, MANAGED)
