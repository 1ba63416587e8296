"""A store that is slow to answer for one host does not hold up the crawls of others."""

import asyncio

from recrawl.crawl import Answer
from recrawl.crawl.polite.robots import Robots
from recrawl.crawl.polite.robots_cache import PREFIX, RobotsCache
from recrawl.store import MemoryStore

from .driving import AGENT, START, World

URLS = [f"https://{host}.example/{k}" for host in "ab" for k in range(3)]


class SlowForB(MemoryStore):
    """A store that answers for the host b when ``free`` is set."""

    free = None

    async def notes(self, prefix=""):
        if prefix.startswith(f"{PREFIX}https://b.") and self.free is not None:
            await self.free.wait()
        return await super().notes(prefix)


def test_pages_of_other_hosts_are_fetched_while_the_store_is_slow_for_one():
    store = SlowForB()
    world = World(lambda url, at: Answer(status=404 if url.endswith("robots.txt") else 200), URLS, store=store)
    robots = Robots(world.web, AGENT, world.clock, RobotsCache(store))
    crawler = world.crawler(robots=robots)

    async def main():
        store.free = asyncio.Event()
        running = asyncio.ensure_future(crawler.run(START + 30.0))
        while len(world.web.requests) < 3:
            await world.clock.sleep(0.5)
            assert world.clock.now() < START + 20.0, "the crawl waits for the store"
        assert all("//a." in url for _, url in world.web.requests)
        store.free.set()
        await running

    async def limited():
        async with asyncio.timeout(300):
            await world.clock.drive(main())

    asyncio.run(limited())
    crawler.close()
    assert any("//b." in url for _, url in world.web.requests)
    assert sum(url.endswith("/robots.txt") for _, url in world.web.requests) == 2


def test_robots_of_a_host_are_looked_for_in_the_store_once():
    store = SlowForB()
    cache, asked = RobotsCache(store), []
    plain = store.notes

    async def counted(prefix=""):
        asked.append(prefix)
        return await plain(prefix)

    store.notes = counted
    for _ in range(3):
        asyncio.run(cache.recall("https://a.example"))
    assert asked == [f"{PREFIX}https://a.example"]
    assert cache.recalled("https://a.example")
    assert not cache.recalled("https://b.example")
