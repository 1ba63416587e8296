"""IndexNow pings by an independent client to a crawl that listens; truth from the requests that the site saw."""

import asyncio

import pytest
from index_now import IndexNowAuthentication, submit_url_to_index_now, submit_urls_to_index_now

from crawl.driving import DAY, START
from crawl.listening import ListeningCrawl
from recrawl.crawl.http.memory import Answer, ManualClock
from recrawl.crawl.run.receive import indexnow
from recrawl.engine.views.signals import signal_facts
from recrawl.store import MemoryStore

pytestmark = pytest.mark.slow

SITE, KEY = "https://a.example", "a1b2c3d4-e5f6"
URLS = [f"{SITE}/{k}" for k in range(5)] + [f"{SITE}/docs/{k}" for k in range(5)]


class Site:
    """Pages and key files."""

    def __init__(self):
        self.files = {f"{SITE}/{KEY}.txt": KEY}
        self.robots = None

    def __call__(self, url, now):
        if url.endswith("/robots.txt"):
            return self.robots
        if url in self.files:
            return self.files[url]
        return f"<p>{url}</p>" if url in URLS else None


class Pinged(ListeningCrawl):
    """A crawl, and the client of its site."""

    async def submit(self, *urls, key=KEY, location=None, host="a.example"):
        """The status that the client gets."""
        who = IndexNowAuthentication(host, key, location or f"{SITE}/{key}.txt")
        endpoint = f"{self.url}/indexnow"
        with self.clock.hold():
            if len(urls) == 1:
                return await asyncio.to_thread(submit_url_to_index_now, who, urls[0], endpoint)
            return await asyncio.to_thread(submit_urls_to_index_now, who, list(urls), endpoint)

    async def signalled(self):
        return sorted(one.url for one in await self.store.signals())

    def key_requests(self, key=KEY):
        return len(self.requests(f"{SITE}/{key}.txt"))


def live(test, site=None, store=None, clock=None, **options):
    async def main():
        its_clock = clock or ManualClock(START)
        crawl = Pinged(site or Site(), its_clock, store or MemoryStore(), budget=1 / 600)
        async with crawl.running(URLS, **options):
            await crawl.after(9000.0)
            await test(crawl)

    asyncio.run(main())


def test_pings_wait_for_the_key_and_then_count():
    async def test(crawl):
        assert await crawl.submit(URLS[0]) == 202
        assert await crawl.signalled() == []
        await crawl.after(1500.0)
        assert crawl.key_requests() == 1
        (counts,) = crawl.components.inbox.counts.items()
        assert (str(counts[0]), counts[1]["accepted"]) == ("indexnow of a.example", 1)
        assert await crawl.submit(*URLS[1:4], f"{SITE}/unknown") == 200
        assert await crawl.signalled() == URLS[:4]
        await crawl.after(DAY / 2)
        assert await crawl.submit(*URLS) == 200
        assert crawl.key_requests() == 1

    live(test)


def test_a_ping_is_heard_and_over_with_the_next_crawl():
    """A source must earn its trust before it brings crawls forward (`test_inbox` has one that did)."""

    async def test(crawl):
        await crawl.submit(URLS[0])
        await crawl.after(1500.0)
        assert await crawl.submit(URLS[3]) == 200
        engine = crawl.components.engine
        (facts,) = signal_facts(engine, int(engine.id(URLS[3])[0]))
        assert (facts.heard, facts.counts) == (1, False)
        asked = len(crawl.requests(URLS[3]))
        await crawl.after(DAY / 4)
        assert len(crawl.requests(URLS[3])) > asked
        assert URLS[3] not in await crawl.signalled()

    live(test)


@pytest.mark.parametrize("content", [None, "another key", "<html>" + KEY, Answer(status=500)])
def test_a_key_that_is_not_there_is_refused_for_a_day(content):
    site = Site()
    site.files = {f"{SITE}/{KEY}.txt": content} if content is not None else {}

    async def test(crawl):
        assert await crawl.submit(URLS[0]) == 202
        await crawl.after(1500.0)
        for _ in range(3):
            assert await crawl.submit(URLS[0]) == 403
        assert crawl.key_requests() == 1
        assert await crawl.signalled() == []
        site.files[f"{SITE}/{KEY}.txt"] = KEY
        await crawl.after(DAY)
        assert await crawl.submit(URLS[0]) == 202
        await crawl.after(1500.0)
        assert await crawl.submit(URLS[1]) == 200
        assert crawl.key_requests() == 2

    live(test, site)


def test_a_key_that_was_replaced():
    site = Site()

    async def test(crawl):
        await crawl.submit(URLS[0])
        await crawl.after(1500.0)
        site.files = {f"{SITE}/the-new-key.txt": "the-new-key"}
        assert await crawl.submit(URLS[0]) == 200  # for the rest of the day
        assert await crawl.submit(URLS[0], key="the-new-key") == 202
        await crawl.after(DAY)
        assert await crawl.submit(URLS[0]) == 202
        await crawl.after(1500.0)
        assert await crawl.submit(URLS[0]) == 403
        assert await crawl.submit(URLS[0], key="the-new-key") == 202  # a day old: verified again
        await crawl.after(1500.0)
        assert await crawl.submit(URLS[0], key="the-new-key") == 200

    live(test, site)


def test_robots_txt_is_obeyed():
    site = Site()
    site.robots = f"User-agent: *\nDisallow: /{KEY}.txt"

    async def test(crawl):
        assert await crawl.submit(URLS[0]) == 202
        await crawl.after(1500.0)
        assert await crawl.submit(URLS[0]) == 403
        assert crawl.key_requests() == 0

    live(test, site, robots=True)


def test_a_key_file_speaks_for_its_folder():
    site = Site()
    location = f"{SITE}/docs/{KEY}.txt"
    site.files = {location: KEY}

    async def test(crawl):
        assert await crawl.submit(URLS[0], location=location) == 422
        assert await crawl.submit(URLS[5], location=location) == 202
        await crawl.after(1500.0)
        assert await crawl.submit(URLS[6], location=location) == 200
        assert await crawl.submit(URLS[0]) == 403

    live(test, site)


def test_what_is_refused():
    async def test(crawl):
        asked = len(crawl.memory.requests)
        assert await crawl.submit(URLS[0], key="short") == 422
        assert await crawl.submit(URLS[0], "https://b.example/") == 422
        assert await crawl.submit(URLS[0], URLS[1], host="b.example") == 422
        assert await crawl.submit(URLS[0], location="https://b.example/k.txt") == 422
        assert await crawl.submit("ftp://a.example/") == 400
        assert await crawl.submit("https://b.example/1", location="https://b.example/k.txt") == 200  # no pages there
        assert [await crawl.submit(URLS[0], key=f"random-key-{k}") for k in range(7)] == [202] * 5 + [429] * 2
        assert crawl.components.receivers.indexnow.counts == {422: 4, 400: 1, 200: 1, 202: 5, 429: 2}
        await crawl.after(1500.0)
        assert not any("b.example" in url for _, url in crawl.memory.requests[asked:])

    live(test)


def test_ten_thousand_urls_at_once():
    async def test(crawl):
        await crawl.submit(URLS[0])
        await crawl.after(1500.0)
        assert await crawl.submit(*URLS, *(f"{SITE}/unknown/{k}" for k in range(9_990))) == 200
        assert await crawl.submit(*URLS, *(f"{SITE}/unknown/{k}" for k in range(9_991))) == 400
        assert await crawl.signalled() == sorted(URLS)

    live(test)


def test_pings_that_wait_survive_a_restart(monkeypatch):
    async def main():
        clock, store, site = ManualClock(START), MemoryStore(), Site()
        crawl = Pinged(site, clock, store, budget=1 / 600)
        async with crawl.running(URLS):
            await crawl.after(9000.0)
            with monkeypatch.context() as patched:
                patched.setattr(indexnow, "_AT_A_TIME", 0)  # the run ends before the key file is fetched
                assert await crawl.submit(*URLS[:3]) == 202
        assert crawl.key_requests() == 0
        async with crawl.running():
            await crawl.after(1500.0)
            assert crawl.key_requests() == 1
            assert sum(counts["accepted"] for counts in crawl.components.inbox.counts.values()) == 3
            assert await crawl.submit(URLS[0]) == 200

    asyncio.run(main())
