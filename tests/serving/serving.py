"""The HTTP interface of an inbox on loopback, in the event loop of the test."""

import asyncio
from contextlib import asynccontextmanager
from io import BytesIO

import aiohttp

from recrawl import Engine
from recrawl.crawl.clock import SystemClock
from recrawl.crawl.signals.inbox import Inbox, InboxOptions
from recrawl.crawl.signals.sources import WEBHOOK, Source
from recrawl.crawl.signals.tokens import Token, Tokens, new_token
from recrawl.serve import Context, HttpServer, build_app
from recrawl.store import MemoryStore

URLS = [f"https://a.example/{k}" for k in range(20)] + [f"https://b.example/x/{k}" for k in range(30)]


class Interface:
    """A server with an engine, a store, an inbox and two tokens, one of them without a scope."""

    def __init__(self, store=None, public_url="", share=None, **options):
        self.clock, self.store = SystemClock(), store or MemoryStore()
        now = self.clock.now()
        self.engine = Engine(1.0, start=now)
        self.engine.add(URLS, now, fetched_at=now - 1000.0)
        self.inbox = Inbox(self.engine, self.store, self.clock, InboxOptions(**options))
        self.token, kept = new_token("cms", ["signal"], now)
        self.other, bare = new_token("other", ["signal"], now)
        self.tokens = Tokens([kept, Token(**{**vars(bare), "scopes": ()})])
        self.share = share
        self.public_url, self.url, self.client, self.server = public_url, "", None, None

    @asynccontextmanager
    async def serving(self):
        """Serve while the block runs."""
        await self.store.save(rows=self.engine.rows())
        context = Context(self.store, self.inbox, self.tokens, self.public_url, share=self.share)
        self.server = HttpServer(build_app(context), "127.0.0.1:0", share=self.share)
        await self.server.start()
        self.url = self.server.url
        try:
            async with aiohttp.ClientSession() as self.client:
                yield self
        finally:
            await self.server.close()

    def limit(self, limit):
        """Another limit of the token."""
        self.inbox.limits.set(Source(WEBHOOK, "cms"), limit)

    async def post(self, body, token=None, path="/v1/signals", **headers):
        """Status, headers and JSON of the answer to a post; ``body`` is JSON or bytes."""
        sent = {"authorization": f"Bearer {self.token if token is None else token}", **headers}
        sent = {name: value for name, value in sent.items() if value is not None}
        given = {"data": BytesIO(body)} if isinstance(body, bytes) else {"json": body}
        async with self.client.post(self.url + path, headers=sent, **given) as answer:
            return answer.status, answer.headers, await answer.json(content_type=None)


def with_interface(test, *args, **options):
    """Run a test with a server."""

    async def run():
        async with Interface(*args, **options).serving() as interface:
            return await test(interface)

    return asyncio.run(run())
