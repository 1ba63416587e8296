"""The factory of live crawls: settings in, a crawler out, with fetchers that are injected."""

import asyncio
import logging

import pytest

from recrawl import ParameterError
from recrawl.crawl import ManualClock, MemoryWeb, Rules, Settings, Web, add_pages, open_crawl, open_engine, save_pages
from recrawl.errors import StoreError
from recrawl.store import SqliteStore

URLS = [f"https://h{k}.example/{j}" for k in range(3) for j in range(4)]


def database(path, urls):
    async def main():
        store = SqliteStore(path)
        engine = await open_engine(store, 1e9, budget=1.0)
        await save_pages(engine, store, add_pages(engine, Rules(), urls, 1e9))
        await store.close()

    asyncio.run(main())
    return Settings(database=str(path), contact="me@example.org", budget="1/s", delay="1 s")


def test_a_crawl_is_assembled_from_settings_with_any_fetcher(tmp_path, caplog):
    settings, clock = database(tmp_path / "a.db", URLS), ManualClock(1e9)
    web = MemoryWeb(lambda url, now: None if "robots" in url else f"<p>{url}", clock, max_redirects=0)

    async def main():
        live = await open_crawl(settings, web=Web("recrawl/1", web, web, clock), concurrency=2)
        try:
            return await live.crawler.run(live.clock.now() + 60.0)
        finally:
            await live.close()

    with caplog.at_level(logging.DEBUG, "recrawl"):
        counters = asyncio.run(clock.drive(main()))
    assert counters.new == len(URLS)
    assert len([url for _, url in web.requests if url.endswith("robots.txt")]) == 3
    events = [record.getMessage() for record in caplog.records]
    assert events[0] == "run.started"
    assert events[-1] == "run.ended"
    assert events.count("crawl.ended") == counters.ended
    assert caplog.records[0].fields["pages"] == len(URLS)


def test_what_cannot_be_crawled_is_refused(tmp_path):
    with pytest.raises(StoreError, match="there is no such database"):
        asyncio.run(open_crawl(Settings(database=str(tmp_path / "none.db"), contact="me@example.org")))
    settings = database(tmp_path / "empty.db", [])
    with pytest.raises(ParameterError, match="has no pages"):
        asyncio.run(open_crawl(settings))
    with pytest.raises(ParameterError, match="no contact is given"):
        asyncio.run(open_crawl(Settings(database=settings.database)))
