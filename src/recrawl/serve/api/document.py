"""The OpenAPI document of the endpoints."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from recrawl.serve.api.endpoint import JSON, Endpoint
from recrawl.serve.problems import MEDIA_TYPE

_REF = "#/components/schemas/{model}"
_REFUSED = {
    "401": "no valid token",
    "403": "the token lacks the scope, or the origin is foreign",
    "408": "the body did not come in time",
    "413": "the request is too large",
    "421": "the Host is not served here",
    "422": "a field cannot be used: `field` and `row` name it, and nothing was done",
    "429": "too much at a time: Retry-After says when to try again",
    "500": "the request could not be answered",
    "503": "the database cannot be written: nothing was done",
}
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "field": {"type": ["string", "null"]},
        "row": {"type": ["integer", "null"]},
    },
}


def document(endpoints: list[Endpoint], version: str) -> dict[str, Any]:
    """The document."""
    models = {one for endpoint in endpoints for one in (endpoint.body, endpoint.query) if one is not None}
    asked = [(model, "validation") for model in sorted(models, key=lambda one: one.__name__)]
    given = [(one, "serialization") for one in sorted({e.answer for e in endpoints}, key=lambda one: one.__name__)]
    refs, found = models_json_schema([*asked, *given], ref_template=_REF)  # type: ignore[list-item]
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, refs)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "recrawl",
            "version": version,
            "description": "Which page to crawl next, and what came of it.",
        },
        "paths": paths,
        "components": {
            "schemas": {**found.get("$defs", {}), "Problem": _PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(one: Endpoint, refs: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "summary": one.summary,
        "description": f"Needs the scope {one.scope}.",
        "operationId": f"{one.method.lower()}{one.path.removeprefix('/v1').replace('/', '_')}",
        "security": [{"token": []}],
        "x-scope": one.scope,
        "responses": _responses(one, refs),
    }
    if one.body is not None:
        content = {"schema": refs[one.body, "validation"], "example": dict(one.example)}
        found["requestBody"] = {"required": True, "content": {JSON: content}}
    if one.query is not None:
        found["parameters"] = _parameters(one, one.query)
    return found


def _parameters(one: Endpoint, query: type[BaseModel]) -> list[dict[str, Any]]:
    schema = query.model_json_schema()
    required = schema.get("required", [])
    found = []
    for name, field in schema["properties"].items():
        kind = next((part for part in field.get("anyOf", []) if part.get("type") != "null"), field)
        kept = {key: value for key, value in kind.items() if key not in ("title", "default")}
        given = {"example": one.example[name]} if name in one.example else {}
        found.append({"name": name, "in": "query", "required": name in required, "schema": kept, **given})
    return found


def _responses(one: Endpoint, refs: Any) -> dict[str, Any]:
    problem = {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="Problem")}}}
    media = "text/event-stream" if one.streams else JSON
    schema = {"type": "string"} if one.streams else refs[one.answer, "serialization"]
    refused = dict(_REFUSED)
    if one.path == "/v1/why":
        refused["404"] = "the URL is not among the pages"
    return {
        "200": {"description": "the answer", "content": {media: {"schema": schema}}},
        **{status: {"description": why, "content": problem} for status, why in refused.items()},
    }
