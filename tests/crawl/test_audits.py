"""Audits of a crawl on a web in memory: what they find, what they cost, how they share the budget."""

import asyncio

import numpy as np
import pytest

from recrawl import ParameterError
from recrawl.crawl.audit.freshness import expected_freshness
from recrawl.crawl.audit.open_audit import ENDED, saved_audits
from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.config.rules import Rule, Rules
from recrawl.crawl.config.shares import share_of
from recrawl.crawl.http.memory import Answer
from recrawl.crawl.polite.robots_gate import RobotsGate
from recrawl.crawl.run.commands import audit_command
from recrawl.estimate.audit import verdict

from .driving import World, gaps_by_host

HOUR = 3600.0
URLS = [f"https://h{k % 10}.example/{k}" for k in range(100)]


def version(k, now):
    """Page k changes every 1 to 20 hours, at a phase of its own."""
    return int((now + 997.0 * k) / (HOUR * (k % 20 + 1)))


def changing(url, now):
    if url.endswith("/robots.txt"):
        return None
    k = int(url.rsplit("/", 1)[1])
    return f"<p>page {k}: {version(k, now)}</p>"


def lying(url, now):
    """The same with an ETag that never moves: every conditional request is answered 304."""
    body = changing(url, now)
    return body if body is None else Answer(body, headers={"etag": '"same"', "content-type": "text/html"})


def audit(world, draws, level=0.9, seed=1, **options):
    """Make one audit; it, or None."""
    crawler = world.crawler(audit_rng=np.random.default_rng(seed), **options)
    before = len(saved_audits(world.store.notes(ENDED)))
    try:
        asyncio.run(world.clock.drive(crawler.run(audit=(draws, level))))
    finally:
        crawler.close()
    kept = saved_audits(world.store.notes(ENDED))
    return kept[-1] if len(kept) > before else None


def truly_fresh(world, page=version):
    """Which copies are right now, by what was fetched and when."""
    copies = world.store.copies(URLS)
    now = world.clock.now()
    return np.array([u in copies and page(k, copies[u].fetched_at) == page(k, now) for k, u in enumerate(URLS)])


@pytest.fixture(scope="module")
def day():
    world = World(changing, URLS, budget=0.05)
    world.run(6 * HOUR)
    return world


@pytest.fixture
def crawled(day):
    """After six hours of crawling."""
    return day.copied()


@pytest.mark.slow
def test_an_audit_finds_what_is_true_and_costs_a_request_a_page(crawled):
    fresh = truly_fresh(crawled)
    crawled.web.requests.clear()
    crawled.budget = 5.0  # quick, so that nothing changes meanwhile
    found = audit(crawled, 60)
    assert found.draws + found.unknown == 60
    assert found.unknown == 0
    asked = {url for _, url in crawled.web.requests if not url.endswith("robots.txt")}
    robots = sum(url.endswith("robots.txt") for _, url in crawled.web.requests)
    assert len(asked) + robots == found.requests == len(crawled.web.requests) <= 60 + robots
    assert abs(found.freshness - fresh.mean()) < 0.2
    low, high = found.interval
    assert low < fresh.mean() <= high
    assert abs(found.forecast - fresh.mean()) < 0.15


@pytest.mark.slow
def test_a_page_that_waits_for_the_store_or_a_slot_costs_no_request(crawled, monkeypatch):
    """What is known of robots.txt may come late from the store, as it did on a busy machine: nothing was asked then."""
    recall, late = RobotsGate.recall, []

    async def slow(gate, urls):
        if len(late) < 30:
            late.extend(urls)
            return set(urls)
        return await recall(gate, urls)

    monkeypatch.setattr(RobotsGate, "recall", slow)
    crawled.web.requests.clear()
    crawled.budget = 5.0
    found = audit(crawled, 60)
    assert len(late) >= 30
    assert found.draws == 60
    assert found.requests == len(crawled.web.requests)


@pytest.mark.slow
def test_what_an_audit_finds_is_recorded_like_any_crawl(crawled):
    before, crawls = crawled.store.counts()["observations"], crawled.opened().beliefs.belief.n_crawls[:100].sum()
    crawled.web.requests.clear()
    audit(crawled, 40)
    asked = sum(not url.endswith("robots.txt") for _, url in crawled.web.requests)
    assert crawled.store.counts()["observations"] - before == asked > 20
    assert crawled.opened().beliefs.belief.n_crawls[:100].sum() - crawls == asked


@pytest.mark.slow
def test_an_audit_is_polite(crawled):
    crawled.web.requests.clear()
    audit(crawled, 60)
    times = crawled.asked()
    assert np.diff(np.sort(times)).min() >= 20.0 - 1e-3, "the budget, 0.05/s"
    assert min(gaps_by_host(crawled.web.requests).values()) >= 1.0


def test_draws_are_by_importance():
    world = World(changing, URLS, budget=5.0, rules=Rules([Rule.parse({"match": "*h3.*", "importance": 50.0}, 1)]))
    world.run(once=True)
    world.web.requests.clear()
    audit(world, 100)
    hosts = [url.split("/")[2] for _, url in world.web.requests if not url.endswith("robots.txt")]
    assert hosts.count("h3.example") == 10, "ten pages with 500 of 590 parts of importance: all of them are drawn"
    assert len(hosts) < 40


def test_pages_without_a_copy_are_stale_without_a_request():
    world = World(changing, URLS, budget=5.0)
    found = audit(world, 30)
    assert (found.fresh, found.draws, found.requests) == (0, 30, 0)
    assert found.forecast == found.believed == 0.0
    assert found.surprise == 0.0
    assert expected_freshness(world.opened(), world.clock.now()) == 0.0


@pytest.mark.slow
def test_failures_are_not_judged_and_pages_that_went_are_stale():
    down = set()

    def page(url, now):
        if any(mark in url for mark in down):
            return Answer(status=503) if "h1." in url else None
        return changing(url, now)

    world = World(page, URLS, budget=5.0)
    world.run(once=True)
    down.update(("h1.", "h2."))
    found = audit(world, 80, seed=3)
    assert 2 <= found.unknown <= 20, "a tenth of the draws fail"
    assert found.draws - found.fresh >= 2, "another tenth is gone"
    again = audit(world, 80, seed=3)
    assert again.fresh > found.fresh, "gone, as is known by now, counts as right"


def test_pages_that_rules_leave_out_are_not_audited():
    world = World(changing, URLS, budget=5.0)
    world.run(once=True)
    world.rules = Rules([Rule.parse({"match": "*h3.*", "never": True}, 1)])
    world.web.requests.clear()
    assert audit(world, 50).unknown == 0
    assert not any("h3." in url for _, url in world.web.requests)


def test_what_robots_forbids_is_not_asked_for():
    forbids = []

    def page(url, now):
        if url.endswith("/robots.txt") and "h3." in url and forbids:
            return "User-agent: *\nDisallow: /\n"
        return changing(url, now)

    world = World(page, URLS, budget=5.0)
    world.run(once=True)
    forbids.append(1)
    world.clock._now += 30 * 24 * HOUR  # robots.txt is read again
    world.web.requests.clear()
    found = audit(world, 50)
    assert not any("h3." in url and not url.endswith("robots.txt") for _, url in world.web.requests)
    assert found.unknown > 0


@pytest.mark.slow
def test_a_server_that_lies_is_found_out():
    hits = 0
    crawled = World(lying, URLS, budget=0.01)
    crawled.run(once=True)
    crawled.run(10 * HOUR)
    crawled.budget = 5.0
    for seed in range(10):
        world = crawled.copied()
        fresh = truly_fresh_by_body(world)
        found = audit(world, 100, seed=seed)
        low, high = found.interval
        hits += low < fresh.mean() < high
        assert found.freshness < found.forecast - 0.1
        said = verdict(saved_audits(world.store.notes(ENDED)))
        assert not said.agree
        assert said.direction == "staler"
    assert hits >= 7, "of ten intervals of 90% nine are expected to hold the truth"


def truly_fresh_by_body(world):
    """By the bodies that are kept, since answers 304 do not tell the truth."""
    now = world.clock.now()
    kept = [world.store.versions(url)[0] for url in URLS]
    return np.array([world.store.body(v.key).decode() == changing(u, now) for v, u in zip(kept, URLS, strict=True)])


@pytest.mark.slow
def test_a_share_of_the_crawls_goes_to_audits_one_after_the_other():
    world = World(changing, URLS, budget=0.1)
    world.run(once=True)
    crawls = 0
    for _ in range(4):  # also across restarts
        crawls += world.run(0.6 * HOUR, audit_share=0.1, audit_draws=10, audit_rng=np.random.default_rng(5)).ended
    kept = saved_audits(world.store.notes(ENDED))
    assert abs(sum(one.requests for one in kept) - 0.1 * crawls) < 12, "the last one is not ended"
    assert len(kept) >= 5
    assert all(one.draws + one.unknown == 10 for one in kept)
    assert verdict(kept).agree or abs(np.mean([one.freshness - one.forecast for one in kept])) < 0.2


@pytest.mark.slow
def test_without_a_share_none_are_made(crawled):
    assert saved_audits(crawled.store.notes(ENDED)) == []


@pytest.mark.slow
def test_a_crawl_that_runs_makes_the_audit_that_was_posted():
    world = World(changing, URLS, budget=1.0)
    world.run(once=True)
    world.store.queue([audit_command(20, 0.8)])
    world.run(HOUR / 20)
    (found,) = saved_audits(world.store.notes(ENDED))
    assert found.draws == 20
    assert found.level == 0.8
    assert world.store.commands() == []


@pytest.mark.slow
def test_an_audit_that_is_asked_for_goes_before_the_one_that_goes_on_all_the_time():
    world = World(changing, URLS, budget=1.0)
    world.run(once=True)
    world.run(HOUR / 30, audit_share=0.2, audit_draws=40, audit_rng=np.random.default_rng(5))
    world.store.queue([audit_command(10, 0.9)])
    world.run(HOUR / 20, audit_share=0.2, audit_draws=40, audit_rng=np.random.default_rng(6))
    assert [one.draws for one in saved_audits(world.store.notes(ENDED))] == [10, 40]


@pytest.mark.slow
def test_an_audit_that_is_interrupted_says_what_it_saw(crawled):
    crawler = crawled.crawler()

    async def main():
        task = asyncio.ensure_future(crawler.run(audit=(60, 0.9)))
        await crawled.clock.advance(500.0)
        crawler.stop()
        await crawled.clock.drive(_wait(task))

    asyncio.run(main())
    crawler.close()
    (found,) = saved_audits(crawled.store.notes(ENDED))
    assert 5 < found.draws < 40
    assert found.draws + found.unknown <= 60


async def _wait(task):
    return await task


def test_a_share_must_be_one():
    assert share_of("5%") == 0.05
    for text in ("100%", "-1%", "much"):
        with pytest.raises(ParameterError, match="audit_share"):
            share_of(text)
    with pytest.raises(ParameterError):
        CrawlOptions(audit_share=1.5)
