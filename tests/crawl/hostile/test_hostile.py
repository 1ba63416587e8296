"""A hostile web: good hosts go on at their rate, memory is bounded, each bad host is named with its reason."""

import json

import pytest

from recrawl.store import BlockingStore, SqliteStore

from .cases import CASES
from .processes import MB, MEMORY, crawling, good_urls, hostile_urls, serving, status

pytestmark = pytest.mark.slow
LONGEST = 120.0  # seconds after which a crawl ends in any case; every host was crawled after about ten


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Good hosts among hostile ones, crawled until something is known of each."""
    folder, ended = tmp_path_factory.mktemp("hostile"), {}
    with serving("bad", ended) as bad, serving("good", {}) as good:
        urls = [*hostile_urls(bad["ports"]), *good_urls(good["port"])]
        slots = 4 * len(CASES)  # no crawl must make room for another, however slow the machine is: test_slots.py
        with crawling(folder / "crawl", urls, seconds=LONGEST, each=True, concurrency=slots) as (result, go):
            go()
    said = json.loads(status(result["database"], "--json"))
    with BlockingStore(SqliteStore(result["database"], exclusive=False)) as store:
        outcomes = list(store.observations())
    return {
        "hostile": result,
        "trapped": ended["trapped"],
        "named": {one["host"].partition(":")[0]: set(one["reasons"]) for one in said["hosts"]},
        "words": status(result["database"]),
        "outcomes": outcomes,
    }


def test_memory_stays_bounded(found):
    """The limit itself is enforced by the system in the crawl's process; this is how far from it the crawl stayed."""
    assert found["hostile"]["rss_peak"] - found["hostile"]["rss_before"] < MEMORY / MB
    assert found["hostile"]["errors"] == 0, found["hostile"]["stderr"]


def test_resets_came_at_many_places(found):
    mine = [outcome for outcome in found["outcomes"] if "//reset-at-every-byte" in outcome.url]
    assert {outcome.failure for outcome in mine} == {"reset"}


def test_nothing_private_was_asked(found):
    assert found["trapped"] == 0


def test_there_are_enough_of_them_and_they_are_distinct():
    assert len(CASES) >= 40
    assert len({one.name for one in CASES}) == len(CASES)
    assert len({id(one.talk) for one in CASES if one.reasons}) >= 40


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_each_bad_host_is_named_with_its_reason(found, case):
    reasons = found["named"].get(case.host, set())
    mine = [outcome for outcome in found["outcomes"] if f"//{case.host}:" in outcome.url]
    assert mine, "it was tried"
    if case.reasons:
        assert reasons & case.reasons, (reasons, [(one.failure, one.status, one.gone) for one in mine])
        assert reasons <= case.reasons
        line = next(line for line in found["words"].splitlines() if line.startswith(f"  {case.host}:"))
        assert all(reason in line for reason in reasons)
    else:
        assert not reasons
        assert any(outcome.fetched or outcome.gone for outcome in mine), [outcome.failure for outcome in mine]


def test_good_hosts_are_not_named(found):
    assert not [host for host in found["named"] if host.startswith("good")]
