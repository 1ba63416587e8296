"""Endpoints of the desk: pick, record, release, pages, requests of readers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any, Protocol

from fastapi.responses import Response

from recrawl.desk import NewPage, PageChange, PageFacts, Picked, Report
from recrawl.errors import RowError
from recrawl.serve.api import models as m
from recrawl.serve.api.endpoint import JSON, LARGE, Call, Endpoint
from recrawl.serve.problems import ProblemError

_MOST_WAITING = 64  # picks of one token that wait at a time
_URL = "https://docs.example.org/install"
_PICK = {"n": 2, "lease": 120.0, "wait": 0.0}
_OUTCOME = {"lease": "h3mQv1bq0sX2c9Jr8T6yWfZk", "status": 200, "body": "<p>hello</p>", "etag": '"5e1"', "requests": 2}


class PageDesk(Protocol):
    """The calls of `Desk` that are endpoints."""

    async def pick(
        self, n: int, *, lease: float = 300.0, hosts: Collection[str] | None = None, wait: float = 0.0
    ) -> list[Picked]:
        """See `Desk.pick`."""

    async def record(self, reports: Sequence[Report]) -> list[str]:
        """See `Desk.record`."""

    async def release(self, leases: Sequence[str]) -> list[str]:
        """See `Desk.release`."""

    async def listed(self, cursor: str | None, n: int) -> tuple[list[PageFacts], str | None]:
        """See `Desk.pages`."""

    async def add(self, pages: Sequence[NewPage]) -> int:
        """See `Desk.add`."""

    async def update(self, changes: Sequence[PageChange]) -> int:
        """See `Desk.update`."""

    async def remove(self, urls: Sequence[str]) -> int:
        """See `Desk.remove`."""

    async def requested(self, urls: Sequence[str]) -> tuple[int, int]:
        """See `Desk.requested`."""

    async def close(self) -> None:
        """Wait until all is committed."""


def desk_endpoints(desk: PageDesk) -> list[Endpoint]:
    """What foreign crawlers call, and what those call who choose the pages."""
    calls = _Calls(desk)
    return [*_crawl_endpoints(calls), *_page_endpoints(calls)]


def _crawl_endpoints(calls: _Calls) -> list[Endpoint]:
    return [
        Endpoint(
            "POST", "/v1/pick", "crawl", "Pick pages to crawl", calls.pick, m.PickAnswer, m.PickRequest, example=_PICK
        ),
        Endpoint(
            "POST",
            "/v1/record",
            "crawl",
            "Record what crawls found",
            calls.record,
            m.ResultsAnswer,
            m.RecordRequest,
            example={"outcomes": [_OUTCOME]},
            most_bytes=LARGE,
        ),
        Endpoint(
            "POST",
            "/v1/release",
            "crawl",
            "Give leases back",
            calls.release,
            m.ResultsAnswer,
            m.ReleaseRequest,
            example={"leases": [_OUTCOME["lease"]]},
        ),
    ]


def _page_endpoints(calls: _Calls) -> list[Endpoint]:
    return [
        Endpoint(
            "GET",
            "/v1/pages",
            "read",
            "List pages",
            calls.pages,
            m.PagesAnswer,
            query=m.PagesQuery,
            example={"limit": 10},
            about="cursor",
        ),
        Endpoint(
            "POST",
            "/v1/pages",
            "admin",
            "Add pages",
            calls.add,
            m.AddAnswer,
            m.AddRequest,
            example={"pages": [{"url": _URL, "importance": 2.0}]},
            most_bytes=LARGE,
        ),
        Endpoint(
            "PATCH",
            "/v1/pages",
            "admin",
            "Change pages",
            calls.update,
            m.UpdateAnswer,
            m.UpdateRequest,
            example={"pages": [{"url": _URL, "importance": 5.0, "paused": False}]},
            most_bytes=LARGE,
        ),
        Endpoint(
            "POST",
            "/v1/pages/remove",
            "admin",
            "Remove pages",
            calls.remove,
            m.RemoveAnswer,
            m.RemoveRequest,
            example={"urls": ["https://docs.example.org/old"]},
            most_bytes=LARGE,
        ),
        Endpoint(
            "POST",
            "/v1/requests",
            "signal",
            "Count requests of readers",
            calls.requests,
            m.ReadersAnswer,
            m.ReadersRequest,
            example={"urls": [_URL, _URL]},
            most_bytes=LARGE,
        ),
    ]


class _Calls:
    """The calls of a desk, as JSON."""

    def __init__(self, desk: PageDesk) -> None:
        self._desk = desk
        self._waiting: Counter[str] = Counter()

    async def pick(self, call: Call) -> Response:
        asked, name = call.body, call.token.name
        if self._waiting[name] >= _MOST_WAITING:
            raise ProblemError.limited(f"{_MOST_WAITING} picks of this token wait already", 1.0)
        self._waiting[name] += 1
        try:
            found = await self._desk.pick(asked.n, lease=asked.lease, hosts=asked.hosts, wait=asked.wait)
        finally:
            self._waiting[name] -= 1
        return Response(json.dumps({"pages": [one._asdict() for one in found]}), media_type=JSON)

    async def record(self, call: Call) -> m.ResultsAnswer:
        reports = [_report(row, one) for row, one in enumerate(call.body.outcomes)]
        return m.ResultsAnswer.model_construct(results=await self._desk.record(reports))

    async def release(self, call: Call) -> m.ResultsAnswer:
        return m.ResultsAnswer.model_construct(results=await self._desk.release(call.body.leases))

    async def pages(self, call: Call) -> m.PagesAnswer:
        found, cursor = await self._desk.listed(call.query.cursor, call.query.limit)
        pages = [m.PageOut.model_construct(**asdict(one)) for one in found]
        return m.PagesAnswer.model_construct(pages=pages, cursor=cursor)

    async def add(self, call: Call) -> m.AddAnswer:
        given = call.body.pages
        added = await self._desk.add([NewPage(one.url, one.importance) for one in given])
        return m.AddAnswer(added=added, known=len(given) - added)

    async def update(self, call: Call) -> m.UpdateAnswer:
        changes = [PageChange(one.url, one.importance, one.paused) for one in call.body.pages]
        return m.UpdateAnswer(updated=await self._desk.update(changes))

    async def remove(self, call: Call) -> m.RemoveAnswer:
        return m.RemoveAnswer(removed=await self._desk.remove(call.body.urls))

    async def requests(self, call: Call) -> m.ReadersAnswer:
        counted, unknown = await self._desk.requested(call.body.urls)
        return m.ReadersAnswer(counted=counted, unknown=unknown)


def _report(row: int, given: m.OutcomeIn) -> Report:
    """An outcome as the desk takes it."""
    if given.body is not None and given.body_base64 is not None:
        raise RowError(row, "body", "give only one of body and body_base64")
    body = given.body_base64 if given.body is None else given.body.encode("utf-8", "surrogatepass")
    values: tuple[Any, ...] = _cells(given)
    values = (*values[:_BODY], body, *values[_BODY:], tuple(given.links))
    return Report(*values)


_REPORT = list(Report._fields)  # the last of them are the links
_BODY = _REPORT.index("body")
_cells = attrgetter(*(name for name in _REPORT if name not in ("body", "links")))
