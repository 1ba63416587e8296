"""Requests that the OpenAPI document allows, and some that it does not: every answer is one that it describes."""

import asyncio
from threading import Event, Thread

import pytest
from hypothesis import HealthCheck, given, settings
from profiles import examples

from .service import URLS, Served

pytestmark = pytest.mark.slow
EXAMPLES = examples(40, usual=5)  # of each route

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
            self.url, self.token = one.url, one.tokens["admin"]
            self._ready.set()
            await self._end.wait()

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(120)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()


def test_the_service_answers_as_its_document_says(tmp_path):
    schemathesis = pytest.importorskip("schemathesis")
    from schemathesis.checks import CHECKS

    tried = 0
    with InThread(tmp_path) as service:
        schema = schemathesis.openapi.from_url(service.url + "/v1/openapi.json")
        checks = [check for check in CHECKS.get_all() if check.__name__ not in LEFT_OUT]
        assert len(checks) > 5
        for found in schema.get_all_operations():
            operation = found.ok()
            if operation.path == "/v1/events":
                continue  # its answer has no end
            tried += 1
            for mode in schemathesis.GenerationMode:

                @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
                @given(case=operation.as_strategy(generation_mode=mode))
                def answers(case):
                    wait = case.body.get("wait") if isinstance(case.body, dict) else None
                    if isinstance(wait, float | int) and 0.01 < wait <= 30:
                        case.body["wait"] = 0.01
                    case.call_and_validate(headers={"Authorization": f"Bearer {service.token}"}, checks=checks)

                answers()
    assert tried == 16
