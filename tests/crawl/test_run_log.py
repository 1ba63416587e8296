"""What a run logs: start, progress once a minute, host trouble and its end, by the manual clock."""

import logging

import pytest

from recrawl.crawl import Answer
from recrawl.errors import StoreError
from recrawl.logs import fields_of

from .driving import World

URLS = [f"https://{host}.example/{k}" for host in ("good", "busy", "broken", "closed") for k in range(12)]


def answer(url, at):
    if url.endswith("/robots.txt"):
        return Answer(status=503 if "//closed." in url else 404)
    if "//busy." in url:
        return Answer(status=429, headers={"Retry-After": "120"})
    if "//broken." in url:
        return Answer(status=500)
    return Answer(body=f"<p>{at}</p>".encode())


@pytest.fixture
def records(caplog):
    caplog.set_level(logging.INFO, logger="recrawl")

    def found(name=None):
        events = [(record.getMessage(), record.levelname, fields_of(record)) for record in caplog.records]
        return [one for one in events if name in (None, one[0])]

    return found


@pytest.mark.slow
def test_a_run_logs_its_start_its_progress_and_its_end(records):
    world = World(answer, URLS, budget=2.0)
    counts = world.run(190.0)
    names = [name for name, _, _ in records()]
    assert (names[0], names[-1]) == ("run.started", "run.ended")
    started = records("run.started")[0][2]
    assert (started["pages"], started["budget"], started["requests_per_second"]) == (48, "2/s", 2.0)
    assert started["version"]
    minutes = [fields for _, _, fields in records("run.progress")]
    assert [one["seconds"] for one in minutes] == [60.0, 120.0, 180.0]
    assert sum(one["requests_last_minute"] for one in minutes) == minutes[-1]["requests"] <= counts.requests
    assert minutes[0]["hosts_held"] == 1
    ended = records("run.ended")[0][2]
    assert (ended["requests"], ended["reason"], ended["seconds"]) == (counts.requests, "done", 190.0)


def test_trouble_with_hosts_is_a_warning(records):
    world = World(answer, URLS, budget=2.0)
    world.run(60.0)
    held = [fields for _, level, fields in records("host.held") if level == "WARNING"]
    assert {(one["host"], one["seconds"], one["reason"]) for one in held} == {
        ("busy.example", 120.0, "Retry-After (429)"),
        ("closed.example", 30.0, "busy"),
    }
    closed = [fields for _, level, fields in records("robots.unreachable") if level == "WARNING"]
    assert {one["host"] for one in closed} == {"closed.example"}
    assert closed[0]["seconds"] >= 300.0
    failing = [fields for _, level, fields in records("host.failing") if level == "WARNING"]
    assert [one["failures"] for one in failing if one["host"] == "broken.example"][:1] == [10]


def test_an_error_that_ends_the_run_is_logged(records):
    world = World(answer, URLS[:3], budget=2.0)

    async def full(*_, **__):
        raise StoreError("recrawl.db: the disk is full")

    world.store.store.save = full
    with pytest.raises(StoreError):
        world.run(60.0)
    _, level, fields = records("run.failed")[0]
    assert (level, fields["error"]) == ("ERROR", "StoreError: recrawl.db: the disk is full")


def test_many_hosts_in_trouble_do_not_fill_the_log(records):
    urls = [f"https://h{k}.example/" for k in range(50)]
    world = World(lambda url, at: Answer(status=429, headers={"Retry-After": "90"}), urls, budget=5.0, robots=False)
    world.run(70.0)
    shown = [one for one in records("host.held") if one[1] == "WARNING"]
    assert len(shown) == 20
    assert records("run.progress")[0][2]["warnings_hidden"] == 30
