"""The app: routes on top of a running crawl."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import FastAPI

from recrawl.crawl.clock import Clock
from recrawl.crawl.run.opening.components import Components
from recrawl.crawl.run.receive.receivers import Receivers
from recrawl.crawl.signals.inbox import Inbox
from recrawl.crawl.signals.tokens import Tokens
from recrawl.engine import Engine
from recrawl.serve.api.service import Service, service_routes
from recrawl.serve.feed import feed_routes
from recrawl.serve.guard import HostGuard
from recrawl.serve.health import health_routes
from recrawl.serve.indexnow import indexnow_routes
from recrawl.serve.metrics import metric_routes
from recrawl.serve.problems import answer_with_problems
from recrawl.serve.signals import signal_routes
from recrawl.serve.websub import websub_routes
from recrawl.store.protocol import Store

if TYPE_CHECKING:
    from recrawl.serve.dashboard.board import Dashboard


@dataclass(frozen=True)
class Context:
    """What routes need of a crawl; ``public_url`` is what others call, empty: only this machine does."""

    engine: Engine
    store: Store
    clock: Clock
    inbox: Inbox
    tokens: Tokens
    public_url: str = ""
    receivers: Receivers | None = None  # of hubs and pings
    dashboard: Dashboard | None = None
    service: Service | None = None  # of the routes beside those for signals; None: there are none
    components: Components | None = None  # of the crawler, for metrics


def build_app(context: Context) -> FastAPI:
    """The app of a crawl."""
    app = FastAPI(title="recrawl", docs_url=None, redoc_url=None, openapi_url=None)
    answer_with_problems(app)
    app.include_router(signal_routes(context))
    app.include_router(feed_routes(context.store, context.tokens))
    if context.components is not None:
        app.include_router(health_routes(context.components.why_not_ready))
        app.include_router(metric_routes(context.components, context.tokens))
    if context.receivers is not None:
        app.include_router(indexnow_routes(context.receivers.indexnow))
        if context.receivers.websub is not None:
            app.include_router(websub_routes(context.receivers.websub))
    if context.dashboard is not None:
        from recrawl.serve.dashboard.routes import add_dashboard

        add_dashboard(app, context.dashboard)
    if context.service is not None:
        app.include_router(service_routes(context.service, context.tokens))
    app.add_middleware(HostGuard, public_url=context.public_url)
    return app
