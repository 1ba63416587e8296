"""Endpoints: what a route takes, who may call it, and how its requests are read."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel, ValidationError
from starlette.routing import Route

from recrawl.crawl.signals.tokens import Token, Tokens
from recrawl.errors import ParameterError, RowError
from recrawl.serve.guard import authorize, read_body
from recrawl.serve.problems import ProblemError

JSON = "application/json"
SMALL, LARGE = 1_000_000, 64 << 20  # bytes of a request


@dataclass(frozen=True)
class Call:
    """A request that was read and checked."""

    request: Request
    token: Token
    body: Any = None  # of the endpoint's model
    query: Any = None


Handler = Callable[[Call], Awaitable[BaseModel | Response | dict[str, Any]]]


@dataclass(frozen=True)
class Endpoint:
    """One method of one path. ``example`` is a request that works, as JSON or as query parameters."""

    method: str
    path: str
    scope: str
    summary: str
    handler: Handler
    answer: type[BaseModel]
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    example: Mapping[str, Any] = field(default_factory=dict)
    most_bytes: int = SMALL
    about: str | None = None  # the field that a ParameterError of the handler is about, if it names no row
    streams: bool = False  # the answer is a stream of events
    elsewhere: bool = False  # its route is made by another module


def routes_of(endpoints: list[Endpoint], tokens: Tokens) -> list[Route]:
    """The routes of endpoints. They read requests themselves: what FastAPI would do for each is left out."""
    routes = [Route(one.path, _route(one, tokens), methods=[one.method]) for one in endpoints if not one.elsewhere]
    for route in routes:
        assert route.methods is not None
        route.methods.discard("HEAD")  # comes with GET
    return routes


def _route(endpoint: Endpoint, tokens: Tokens) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        token = authorize(request, tokens, endpoint.scope)
        body = query = None
        if endpoint.body is not None:
            body = parsed(endpoint.body, await read_body(request, endpoint.most_bytes))
        if endpoint.query is not None:
            query = from_query(endpoint.query, request)
        try:
            found = await endpoint.handler(Call(request, token, body, query))
        except RowError as problem:
            raise ProblemError(422, str(problem), field=problem.field, row=problem.row) from None
        except ParameterError as problem:
            raise ProblemError(422, str(problem), field=endpoint.about, row=None) from None
        return answered(found)

    return serve


def answered(found: BaseModel | Response | dict[str, Any]) -> Response:
    """An answer as it is sent."""
    if isinstance(found, Response):
        return found
    if isinstance(found, BaseModel):
        return Response(found.model_dump_json(), media_type=JSON)
    return Response(json.dumps(found, default=str), media_type=JSON)


def parsed(model: type[BaseModel], body: bytes) -> BaseModel:
    """A body, or ProblemError that names the first field and row that cannot be used."""
    try:
        return model.model_validate_json(body)
    except ValidationError as problem:
        raise _refusal(problem) from None


def from_query(model: type[BaseModel], request: Request) -> BaseModel:
    """Query parameters."""
    try:
        return model.model_validate(dict(request.query_params))
    except ValidationError as problem:
        raise _refusal(problem) from None


def _refusal(problem: ValidationError) -> ProblemError:
    first = problem.errors(include_url=False, include_context=False, include_input=False)[0]
    loc = [str(part)[:100] if isinstance(part, str) else part for part in first["loc"]]
    names = [part for part in loc if isinstance(part, str)]
    row = next((part for part in loc if isinstance(part, int)), None)
    where = ", ".join(f"row {part}" if isinstance(part, int) else part for part in loc) or "the body"
    text = first["msg"].encode("ascii", "backslashreplace").decode()
    return ProblemError(422, f"{where}: {text}", field=names[-1] if names else None, row=row)
