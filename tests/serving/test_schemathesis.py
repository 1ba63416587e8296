"""Requests that the OpenAPI document allows, and some that it does not: every answer is one that it describes."""

import asyncio
from contextlib import suppress
from threading import Event, Thread

import pytest
from hypothesis import HealthCheck, given, settings
from profiles import examples

from recrawl.crawl.signals.tokens import SCOPES
from recrawl.serve.api.events import EventStreams

from .service import URLS, Served
from .test_scopes import TABLE

pytestmark = pytest.mark.slow
EXAMPLES = examples(40, usual=5)  # of each route
OTHERS = examples(5, usual=1)  # with each token that may not do everything

# It asks for success wherever the schema allows a request. A schema cannot say which text is a URL that can be crawled,
# a budget in words or a cursor that was given before: those are refused with 422, and unknown pages with 404.
LEFT_OUT = {"positive_data_acceptance"}


class InThread:
    """A service in the event loop of a thread."""

    def __init__(self, path):
        self._served, self._ready = Served(path), Event()
        self._thread = Thread(target=lambda: asyncio.run(self._run()))

    async def _run(self):
        async with self._served.running(URLS) as one:
            self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
            self.url, self.tokens = one.url, one.tokens
            self._ready.set()
            await self._end.wait()

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(120)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()


class Ended(Exception):
    """A stream would wait for new events now."""


class Impatient:
    """A clock of streams that ends them where they would wait."""

    def __init__(self, clock):
        self.now = clock.now

    async def sleep(self, seconds):
        raise Ended


@pytest.fixture
def streams_end(monkeypatch):
    """Streams have the events there are, and an end."""
    whole = EventStreams._stream

    async def stream(self, after):
        with suppress(Ended):
            async for part in whole(EventStreams(self._events, Impatient(self._clock)), after):
                yield part

    monkeypatch.setattr(EventStreams, "_stream", stream)


def statuses_of(operation, token, n, checks):
    """The statuses of answers to n requests that the document allows and n that it does not; each answer is checked."""
    import schemathesis

    seen, head = set(), {"Authorization": f"Bearer {token}"}
    for mode in schemathesis.GenerationMode:

        @settings(max_examples=n, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(case=operation.as_strategy(generation_mode=mode))
        def answers(case):
            wait = case.body.get("wait") if isinstance(case.body, dict) else None
            if isinstance(wait, float | int) and 0.01 < wait <= 30:
                case.body["wait"] = 0.01
            seen.add(case.call_and_validate(headers=head, checks=checks).status_code)

        answers()
    return seen


def test_the_service_answers_as_its_document_says(tmp_path, streams_end):
    schemathesis = pytest.importorskip("schemathesis")
    from schemathesis.checks import CHECKS

    tried, seen = set(), {scope: set() for scope in SCOPES}
    with InThread(tmp_path) as service:
        schema = schemathesis.openapi.from_url(service.url + "/v1/openapi.json")
        checks = [check for check in CHECKS.get_all() if check.__name__ not in LEFT_OUT]
        assert len(checks) > 5
        for found in schema.get_all_operations():
            operation = found.ok()
            tried.add((operation.method.upper(), operation.path))
            for scope in SCOPES:
                n = EXAMPLES if scope == "admin" else OTHERS
                seen[scope] |= statuses_of(operation, service.tokens[scope], n, checks)
    assert tried == set(TABLE)
    assert {200, 422} <= seen.pop("admin")
    assert all(403 in statuses for statuses in seen.values())
