"""A crawl on loopback with a hub and pings, by the real clock: truth from the log of the site's server."""

import asyncio
import socket
import time
from collections import Counter
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from index_now import IndexNowAuthentication, submit_url_to_index_now

from crawl.hub import Hub
from crawl.servers import serving
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.assemble import open_crawl
from recrawl.crawl.run.opening.pages import add_pages, open_engine, save_pages
from recrawl.serve import serve_crawl
from recrawl.store import SqliteStore

pytestmark = pytest.mark.slow

KEY = "0123456789abcdef"


class Server:
    """Two pages, one with a hub, and a key file; ``log`` counts requests by path."""

    def __init__(self):
        self.log, self.version, self.hub = Counter(), 1, ""

    def page(self):
        return f"<html><body><p>the page in its version {self.version}</p></body></html>".encode()

    async def answer(self, request):
        self.log[request.path] += 1
        if request.path == f"/{KEY}.txt":
            return web.Response(text=KEY)
        if request.path == "/hubbed":
            link = f'<{self.hub}>; rel="hub", <{request.url}>; rel="self"'
            return web.Response(body=self.page(), content_type="text/html", headers={"Link": link})
        return web.Response(
            body=self.page(), content_type="text/html", status=200 if request.path == "/pinged" else 404
        )


async def until(happened, seconds=120.0):
    """Wait until something has happened."""
    end = time.monotonic() + seconds
    while not (await happened() if asyncio.iscoroutinefunction(happened) else happened()):
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.01)


@asynccontextmanager
async def crawling(path, urls):
    """A crawl of pages that are fetched once an hour, which listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        at = f"127.0.0.1:{free.getsockname()[1]}"
    words = {"budget": "50/s", "delay": "0 s", "contact": "me@example.org", "allow_private": True}
    rule = ({"match": "*/hubbed", "min_interval": "1 h"},)
    settings = Settings(database=str(path), listen=at, public_url=f"http://{at}", rule=rule, **words)
    store = SqliteStore(path)
    engine = await open_engine(store, time.time())
    await save_pages(engine, store, add_pages(engine, Rules(), urls, time.time()))
    await store.close()
    live = await open_crawl(settings)
    await live.crawler.components.load()
    server = await serve_crawl(live, at)
    running = asyncio.ensure_future(live.crawler.run())
    try:
        yield live
    finally:
        live.crawler.stop()
        await running
        await server.close()
        await live.close()


def test_a_hub_and_pings_on_loopback(tmp_path):
    async def main():
        site = Server()
        async with serving(site.answer) as origin, Hub(time.time, lease=86400) as hub:
            site.hub = hub.url
            hubbed, pinged = f"{origin}/hubbed", f"{origin}/pinged"
            async with crawling(tmp_path / "live.db", [hubbed, pinged]) as live:
                await until(lambda: hub.leases)
                assert site.log["/hubbed"] == 1

                site.version = 2
                assert await hub.publish(hubbed, site.page()) == [202]
                await until(lambda: live.crawler.counters.pushed == 1)

                async def is_copied():
                    versions = await live.store.versions(hubbed)
                    return bool(versions) and await live.store.body(versions[0].key) == site.page()

                await until(is_copied)
                assert site.log["/hubbed"] == 1  # the copy cost no request

                who = IndexNowAuthentication(origin.partition("//")[2], KEY, f"{origin}/{KEY}.txt")
                endpoint = f"{live.settings.public_url}/indexnow"
                assert await asyncio.to_thread(submit_url_to_index_now, who, pinged, endpoint) == 202
                await until(lambda: len(live.crawler.components.inbox.counts) == 2)  # the hub, and the ping
                assert site.log[f"/{KEY}.txt"] == 1
                await until(lambda: live.crawler.components.receivers.indexnow.keys.n_waiting == 0)
                assert await asyncio.to_thread(submit_url_to_index_now, who, pinged, endpoint) == 200
                assert site.log[f"/{KEY}.txt"] == 1
                assert live.crawler.components.receivers.indexnow.counts == {202: 1, 200: 1}

    asyncio.run(main())
