"""``/indexnow``: sites say which of their pages have changed."""

from __future__ import annotations

import asyncio
from typing import Protocol

from fastapi import APIRouter, Request
from fastapi.responses import Response

from recrawl.crawl.offload import LARGE
from recrawl.crawl.run.receive.indexnow import Answer
from recrawl.crawl.signals.indexnow.ping import LARGEST, Ping, Refusal
from recrawl.crawl.signals.indexnow.ping import read_body as read_ping
from recrawl.crawl.signals.indexnow.ping import read_query as read_query_ping
from recrawl.serve.guard import read_body
from recrawl.serve.problems import ProblemError
from recrawl.serve.receive.share import admitted


class PingTaker(Protocol):
    """What takes pings: a crawl, or the queues of shards."""

    async def receive(self, ping: Ping | Refusal) -> Answer:
        """See `IndexNow.receive`."""


def indexnow_routes(indexnow: PingTaker) -> APIRouter:
    """The routes for pings."""
    router = APIRouter()

    @router.get("/indexnow")
    async def one(request: Request) -> Response:
        await admitted(request)
        return await answered(read_query_ping(dict(request.query_params)))

    @router.post("/indexnow")
    async def many(request: Request) -> Response:
        await admitted(request)
        body = await read_body(request, LARGEST)
        large = len(body) > LARGE  # thousands of URLs take a while
        return await answered(await asyncio.to_thread(read_ping, body) if large else read_ping(body))

    async def answered(ping: Ping | Refusal) -> Response:
        answer = await indexnow.receive(ping)
        if answer.status == 429:
            raise ProblemError.limited(answer.reason, answer.retry_after)
        if answer.status >= 400:
            raise ProblemError(answer.status, answer.reason)
        return Response(status_code=answer.status)

    return router
