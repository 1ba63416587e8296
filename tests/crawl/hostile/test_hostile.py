"""A hostile web: good hosts go on at their rate, memory is bounded, each bad host is named with its reason."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from recrawl.crawl.config.rules import Rules
from recrawl.crawl.run.pages import add_pages, open_engine, save_pages
from recrawl.store import BlockingStore, SqliteStore

from .cases import CASES

TESTS = Path(__file__).parents[2]
MB = 1 << 20
SECONDS, MEMORY = 24.0, 256 * MB
GOOD_HOSTS, GOOD_PAGES, DELAY = 10, 8, 2.0
SETTINGS = {
    "budget": "200/s",
    "delay": f"{DELAY} s",
    "timeout": "6 s",
    "largest_body": MB,
    "longest_delay": "2 s",
    "contact": "tests@example.org",
}


def _environment():
    paths = [str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@contextmanager
def serving(which, ended):
    """A process that serves; what it says at first, and at its end in ``ended``."""
    command = [sys.executable, "-m", "crawl.hostile.web", which]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, env=_environment(), cwd=TESTS, **pipes)
    try:
        yield json.loads(process.stdout.readline())
        ended |= json.loads(process.communicate(timeout=20)[0])
    finally:
        process.kill()
        process.wait()


@contextmanager
def crawling(folder, urls, names):
    """A process that will crawl some pages, and what it says when it has ended, with the block."""
    folder.mkdir()
    database, found = folder / "recrawl.db", {}
    with BlockingStore(SqliteStore(database)) as store:
        engine = store.run(open_engine(store.store, 1.7e9, budget=1.0))
        store.run(save_pages(engine, store.store, add_pages(engine, Rules(), urls, 1.7e9)))
    given = {"settings": {**SETTINGS, "database": str(database)}, "names": names, "seconds": SECONDS, "memory": MEMORY}
    command = [sys.executable, "-m", "crawl.hostile.crawl", json.dumps(given)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, env=_environment(), cwd=TESTS, **pipes)
    try:
        yield found, process
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err[-3000:]
        found |= {**json.loads(out), "stderr": err, "database": database}
    finally:
        process.kill()
        process.wait()


def status(database, *options):
    """What the command says."""
    command = [sys.executable, "-m", "recrawl", "status", "--database", str(database), *options]
    done = subprocess.run(command, capture_output=True, text=True, env=_environment(), timeout=60, check=True)
    return done.stdout


def good_urls(port):
    return [f"http://good{k % GOOD_HOSTS}.test:{port}/{k}" for k in range(GOOD_HOSTS * GOOD_PAGES)]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Good hosts alone, and good hosts among hostile ones: at the same time, since machines have moods."""
    folder, ended, quiet, loud = tmp_path_factory.mktemp("hostile"), {}, {}, {}
    names = {one.host: one.addresses for one in CASES}
    with serving("bad", ended) as bad, serving("good", quiet) as alone, serving("good", loud) as among:
        hostile = [f"{one.scheme}://{one.host}:{bad['ports'][one.host]}/p{k}" for one in CASES for k in range(2)]
        with (
            crawling(folder / "control", good_urls(alone["port"]), names) as (control, first),
            crawling(folder / "hostile", [*hostile, *good_urls(among["port"])], names) as (result, second),
        ):
            for process in (first, second):
                assert process.stdout.readline() == "ready\n", process.stderr.read()[-3000:]
            for process in (first, second):
                process.stdin.write("go\n")
                process.stdin.flush()
    said = json.loads(status(result["database"], "--json"))
    with BlockingStore(SqliteStore(result["database"], exclusive=False)) as store:
        outcomes = list(store.observations())
    return {
        "control": control,
        "hostile": result,
        "ratio": len(loud["good"]) / len(quiet["good"]),
        "rates": (len(quiet["good"]) / SECONDS, len(loud["good"]) / SECONDS),
        "times": [
            [sum(int(at - of["began"]) == k for at in said["good"]) for k in range(int(SECONDS))]
            for of, said in ((control, quiet), (result, loud))
        ],
        "trapped": ended["trapped"],
        "named": {one["host"].partition(":")[0]: set(one["reasons"]) for one in said["hosts"]},
        "words": status(result["database"]),
        "outcomes": outcomes,
    }


def test_good_hosts_go_on_at_their_rate(found):
    """In the time of eleven rounds of the good hosts; test_places.py has the same with exact counts."""
    assert found["rates"][0] > 0.5 * GOOD_HOSTS / DELAY, "the control is held back by politeness, not by the machine"
    assert found["ratio"] > 0.8, json.dumps([found["rates"], found["times"], found["hostile"]["cpu"]])


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
