"""DemoServer: a demo's web on loopback, one address and port for all hosts, distinguished by the Host header."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from aiohttp import web

from recrawl.crawl.http.memory import Answer
from recrawl.demo.web import DemoWeb


class DemoServer:
    """Serves a web while it is entered."""

    def __init__(self, demo: DemoWeb, port: int = 0) -> None:
        self._demo, self._port = demo, port
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=1.0)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._demo.port = int(self._runner.addresses[0][1])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        came_at, host = self._demo.now(), request.host.rpartition(":")[0] or request.host
        latency = self._demo.latency(host)
        if latency:
            await asyncio.sleep(latency)
        answer = self._demo.answer(host, request.path, came_at)
        if answer.status == 200 and _still(request, answer):
            return web.Response(status=304, headers=answer.headers)
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        return web.Response(body=body, status=answer.status, headers=answer.headers)


def _still(request: web.BaseRequest, answer: Answer) -> bool:
    """Whether the client's copy is current, by its validators."""
    tag, date = answer.headers.get("ETag"), answer.headers.get("Last-Modified")
    if tag is not None:
        return request.headers.get("If-None-Match") == tag
    return date is not None and request.headers.get("If-Modified-Since") == date
