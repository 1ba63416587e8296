"""``GET /healthz`` and ``/readyz``: whether the process answers, and whether its crawl is loaded and runs.

Before it is loaded, another app answers: programs are asked to come again, people see what is being prepared.
"""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import PlainTextResponse, Response
from starlette.staticfiles import StaticFiles

from recrawl._compile import compiling
from recrawl.serve.dashboard.rendering import HERE, render
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
    """The app until the engine is loaded: it is healthy, not ready, and answers everything else with 503.

    A browser gets a page, which loads again by itself.
    """
    app = FastAPI(title="recrawl", docs_url=None, redoc_url=None, openapi_url=None)
    answer_with_problems(app)
    app.include_router(health_routes(_prepared))
    app.mount("/static", StaticFiles(directory=HERE / "static"))

    @app.api_route("/{path:path}", methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
    async def later(request: Request) -> Response:
        problem = unavailable(_prepared())
        if request.method != "GET" or "text/html" not in request.headers.get("accept", ""):
            return answer(problem)
        page = render("starting.html", problem.status, why=problem.detail)
        page.headers.update({**problem.headers, "refresh": f"{_RETRY:.0f}"})
        return page

    app.add_middleware(HostGuard, public_url=public_url)
    return app


def _prepared() -> str:
    """What is being prepared."""
    progress = compiling.progress()
    return "the engine is being loaded" if progress is None else str(progress)
