"""Endpoints of the desk: pick, record, release, pages, requests of readers."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from recrawl.desk import Desk, NewPage, PageChange, Report
from recrawl.errors import RowError
from recrawl.serve.api import models as m
from recrawl.serve.api.endpoint import LARGE, Call, Endpoint
from recrawl.serve.problems import ProblemError

_MOST_WAITING = 64  # picks of one token that wait at a time
_URL = "https://docs.example.org/install"
_PICK = {"n": 2, "lease": 120.0, "wait": 0.0}
_OUTCOME = {"lease": "h3mQv1bq0sX2c9Jr8T6yWfZk", "status": 200, "body": "<p>hello</p>", "etag": '"5e1"', "requests": 2}


def desk_endpoints(desk: Desk) -> list[Endpoint]:
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

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._waiting: Counter[str] = Counter()

    async def pick(self, call: Call) -> m.PickAnswer:
        asked, name = call.body, call.token.name
        if self._waiting[name] >= _MOST_WAITING:
            raise ProblemError.limited(f"{_MOST_WAITING} picks of this token wait already", 1.0)
        self._waiting[name] += 1
        try:
            found = await self._desk.pick(asked.n, lease=asked.lease, hosts=asked.hosts, wait=asked.wait)
        finally:
            self._waiting[name] -= 1
        return m.PickAnswer.model_construct(pages=[m.PickedPage.model_construct(**asdict(one)) for one in found])

    async def record(self, call: Call) -> m.ResultsAnswer:
        reports = [_report(row, one) for row, one in enumerate(call.body.outcomes)]
        return m.ResultsAnswer.model_construct(results=await self._desk.record(reports))

    async def release(self, call: Call) -> m.ResultsAnswer:
        return m.ResultsAnswer.model_construct(results=await self._desk.release(call.body.leases))

    async def pages(self, call: Call) -> m.PagesAnswer:
        found, cursor = self._desk.pages(call.query.cursor, call.query.limit)
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
    fields: dict[str, Any] = {name: getattr(given, name) for name in _PLAIN}
    body = given.body_base64 if given.body is None else given.body.encode("utf-8", "surrogatepass")
    return Report(body=body, links=tuple(given.links), **fields)


_PLAIN = tuple(name for name in m.OutcomeIn.model_fields if name not in ("body", "body_base64", "links"))
