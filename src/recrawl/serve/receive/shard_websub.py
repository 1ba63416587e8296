"""``/shards/N/websub/NAME``: callbacks of a cluster, which any worker answers for the shard that subscribed."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response

from recrawl.crawl.run.receive.websub import LARGEST
from recrawl.crawl.signals.websub.subscriptions import PATH
from recrawl.serve.crawls.shard_receivers import ShardHubs
from recrawl.serve.crawls.shards import ClusterCrawl
from recrawl.serve.guard import read_body
from recrawl.serve.problems import ProblemError
from recrawl.serve.receive.websub import SAFE


def shard_websub_routes(crawl: ClusterCrawl) -> APIRouter:
    """The routes for hubs; answers are those of one machine."""
    router, n_shards = APIRouter(), crawl.reader.cluster.shards

    def hubs(shard: int, status: int) -> ShardHubs:
        if not 0 <= shard < n_shards:
            raise ProblemError(status, "there is no such shard")
        return ShardHubs(crawl, shard)

    @router.get("/shards/{shard}" + PATH + "{name}")
    async def verify(shard: int, name: str, request: Request) -> Response:
        answer = await hubs(shard, 404).verify(name, dict(request.query_params))
        if answer is None:
            raise ProblemError(404, "this was not asked for")
        return PlainTextResponse(answer, headers=SAFE)

    @router.post("/shards/{shard}" + PATH + "{name}")
    async def deliver(shard: int, name: str, request: Request) -> Response:
        mine = hubs(shard, 410)
        if not await mine.knows(name):
            raise ProblemError(410, "there is no such subscription")
        body = await read_body(request, LARGEST)
        taken = await mine.deliver(name, request.headers.get("x-hub-signature", ""), request.headers, body)
        if taken is None:
            raise ProblemError.limited("too much waits for the workers", 60.0)
        if not taken:
            raise ProblemError(410, "there is no such subscription")
        return Response(status_code=202)

    return router
