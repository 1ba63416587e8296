"""Restarts of Scrapy with the add-on: nothing is lost and nothing is recorded twice, by server and database."""

import asyncio
import os
import random
import shutil
import signal
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from contrib.scrapy.worlds import Run, Site, leases, recorded, stored
from recrawl.store.leases import HELD, RECORDED
from tests.serving.service import with_service

PAGES = [f"/page/{k}" for k in range(12)]
ALL = [*PAGES, "/page/found"]
SMALL = {"CONCURRENT_REQUESTS": 2, "RECRAWL_LINKS": True}

pytestmark = [pytest.mark.slow, pytest.mark.full]


def same(site, database):
    """Each request is recorded once."""
    counts, served = recorded(stored(database)[0], site.origin), site.served()
    assert {path: counts[path] for path in ALL} == {path: served[path] for path in ALL}


def test_sigint_again_and_again(tmp_path):
    with Site().serving() as site:
        for k in range(5):
            n = len(site.log)
            run = Run(tmp_path, site, PAGES, **SMALL)
            run.until(lambda n=n, k=k: len(site.log) > n + 10 * k)
            run.interrupt()
            run.end()
            same(site, run.database)
            assert stored(run.database)[1] == []


def held_requests(tmp_path, site, **settings):
    """A run with JOBDIR that is interrupted while requests wait in Scrapy's queue; how many wait."""
    site.gate.clear()
    run = Run(tmp_path, site, PAGES, JOBDIR=str(tmp_path / "job"), **SMALL, **settings)
    queue = tmp_path / "job" / "requests.queue"

    def wait():
        """Both slots are taken, and Scrapy's queue on disk holds requests; what is taken from it is cut off."""
        return site.n_waiting == 2 and sum(file.stat().st_size for file in queue.rglob("*") if file.is_file()) > 100

    run.until(wait)
    run.interrupt()
    run.until(lambda: "Received SIGINT" in run.errors)
    site.gate.set()
    stats = run.end()
    return stats["scheduler/enqueued"] - stats["scheduler/dequeued"]


def test_jobdir_brings_requests_back_with_their_leases(tmp_path):
    with Site().serving() as site:
        waiting = held_requests(tmp_path, site)
        database = str(tmp_path / "pages.db")
        assert 0 < waiting == len(stored(database)[1])
        run = Run(tmp_path, site, PAGES, JOBDIR=str(tmp_path / "job"), **SMALL)
        run.until(lambda: all(site.served()[path] for path in ALL))
        run.interrupt()
        stats = run.end()
        assert stats["recrawl/resumed"] == waiting
        same(site, database)


def test_requests_whose_lease_has_ended_are_dropped(tmp_path):
    with Site().serving() as site:
        waiting, seen = held_requests(tmp_path, site, RECRAWL_LEASE="2 s"), len(site.log)
        database = str(tmp_path / "pages.db")
        until = max(lease.until for lease in stored(database)[1])
        while time.time() <= until:
            time.sleep(0.1)
        run = Run(tmp_path, site, PAGES, JOBDIR=str(tmp_path / "job"), **SMALL)
        run.until(lambda: all(path in {one[0] for one in site.log[seen:]} for path in ALL))
        run.interrupt()
        stats = run.end()
        assert stats["recrawl/dropped"] == waiting
        assert "recrawl/resumed" not in stats
        same(site, database)


def facts(database):
    """What was recorded, each outcome by URL and time, and how often."""
    return Counter((one.url, one.began_at) for one in stored(database)[0])


def settled(site, database, *, ended):
    """How many requests are not recorded, if each of them was on its way when its run was killed.

    Its lease is open then: the page is fetched again when it has ended. What the desk acknowledged is recorded, and
    each recorded lease is one outcome. ``ended``: the last run was not killed; all that it requested is recorded.
    """
    asked, given, words = list(site.leases), [], {}
    for line in Path(database).with_name("words.txt").read_text().splitlines():
        lease, word = line.split()
        given += [lease] if word == "put" else []
        words |= {} if word == "put" else {lease: word}
    assert set(words.values()) <= {"recorded", "late"}
    known = leases(database, {*filter(None, asked), *given, *words})
    assert {*filter(None, asked)} <= known.keys() >= {*given, *words}, "each request has a lease of the database"
    assert all(known[lease].state == RECORDED for lease in words), "an outcome that was acknowledged is missing"
    done = Counter(one.url for one in known.values() if one.state == RECORDED)
    assert Counter(one.url for one in stored(database)[0]) == done
    lost = [lease for lease in known.values() if lease.state != RECORDED]
    assert {lease.state for lease in lost} <= {HELD}
    for one in lost:
        after = [other for other in known.values() if other.url == one.url and other.picked_at > one.picked_at]
        assert all(other.picked_at >= one.until for other in after), "a page had two holders"
    runs = list(pairwise([*site.starts, len(asked)]))
    for first, last in runs:
        later = {*asked[last:], ""}  # JOBDIR may bring a request back
        rows = [known[lease] for lease in dict.fromkeys(asked[first:last]) if lease not in later]
        check_run(rows, given, until=site.log[last - 1][2], ended=ended and last == len(asked))
    return len(lost)


def check_run(asked, given, until, *, ended):
    """What a run that lasted ``until`` has requested, but not recorded; it may give up leases that end sooner."""
    place = {lease: k for k, lease in enumerate(given)}
    handed_in = sorted((one for one in asked if one.id in place), key=lambda one: place[one.id])
    states = [one.state for one in handed_in]
    assert states == sorted(states, key=[RECORDED, HELD].index), "a later outcome is recorded, an earlier one is lost"
    lost = [one for one in asked if one.state == HELD and one.until > until]
    assert not (ended and lost), "an outcome is lost though its run was not killed"
    n_held = 3 * SMALL["CONCURRENT_REQUESTS"]  # as many leases wait for their outcomes at most
    assert sum(one.id not in place for one in lost) <= n_held, "outcomes were not handed in"


def run_until(tmp_path, site, settings, condition):
    """A run that goes on when a condition holds. What Scrapy cannot read of a killed run's JOBDIR is moved aside.

    Scrapy opens the files of its queue one by one, so that such a run may request pages before it ends by itself.
    """
    for k in range(3):
        run = Run(tmp_path, site, PAGES, **settings)
        run.until(lambda run=run: condition() or run.process.poll() is not None, ends=True)
        if run.process.poll() is None:
            return run
        assert "queuelib" in run.errors, run.errors
        shutil.move(tmp_path / "job", tmp_path / f"job-{len(site.log)}-{k}")
    raise AssertionError(run.errors)


@pytest.mark.parametrize("jobdir", [False, True])
def test_killed_again_and_again(tmp_path, jobdir):
    """After each kill every page is fetched again, at the latest when the lease that the killed run held has ended.

    What was recorded stays, each outcome once: no run changes or repeats what another recorded.
    """
    rng, kills = random.Random(7), 6
    settings = SMALL | {"RECRAWL_LEASE": "5 s"} | ({"JOBDIR": str(tmp_path / "job")} if jobdir else {})
    known = Counter()
    with Site().serving() as site:
        for _ in range(kills):
            n, more = len(site.log), rng.randrange(1, 60)
            run = run_until(tmp_path, site, settings, lambda n=n, more=more: len(site.log) >= n + more)
            run.kill()
            settled(site, run.database, ended=False)
            found = facts(run.database)
            assert known <= found, "an outcome was lost"
            assert set(found.values()) <= {1}, "an outcome was recorded twice"
            known = found
        n = len(site.log)
        run = run_until(tmp_path, site, settings, lambda: all(path in {one[0] for one in site.log[n:]} for path in ALL))
        run.interrupt()
        run.end()
        lost = settled(site, run.database, ended=True)
        assert known <= facts(run.database)
        print(f"{site.served().total()} requests, {lost} on their way at {kills} kills")  # noqa: T201


def test_a_desk_that_is_killed_ends_the_spider_with_one_line(tmp_path):
    with Site().serving() as site:
        run = Run(tmp_path, site, PAGES, **SMALL | {"RECRAWL_LEASE": "5 s"})
        run.until(lambda: len(site.log) > 20)
        (desk,) = Path(f"/proc/{run.process.pid}/task/{run.process.pid}/children").read_text().split()
        os.kill(int(desk), signal.SIGKILL)
        run.end()
        lines = [line for line in run.errors.splitlines() if " ERROR: " in line]
        assert len(lines) == 1, lines
        assert "the process of the desk was ended from outside" in lines[0]
        n = len(site.log)
        run = Run(tmp_path, site, PAGES, **SMALL)
        run.until(lambda: all(path in {one[0] for one in site.log[n:]} for path in ALL))
        run.interrupt()
        run.end()
        settled(site, run.database, ended=True)


def test_no_pick_of_an_idle_crawl_waits_for_the_heartbeat(tmp_path):
    """Two requests per second: the spider is idle before each of them, and Scrapy looks every 5 seconds by itself."""
    with Site().serving() as site:
        run = Run(tmp_path, site, PAGES, **SMALL | {"RECRAWL_BUDGET": "2/s"})
        run.until(lambda: len(site.log) >= 24)
        run.interrupt()
        longest = run.end()["recrawl/longest_wait"]
        gap = max(after - before for (*_, before), (*_, after) in pairwise(site.log[:24]))
        print(f"the longest wait of a pick was {longest:.4f} s, between two requests {gap:.2f} s")  # noqa: T201
        assert longest < 2.5, "picks wait for the check every 5 seconds"
        assert gap < 4.0, "pages are not picked when they are due"


def test_a_setting_that_cannot_be_used_ends_the_spider_with_one_line(tmp_path):
    with Site().serving() as site:
        run = Run(tmp_path, site, PAGES, RECRAWL_BUDGET="")
        run.end()
        lines = [line for line in run.errors.splitlines() if " ERROR: " in line]
        assert len(lines) == 1
        assert 'recrawl: scrapy.failed error="RECRAWL_DATABASE needs RECRAWL_BUDGET' in lines[0]
        assert site.log == []


def test_the_desk_of_a_service(tmp_path):
    """Two spiders on one service: no page is with both of them at a time, and each outcome is recorded once."""

    async def crawl(served):
        settings = {"RECRAWL_URL": served.url, "RECRAWL_TOKEN": served.tokens["admin"], **SMALL}
        folders = [tmp_path / "one", tmp_path / "two"]
        for folder in folders:
            folder.mkdir()
        runs = [Run(folder, site, PAGES, **settings) for folder in folders]
        for run in runs:
            await asyncio.to_thread(run.until, lambda: all(site.served(304)[path] for path in ALL))
        for run in runs:
            run.interrupt()
        return [await asyncio.to_thread(run.end) for run in runs]

    with Site().serving() as site:
        stats = with_service(crawl, tmp_path, urls=(), min_change_probability="0")
        outcomes, leases = stored(str(tmp_path / "crawl.db"))
        assert recorded(outcomes, site.origin) == site.served()
        assert sum(one["recrawl/recorded"] for one in stats) == len(outcomes)
        assert leases == []
