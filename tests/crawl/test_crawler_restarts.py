"""Nothing is lost and nothing is asked too often, however often the crawl is killed; full disks; clocks set back."""

import asyncio
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from recrawl.crawl.clock import SystemClock
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.http.memory import Answer, MemoryWeb
from recrawl.crawl.polite.budget import Budget
from recrawl.crawl.polite.robots import Robots
from recrawl.crawl.polite.robots_cache import RobotsCache
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.run.opening.pages import add_pages, open_engine
from recrawl.errors import StoreError
from recrawl.store import BlockingStore, MemoryStore, SqliteStore

from .driving import AGENT, START, URLS, World, changing, gaps_by_host, largest_share

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def slow(url, now):
    return Answer(changing(url, now) or b"", 404 if "robots" in url else 200, took=0.2)


@settings(max_examples=examples(12, usual=6))
@given(
    budget=st.sampled_from([0.05, 0.7, 1.0, 3.0, 20.0]), lives=st.lists(st.floats(0.3, 12.0), min_size=2, max_size=6)
)
def test_no_window_sees_more_than_the_budget_over_restarts(budget, lives):
    world = World(slow, URLS[:60], budget=budget, delay=0.5)
    restarts = []
    for k, life in enumerate(lives):
        (world.run if k % 3 == 2 else world.killed_after)(life / min(budget, 1.0))
        restarts.append(world.clock.now())
    times = world.asked()
    least = min(budget, 1.0)
    if budget >= 1.0:
        assert largest_share(times, budget, restarts) <= 1.0
    elif len(times) > 1:
        assert np.diff(times).min() >= 1.0 / budget - 1e-3
    if len(times) > 1:
        assert min(gaps_by_host(world.web.requests).values(), default=1.0) >= 0.5 - 1e-6
    assert len(times) >= 0.3 * least * sum(lives) - 3, "and restarts do not stop it"


@pytest.mark.slow
def test_what_was_acknowledged_is_there_and_what_was_learned_is_resumed(tmp_path):
    path, acknowledged = tmp_path / "a.db", []
    world = World(slow, URLS[:60], store=BlockingStore(SqliteStore(path)), budget=2.0, delay=0.5)
    for _ in range(8):
        world.killed_after(25.0, commit_delay=1.0)
        world.store.close()
        acknowledged += [o for name, fields in world.events if name == "saved" for o in fields["outcomes"]]
        world.events.clear()
        world.store = BlockingStore(SqliteStore(path))
        kept = list(world.store.observations())
        assert {(o.url, o.began_at) for o in acknowledged} <= {(o.url, o.began_at) for o in kept}
        rows = world.store.load()
        assert sorted(rows["url"]) == sorted(URLS[:60])
        for url, n, m in zip(rows["url"], rows["n_crawls"], rows["n_changes"], strict=True):
            mine = [o.changed for o in kept if o.url == url and o.changed is not None]
            assert (n, m) == (len(mine), sum(mine)), "each row goes with its observations"
        assert world.store.check() == []
    assert len(acknowledged) > 200
    world.store.close()


def test_a_full_disk_ends_the_run_with_a_clear_line_and_keeps_what_was_acknowledged(tmp_path):
    store = BlockingStore(SqliteStore(tmp_path / "a.db"))
    world = World(
        lambda url, now: f"<p>{np.random.default_rng(int(now)).bytes(3000).hex()}", URLS, store=store, budget=5.0
    )
    pages = store.store._database.writer.execute("PRAGMA page_count").fetchone()[0]
    store.store._database.writer.execute(f"PRAGMA max_page_count = {pages + 40}")
    with pytest.raises(StoreError, match="the disk is full"):
        world.run(600.0, robots=None)
    acknowledged = [o for name, fields in world.events if name == "saved" for o in fields["outcomes"]]
    assert 0 < len(acknowledged) == store.counts()["observations"]
    assert store.check() == []
    store.store._database.writer.execute("PRAGMA max_page_count = 1000000")
    before = len(acknowledged)
    world.run(20.0, robots=None)
    assert store.counts()["observations"] > before
    store.close()


def test_a_clock_set_back_while_crawling_does_not_stop_it():
    world = World(changing, URLS, budget=1.0)
    crawler = world.crawler()

    async def main():
        run = asyncio.ensure_future(crawler.run(n=200))
        await world.clock.advance(60.0)
        world.clock._now -= 7200.0
        world.clock._sleepers = [(at - 7200.0, k, f) for at, k, f in world.clock._sleepers]
        return await world.clock.drive(run)

    counts = asyncio.run(main())
    crawler.close()
    assert counts.acknowledged >= 190
    assert world.clock.now() < START - 7200.0 + 400.0, "no time was lost waiting for the clock"
    times = [outcome.began_at for outcome in world.store.observations()]
    assert (np.diff(times) >= 0).all(), "times that are kept go on"


@pytest.mark.slow
def test_a_clock_set_back_between_runs_moves_all_times_with_it():
    world = World(changing, URLS[:50], budget=1.0)
    world.run(600.0)
    now = world.clock.now()
    engine = world.opened()
    ages = now - engine.rows()["fetched_at"]
    world.clock._now -= 30 * 86400.0
    again = world.opened()
    assert np.allclose(world.clock.now() - again.rows()["fetched_at"], ages - ages.min(), atol=1e-3)
    counts = world.run(600.0)
    assert counts.ended > 500, "it goes on at once"


def test_a_mark_from_a_clock_that_was_wrong_does_not_stop_a_crawl():
    budget = Budget(1.0, START)
    budget.resume(START + 1e6, START)
    assert budget.next_at(START) <= START + 2.0
    budget = Budget(0.5, START)
    budget.resume(START + 1.5, START)
    assert budget.next_at(START) == START + 1.5


@pytest.mark.slow
def test_what_robots_txt_said_is_kept_across_runs(tmp_path):
    def page(url, now):
        return "User-agent: *\nDisallow: /h\n" if url.endswith("robots.txt") else "<p>x"

    with BlockingStore(SqliteStore(tmp_path / "a.db")) as store:
        world = World(page, [*URLS[:20], "https://h1.example/hidden"], store=store, budget=5.0)
        for _ in range(3):
            cache = RobotsCache(store.store)
            world.run(20.0, robots=Robots(world.web, AGENT, world.clock, cache))
        assert len(world.asked("/robots.txt")) == 10, "once for each host, over three runs"
        assert len(world.asked("/hidden")) == 0
        world.clock._now += 2 * 86400.0
        cache = RobotsCache(store.store)
        world.run(20.0, robots=Robots(world.web, AGENT, world.clock, cache))
        assert len(world.asked("/robots.txt")) == 20, "and again after a day"


def test_robots_txt_is_a_request_of_its_own_by_the_machine_s_clock_too():
    """A clock that moves between two looks must not make an unread robots.txt a known one."""
    clock = SystemClock()
    web = MemoryWeb(lambda url, now: None if "robots" in url else "<p>x", clock, max_redirects=0)
    robots, store = Robots(web, AGENT, clock), MemoryStore()
    assert not any(robots.known(f"https://h{k}.example/") for k in range(1000))
    engine = asyncio.run(open_engine(store, clock.now(), budget=100.0, host_spacing=0.1, host_concurrency=1))
    add_pages(engine, Rules(), [f"https://h{k}.example/" for k in range(20)], clock.now())
    crawler = Crawler(engine, store, web, robots=robots, clock=clock)
    counts = asyncio.run(crawler.run(n=60))
    crawler.close()
    assert counts.requests == len(web.requests) > 40
    assert min(gaps_by_host(web.requests).values()) >= 0.1
    assert largest_share(np.array([at for at, _ in web.requests]), 100.0) <= 1.0


def test_a_batch_that_cannot_be_written_is_not_acknowledged():
    class Broken(MemoryStore):
        n = 0

        async def save(self, outcomes=(), rows=None, **more):
            Broken.n += bool(outcomes)
            if Broken.n == 5:
                raise StoreError("broken")
            await super().save(outcomes, rows, **more)

    world = World(changing, URLS, store=Broken(), budget=5.0, robots=False)
    with pytest.raises(StoreError, match="broken"):
        world.run(100.0)
    reported = sum(len(fields["outcomes"]) for name, fields in world.events if name == "saved")
    assert reported == world.store.counts()["observations"]


def benchmark(name):
    """A module of the benchmarks."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.full
def test_killed_again_and_again_with_fetches_and_writes_in_flight(tmp_path):
    """The short form of benchmarks/kill.py: real processes, real HTTP, kill -9."""
    kill = benchmark("kill")
    found = kill.run(10, 0, tmp_path)
    assert found["kills_with_fetch_and_write_in_flight"] >= 8
    for name in ("acknowledged_missing", "pages_missing", "pages_whose_rate_is_not_what_was_observed", "damage"):
        assert found[name] == 0, found
    assert found["acknowledged"] > 50
    assert found["largest_share_of_allowed"] <= 1.0
    assert found["smallest_gap"] >= found["delay"] - kill.SLACK


@pytest.mark.full
def test_killed_again_and_again_the_webhook_misses_nothing(tmp_path):
    """The short form of benchmarks/kill_events.py: a bad receiver, a crawl that is killed."""
    found = benchmark("kill_events").run(6, 0, tmp_path)
    for name in ("changes_without_event", "missing", "unknown", "doubled_with_different_content", "out_of_order"):
        assert found[name] == 0, found
    for name in ("missed_as_reported", "documents_that_differ", "damage"):
        assert found[name] == 0, found
    assert found["events"] > 50
    assert found["doubled_deliveries"] > 0, "else the receiver was not bad enough"
