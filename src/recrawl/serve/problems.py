"""Problems as RFC 9457 writes them: what was wrong with a request, as JSON."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from recrawl.errors import StoreError
from recrawl.logs import event

MEDIA_TYPE = "application/problem+json"
log = logging.getLogger(__name__)


class ProblemError(Exception):
    """A request that is refused. ``more`` are further members of the answer, such as the field and the row."""

    def __init__(self, status: int, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers, self.more = status, detail, dict(headers or {}), more

    @classmethod
    def limited(cls, detail: str, seconds: float) -> ProblemError:
        """Too many requests or signals; ``seconds`` until the next may come."""
        return cls(429, detail, headers={"retry-after": str(max(math.ceil(seconds), 1))})


def members(problem: ProblemError) -> dict[str, Any]:
    """The members of a problem."""
    title = HTTPStatus(problem.status).phrase
    return {"type": "about:blank", "title": title, "status": problem.status, "detail": problem.detail, **problem.more}


def answer(problem: ProblemError) -> Response:
    """The answer to a request that is refused."""
    text = json.dumps(members(problem))  # in ASCII: requests may hold what UTF-8 cannot
    return Response(text, problem.status, headers=problem.headers, media_type=MEDIA_TYPE)


def answer_with_problems(app: FastAPI) -> None:
    """Let an app answer all errors as problems."""

    async def refused(_: Request, problem: Exception) -> Response:
        assert isinstance(problem, ProblemError)
        return answer(problem)

    async def by_router(_: Request, problem: Exception) -> Response:
        assert isinstance(problem, HTTPException)
        return answer(ProblemError(problem.status_code, problem.detail, headers=problem.headers))

    async def not_stored(_: Request, problem: Exception) -> Response:
        event(log, logging.ERROR, "serve.not_stored", error=problem)
        return answer(ProblemError(503, "the database cannot be written: nothing was taken"))

    async def failed(request: Request, problem: Exception) -> Response:
        event(log, logging.ERROR, "serve.failed", route=_route(request), error=problem)
        return answer(ProblemError(500, "the request could not be answered"))

    app.add_exception_handler(ProblemError, refused)
    app.add_exception_handler(HTTPException, by_router)
    app.add_exception_handler(StoreError, not_stored)
    app.add_exception_handler(Exception, failed)


def _route(request: Request) -> str:
    """The pattern of the route: paths may hold what nobody else must know."""
    return getattr(request.scope.get("route"), "path", "")
