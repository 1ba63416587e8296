"""``/websub/NAME``: the callbacks that hubs verify and deliver to."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response

from recrawl.crawl.run.receive.websub import LARGEST, WebSub
from recrawl.crawl.signals.websub.subscriptions import PATH
from recrawl.serve.guard import read_body
from recrawl.serve.problems import ProblemError
from recrawl.serve.receive.share import admitted

SAFE = {"x-content-type-options": "nosniff"}  # a challenge is somebody else's text


def websub_routes(websub: WebSub) -> APIRouter:
    """The routes for hubs. A callback that does not exist is 404 for a verification and 410 for a delivery."""
    router = APIRouter()

    @router.get(PATH + "{name}")
    async def verify(name: str, request: Request) -> Response:
        answer = await websub.verify(name, dict(request.query_params))
        if answer is None:
            raise ProblemError(404, "this was not asked for")
        return PlainTextResponse(answer, headers=SAFE)

    @router.post(PATH + "{name}")
    async def deliver(name: str, request: Request) -> Response:
        if not websub.knows(name):
            raise ProblemError(410, "there is no such subscription")
        await admitted(request)
        body = await read_body(request, LARGEST)
        if not await websub.deliver(name, request.headers.get("x-hub-signature", ""), request.headers, body):
            raise ProblemError(410, "there is no such subscription")
        return Response(status_code=202)

    return router
