"""Pings of a demo's sites by HTTP: a server of a crawl on loopback, and what posts to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp

from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.signals.tokens import Tokens, new_token
from recrawl.demo.signals import Send
from recrawl.errors import RecrawlError
from recrawl.serve.app import Context, build_app
from recrawl.serve.server import HttpServer


@asynccontextmanager
async def by_http(crawler: Crawler, names: Sequence[str]) -> AsyncIterator[Send]:
    """Serve ``POST /v1/signals`` of a crawl on loopback; each site has a token of its name."""
    components = crawler.components
    made = {name: new_token(name, ["signal"], components.clock.now()) for name in names}
    context = Context(components.store, components.inbox, Tokens([token for _, token in made.values()]))
    server = HttpServer(build_app(context), "127.0.0.1:0", quiet=True)
    await server.start()
    try:
        async with aiohttp.ClientSession(server.url) as session:

            async def send(name: str, said: Sequence[tuple[str, float]]) -> None:
                rows = [{"url": url, "changed_at": at} for url, at in said]
                headers = {"Authorization": f"Bearer {made[name][0]}"}
                async with session.post("/v1/signals", json={"signals": rows}, headers=headers) as answer:
                    if answer.status not in (200, 429):
                        raise RecrawlError(f"pings of {name}: {answer.status} {await answer.text()}")

            yield send
    finally:
        await server.close()
