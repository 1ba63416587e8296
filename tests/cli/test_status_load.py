"""``recrawl status``: pages that fail with their next try, and the load of each host."""

import json
import time

import numpy as np
import pytest

from recrawl.crawl.config.rules import Rules
from recrawl.crawl.polite.host_limiter import DELAY
from recrawl.crawl.run.opening.pages import add_pages, open_engine
from recrawl.store import BlockingStore, Outcome, SqliteStore

from .test_crawl import here  # noqa: F401

GOOD = [f"https://good.example/{k}" for k in range(3)]
BAD = [f"https://bad.example/{k}" for k in range(14)]
FORBIDDEN, CLOSED = "https://good.example/private", "https://closed.example:8443/"


@pytest.fixture
def now(here):  # noqa: F811
    """The time of a database with crawls of the last day."""
    at = time.time()
    with BlockingStore(SqliteStore("recrawl.db")) as store:
        engine = store.run(open_engine(store.store, at - 1e5, host_spacing=1.0))
        add_pages(engine, Rules(), [*GOOD, *BAD, FORBIDDEN, CLOSED], at - 1e5)
        failed = engine.id([*BAD, CLOSED])
        engine.record(failed, at, failed=np.ones(len(failed), bool))
        engine.hold("bad.example", at + 500.0)
        engine.hold("closed.example", at + 600.0)
        outcomes = [Outcome(url, at - 7000.0, status=200, requests=2) for url in GOOD]
        outcomes += [Outcome(GOOD[0], at - 1000.0, status=200)]
        outcomes += [Outcome(url, at - 100.0 - k, status=503, failure="busy") for k, url in enumerate(BAD)]
        outcomes += [Outcome(url, at - 50.0, failure="robots", requests=0) for url in (FORBIDDEN, CLOSED)]
        robots = {"text": None, "at": [at - 60.0, at + 300.0, 300.0], "failure": "http-5xx"}
        read = {"text": "", "at": [at - 7000.0, at + 300.0, 300.0], "failure": None}
        notes = {"robots:https://closed.example:8443": robots, "robots:https://good.example": read}
        store.save(outcomes, engine.rows(), notes={**notes, f"{DELAY}good.example": 20.0})
    return at


def test_pages_that_fail_have_a_reason_and_a_next_try(run, now):
    found = json.loads(run("status", "--json").out)["failing_pages"]
    assert found["total"] == 15
    first = found["pages"][0]
    assert (first["url"], first["reason"]) == (CLOSED, "robots.txt: http-5xx")
    assert [one["url"] for one in found["pages"][1:]] == BAD, "the last failure first"
    assert all(one["next_try"] > now for one in found["pages"])
    lines = run("status").out.splitlines()
    start = lines.index("pages that fail: 15")
    assert lines[start + 2].startswith(f"  {BAD[0]}: busy (503); next try 20")
    assert lines[start + 11] == "  and 5 more; --json lists up to 1000"


def test_hosts_that_fail_are_held_whatever_their_port(run, now):
    hosts = {one["host"]: one["left_alone_until"] for one in json.loads(run("status", "--json").out)["hosts"]}
    assert hosts == {"bad.example": pytest.approx(now + 500.0), "closed.example:8443": pytest.approx(now + 600.0)}


def test_the_load_of_hosts_counts_crawls_and_robots(run, now, here):  # noqa: F811
    rule = '[[rule]]\nmatch = "https://good.example/*"\nbudget = "80/day"\n'
    (here / "recrawl.toml").write_text(f'budget = "1600/day"\n{rule}')
    found = json.loads(run("status", "--json").out)["load"]
    assert found["total"] == 3
    by_host = {one["host"]: one for one in found["hosts"]}
    good, bad, closed = (by_host[f"{name}.example"] for name in ("good", "bad", "closed"))
    assert (good["requests_last_hour"], good["requests_last_day"]) == (1, 8)
    assert (good["delay"], good["budget"], good["held_until"]) == (20.0, "80/day", None)
    assert (good["budget_used"], good["budget_share"]) == pytest.approx((0.1, 0.005))
    assert (bad["requests_last_hour"], bad["requests_last_day"], bad["budget"]) == (14, 14, None)
    assert bad["held_until"] == pytest.approx(now + 500.0)
    assert (closed["requests_last_hour"], closed["requests_last_day"]) == (1, 1)
    text = run("status").out
    assert "a request every 20 s at most; 10% of its 80/day" in text
    assert "not asked until" in text


def test_an_empty_database_has_neither(run, here):  # noqa: F811
    run("add", "https://a.example/")
    found = json.loads(run("status", "--json").out)
    assert found["failing_pages"] == {"total": 0, "pages": []}
    assert found["load"] == {"total": 0, "hosts": []}
    assert "load per host" not in run("status").out
