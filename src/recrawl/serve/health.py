"""``GET /healthz`` and ``/readyz``: whether the process answers, and whether its crawl is loaded and runs."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import PlainTextResponse, Response

from recrawl.serve.guard import HostGuard
from recrawl.serve.problems import ProblemError, answer, answer_with_problems

_RETRY = 2.0  # seconds after which a request may be tried again while the crawl starts or stops


def health_routes(why_not_ready: Callable[[], str | None]) -> APIRouter:
    """The two routes; ``why_not_ready`` gives None while the crawl runs."""
    router = APIRouter()

    @router.get("/healthz")
    async def healthz() -> Response:
        return PlainTextResponse("ok\n")

    @router.get("/readyz")
    async def readyz() -> Response:
        if (why := why_not_ready()) is not None:
            return answer(unavailable(why))
        return PlainTextResponse("ready\n")

    return router


def unavailable(why: str) -> ProblemError:
    """The refusal while the crawl starts or stops."""
    return ProblemError(503, why, headers={"retry-after": f"{_RETRY:.0f}"})


def starting_app(public_url: str = "") -> FastAPI:
    """The app until the engine is loaded: it is healthy, not ready, and answers everything else with 503."""
    app = FastAPI(title="recrawl", docs_url=None, redoc_url=None, openapi_url=None)
    answer_with_problems(app)
    app.include_router(health_routes(lambda: "the engine is being loaded"))

    @app.api_route("/{path:path}", methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
    async def later(_: Request) -> Response:
        return answer(unavailable("the engine is being loaded"))

    app.add_middleware(HostGuard, public_url=public_url)
    return app
