"""A whole service on loopback, without a crawl, in the event loop of the test."""

import asyncio
from contextlib import asynccontextmanager

import aiohttp

from recrawl.crawl.config.settings import Settings
from recrawl.crawl.signals.tokens import SCOPES, new_token
from recrawl.desk import NewPage, open_desk
from recrawl.serve import Service, serve_crawl

URLS = ["https://docs.example.org/install", "https://docs.example.org/old"]
URLS += [f"https://h{k % 5}.example/{k}" for k in range(18)]


class Served:
    """A service with a token for each scope; ``tokens[None]`` has none."""

    def __init__(self, path, **settings):
        self.settings = Settings(
            database=str(path / "crawl.db"), budget="1000/s", delay=0, listen="127.0.0.1:0", **settings
        )
        self.service = self.desk = self.live = self.client = None
        self.url, self.tokens = "", {}

    @asynccontextmanager
    async def running(self, urls=()):
        """Serve while the block runs."""
        self.live, self.desk = await open_desk(self.settings)
        self.service = Service.of(self.live, self.desk)
        for scope in SCOPES:
            self.tokens[scope], kept = new_token(scope, [scope], 0.0)
            self.live.crawler.components.tokens.set(scope, kept)
        server = await serve_crawl(self.live, "127.0.0.1:0", None, self.service)
        self.url = server.url
        loop = asyncio.create_task(self.live.crawler.run(crawl=False))
        try:
            if urls:
                await self.desk.add([NewPage(url) for url in urls])
            async with aiohttp.ClientSession() as self.client:
                yield self
        finally:
            await server.close()
            await self.service.close()
            self.live.crawler.stop()
            await loop
            await self.live.close()

    async def call(self, method, path, body=None, *, scope="admin", token=None, **more):
        """Status and JSON of an answer."""
        text = self.tokens.get(scope, "") if token is None else token
        headers = {"authorization": f"Bearer {text}", **more.pop("headers", {})}
        async with self.client.request(method, self.url + path, json=body, headers=headers, **more) as answer:
            return answer.status, await answer.json(content_type=None)


def with_service(test, path, urls=URLS, **settings):
    """Run a test with a service."""

    async def run():
        async with Served(path, **settings).running(urls) as served:
            return await test(served)

    return asyncio.run(run())
