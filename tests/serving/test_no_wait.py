"""No reply waits for figures about all pages: forecasts and ledgers are computed beside the loop."""

import asyncio
import threading

import pytest

from recrawl.serve.crawls.database import DatabaseQuestions

from .service import URLS, with_service

FIGURES = ("snapshot", "status", "sources", "hosts")


@pytest.fixture
def held(monkeypatch):
    """Questions about all pages are answered when the event is set; which were asked so far."""
    may_end, asked = threading.Event(), []
    for name in FIGURES:
        real = getattr(DatabaseQuestions, name)

        def late(self, *given, _name=name, _real=real):
            asked.append(_name)
            may_end.wait(300)
            return _real(self, *given)

        monkeypatch.setattr(DatabaseQuestions, name, late)
    yield may_end, asked
    may_end.set()


def test_pages_are_picked_and_recorded_while_a_forecast_is_computed(tmp_path, held):
    may_end, asked = held

    async def test(one):
        paths = ("/v1/forecast?budget=2/s", "/v1/status", "/v1/sources", "/v1/hosts")
        waiting = [asyncio.create_task(one.call("GET", path)) for path in paths]
        while not asked:
            await asyncio.sleep(0.001)
        _, picked = await one.call("POST", "/v1/pick", {"n": 2, "lease": 60})
        leases = [page["lease"] for page in picked["pages"]]
        outcome = {"lease": leases[0], "status": 200, "digest": "x"}
        calls = [
            ("POST", "/v1/record", {"outcomes": [outcome]}),
            ("POST", "/v1/release", {"leases": leases[1:]}),
            ("GET", f"/v1/why?url={URLS[0]}", None),
            ("GET", "/v1/budget", None),
            ("PUT", "/v1/budget", {"budget": "20/s"}),
            ("GET", "/v1/pages", None),
        ]
        assert [(await one.call(*call))[0] for call in calls] == [200] * len(calls)
        assert not any(task.done() for task in waiting), "they have not been computed"
        may_end.set()
        assert [status for status, _ in await asyncio.gather(*waiting)] == [200] * len(paths)

    with_service(test, tmp_path)
