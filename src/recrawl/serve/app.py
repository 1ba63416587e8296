"""The app: routes on top of a crawl."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fastapi import APIRouter, FastAPI

from recrawl.crawl.run.receive.receivers import Receivers
from recrawl.crawl.signals.inbox import Taken
from recrawl.crawl.signals.sorting import Signal
from recrawl.crawl.signals.tokens import Tokens
from recrawl.serve.api.service import Service, service_routes
from recrawl.serve.feed import feed_routes
from recrawl.serve.guard import HostGuard
from recrawl.serve.health import health_routes
from recrawl.serve.metrics import Metrics, metric_routes
from recrawl.serve.problems import answer_with_problems
from recrawl.serve.receive.indexnow import indexnow_routes
from recrawl.serve.receive.share import LoopShare, Metered
from recrawl.serve.receive.signals import signal_route
from recrawl.serve.receive.websub import websub_routes
from recrawl.store.events import Event

if TYPE_CHECKING:
    from recrawl.serve.dashboard.board import Dashboard


class Listings(Protocol):
    """What routes read of pages: of a store, or of all shards."""

    async def urls(self, prefix: str = "", *, most: int | None = None) -> list[str]:
        """See `Store.urls`."""

    async def newest_events(self, many: int = 50, *, kinds: Sequence[str] | None = None) -> list[Event]:
        """See `Store.newest_events`."""


class SignalTaker(Protocol):
    """What takes signals: an inbox, or the queues of shards."""

    async def take(self, signals: Sequence[Signal], *, whole: bool = False) -> Taken:
        """See `Inbox.take`."""


@dataclass(frozen=True)
class Context:
    """What routes need of a crawl; ``public_url`` is what others call, empty: only this machine does."""

    store: Listings
    inbox: SignalTaker
    tokens: Tokens
    public_url: str = ""
    receivers: Receivers | None = None  # of hubs and pings
    dashboard: Dashboard | None = None
    service: Service | None = None  # of the routes beside those for signals; None: there are none
    metrics: Metrics | None = None
    share: LoopShare | None = None  # of the event loop's time that signals may take; None: any
    why_not_ready: Callable[[], str | None] | None = None  # gives None while the crawl is served
    routers: Sequence[APIRouter] = ()  # further routes


def build_app(context: Context) -> FastAPI:
    """The app of a crawl."""
    app = FastAPI(
        title="recrawl",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # else each request looks for it
    )
    answer_with_problems(app)
    app.router.routes.append(signal_route(context))
    if context.service is not None:  # the first routes are found soonest
        app.router.routes += service_routes(context.service, context.tokens)
    crawl = None if context.dashboard is None else context.dashboard.crawl
    app.include_router(feed_routes(context.store, context.tokens, crawl, context.public_url))
    if context.why_not_ready is not None:
        app.include_router(health_routes(context.why_not_ready))
    if context.metrics is not None:
        app.include_router(metric_routes(context.metrics, context.tokens))
    if context.receivers is not None:
        app.include_router(indexnow_routes(context.receivers.indexnow))
        if context.receivers.websub is not None:
            app.include_router(websub_routes(context.receivers.websub))
    for router in context.routers:
        app.include_router(router)
    if context.dashboard is not None:
        from recrawl.serve.dashboard.routes import add_dashboard

        add_dashboard(app, context.dashboard)
    if context.share is not None:
        app.add_middleware(Metered, share=context.share)
    app.add_middleware(HostGuard, public_url=context.public_url)
    return app
