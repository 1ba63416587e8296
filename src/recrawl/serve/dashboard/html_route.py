"""Routes whose refusals are pages for people, not problem documents for programs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, Response
from fastapi.routing import APIRoute

from recrawl.errors import ParameterError, RecrawlError
from recrawl.logs import event
from recrawl.serve.dashboard.gate import HEADERS, SignInNeeded
from recrawl.serve.dashboard.rendering import render
from recrawl.serve.problems import ProblemError

log = logging.getLogger(__name__)
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class HtmlRoute(APIRoute):
    """Answers errors with a page that says what was wrong."""

    def get_route_handler(self) -> Handler:
        """The handler of the route."""
        handler = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handler(request)
            except SignInNeeded as needed:
                if needed.partial:
                    return Response(status_code=401, headers={**HEADERS, "hx-redirect": needed.location})
                return RedirectResponse(needed.location, 303, headers=HEADERS)
            except ProblemError as problem:
                return failed(problem.status, problem.detail)
            except ParameterError as problem:
                return failed(422, str(problem))
            except RequestValidationError as problem:
                fields = ", ".join(sorted({str(one["loc"][-1]) for one in problem.errors()}))
                return failed(422, f"{fields}: not a value that can be used here")
            except RecrawlError as problem:
                event(log, logging.ERROR, "dashboard.failed", error=problem)
                return failed(503, "The database cannot be read or written at present. Nothing was changed.")
            except Exception as problem:
                event(log, logging.ERROR, "dashboard.failed", route=self.path, error=problem)
                return failed(500, "This page could not be made. The log of the crawl says why.")

        return answered


def failed(status: int, detail: str) -> Response:
    """A page that says what was wrong."""
    return render("error.html", status, title=HTTPStatus(status).phrase, detail=detail, now=None)
