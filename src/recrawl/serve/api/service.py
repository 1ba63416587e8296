"""The service: all endpoints of a crawl with its desk, and their document."""

from __future__ import annotations

import json
from dataclasses import dataclass

from fastapi import Request
from fastapi.responses import Response
from starlette.routing import Route

from recrawl.crawl.run.opening.assemble import LiveCrawl
from recrawl.crawl.signals.tokens import Tokens
from recrawl.desk import Desk
from recrawl.serve.api import models as m
from recrawl.serve.api.desk import PageDesk, desk_endpoints
from recrawl.serve.api.document import document
from recrawl.serve.api.endpoint import JSON, Call, Endpoint, routes_of
from recrawl.serve.api.events import EventReader, StoreEvents, event_endpoints
from recrawl.serve.api.figures import Figures
from recrawl.serve.api.views import view_endpoints
from recrawl.serve.crawls.local import LocalCrawl
from recrawl.serve.crawls.view import CrawlView

DOCUMENT = "/v1/openapi.json"


@dataclass(frozen=True)
class Service:
    """What answers the endpoints: a crawl, its desk, and figures about all pages."""

    crawl: CrawlView
    desk: PageDesk
    figures: Figures
    events: EventReader

    @classmethod
    def of(cls, live: LiveCrawl, desk: Desk) -> Service:
        """The service of a crawl."""
        crawl = LocalCrawl(live)
        return cls(crawl, desk, Figures(crawl.questions), StoreEvents(live.store))

    def endpoints(self) -> list[Endpoint]:
        """All endpoints."""
        stream = event_endpoints(self.events, self.crawl.clock)
        return [*desk_endpoints(self.desk), _signals(), *view_endpoints(self.crawl, self.figures), *stream]

    async def close(self) -> None:
        """Wait until what was acknowledged is written, and end the thread."""
        self.figures.close()
        await self.desk.close()


def service_routes(service: Service, tokens: Tokens) -> list[Route]:
    """The routes of a service; its document needs no token."""
    from recrawl import __version__

    endpoints = service.endpoints()
    text = json.dumps(document(endpoints, __version__))

    async def openapi(_: Request) -> Response:
        return Response(text, media_type=JSON)

    return [*routes_of(endpoints, tokens), Route(DOCUMENT, openapi)]


def _signals() -> Endpoint:
    """``POST /v1/signals``, which has a module of its own."""

    async def elsewhere(_: Call) -> Response:
        raise NotImplementedError

    return Endpoint(
        "POST",
        "/v1/signals",
        "signal",
        "Say which pages have changed",
        elsewhere,
        m.SignalsAnswer,
        m.SignalsRequest,
        example={"signals": [{"url": "https://docs.example.org/install", "changed_at": "2026-01-31T12:00:00Z"}]},
        elsewhere=True,
    )
