"""Budgets of single hosts by rule: exact counts by the manual clock, also with redirects, restarts and reloads."""

import asyncio

import numpy as np
import pytest

from recrawl.crawl import Answer, Settings
from recrawl.crawl.config.rules import Rule, Rules, hosts_of
from recrawl.crawl.polite.host_budgets import PREFIX, HostBudgets
from recrawl.crawl.run.opening.reload import reload_settings
from recrawl.errors import ParameterError

from .driving import START, World

DAY = 86400.0
SLOW = [f"https://slow.example/{k}" for k in range(12)]
FAST = [f"https://fast.example/{k}" for k in range(12)]
RULES = Rules([Rule("*", budget="1000/day"), Rule("https://slow.example/*", budget="100/day")])


def page(url, at):
    if url.endswith("/robots.txt"):
        return Answer(status=404)
    return Answer(body=f"<p>{url} {at}</p>".encode())


def to(world, host):
    return np.array([at for at, url in world.web.requests if f"//{host}.example/" in url]) - START


@pytest.mark.slow
def test_a_host_gets_exactly_its_budget_and_others_theirs():
    world = World(page, SLOW + FAST, budget=1.0, rules=RULES)
    world.run(DAY / 4)
    slow, fast = to(world, "slow"), to(world, "fast")
    assert len(slow) == 25, "one request every 864 s, robots.txt included"
    assert np.diff(slow).min() >= 864.0 - 1e-6
    assert len(fast) == 250
    assert np.diff(fast).min() >= 86.4 - 1e-6


@pytest.mark.slow
def test_no_slot_is_taken_by_a_crawl_that_waits_for_its_host():
    rules = Rules([Rule("https://slow.example/*", budget="10/day")])
    world = World(page, SLOW + FAST, budget=5.0, delay=0.0, rules=rules, concurrency=2, robots=False)
    counts = world.run(60.0)
    assert len(to(world, "slow")) == 1
    assert counts.ended == pytest.approx(300, abs=3), "the budget that it leaves goes to others"


@pytest.mark.slow
def test_redirects_are_paid_for_before_the_next_crawl():
    def moving(url, at):
        if url.startswith("https://slow.example/") and not url.endswith("/here"):
            return Answer(status=302, headers={"Location": url + "/here"})
        return page(url, at)

    world = World(moving, SLOW, budget=1.0, delay=1.0, rules=RULES, robots=False)
    world.run(DAY)
    slow = to(world, "slow")
    assert len(slow) == 100, "fifty crawls of two requests each"
    assert np.diff(slow[::2]).min() >= 2 * 864.0 - 1e-6


def test_killed_again_and_again_a_host_gets_no_more():
    world = World(page, SLOW, budget=1.0, rules=RULES, robots=False)
    for seconds in (1.0, 300.0, 900.0, 2.0, 1000.0, 5000.0, 864.0, 0.5):
        world.killed_after(seconds)
    assert np.diff(to(world, "slow")).min() >= 864.0 - 1e-6
    world.run(10_000.0)
    slow = to(world, "slow")
    assert np.diff(slow).min() >= 864.0 - 1e-6
    assert len(slow) >= (slow[-1] - slow[0]) / 864.0 - 8, "each kill costs at most one"


def test_a_clean_end_notes_what_is_spent_and_forgets_what_is_paid():
    world = World(page, SLOW[:1], budget=1.0, rules=RULES, robots=False)
    world.run(500.0)
    assert world.store.notes(PREFIX) == {f"{PREFIX}slow.example": START + 864.0}
    budgets = HostBudgets(lambda host: 0.5)
    budgets.take("https://a.example/", 0.0)
    assert budgets.last_notes(1.0) == {f"{PREFIX}a.example": 2.0}
    assert budgets.last_notes(3.0) == {f"{PREFIX}a.example": None}


def test_once_waits_for_the_budget_of_a_host():
    world = World(page, SLOW[:5] + FAST[:5], budget=10.0, rules=RULES, robots=False)
    counts = world.run(once=True)
    assert counts.ended == 10
    assert np.diff(to(world, "slow")).min() >= 864.0 - 1e-6


def test_another_budget_takes_effect_while_the_crawl_runs():
    old = Settings(rule=({"match": "https://slow.example/*", "budget": "100/day"},))
    new = Settings(rule=({"match": "https://slow.example/*", "budget": "1000/day"},))
    world = World(page, SLOW, budget=1.0, rules=old.rules(), robots=False)
    crawler = world.crawler()

    async def main():
        running = asyncio.ensure_future(crawler.run(START + 2 * 8640.0))
        await world.clock.sleep(8640.0)
        await reload_settings(crawler.components, old, new)
        await running

    asyncio.run(world.clock.drive(main()))
    crawler.close()
    slow = to(world, "slow")
    assert (slow < 8640.0).sum() == 10
    assert (slow >= 8640.0).sum() == pytest.approx(100, abs=2)


@pytest.mark.slow
def test_audits_obey_the_budget_of_a_host():
    world = World(page, SLOW + FAST, budget=1.0, rules=RULES, robots=False, audit_share=0.5, audit_draws=5)
    world.run(DAY / 4)
    assert np.diff(to(world, "slow")).min() >= 864.0 - 1e-6


def test_what_is_owed_stays_owed_at_another_rate():
    rates = {"a.example": 0.5}
    budgets = HostBudgets(rates.get)
    assert budgets.take("https://a.example/", 0.0)
    budgets.charge("https://a.example/", 3, 0.0)
    assert budgets.next_at("https://a.example/", 0.0) == 8.0
    rates["a.example"] = 2.0
    budgets.refresh(0.0)
    assert budgets.next_at("https://a.example/", 0.0) == 2.0
    assert budgets.next_at("https://b.example/", 0.0) == 0.0, "no budget, no limit"


@pytest.mark.parametrize(
    ("match", "hosts"),
    [
        ("https://a.example:8080/*", "a.example"),
        ("https://*.example/*", "*.example"),
        ("*", "*"),
        ("*.example/*", "*.example"),
        ("https://a.example/x*", None),
        ("https://a.example/", None),
    ],
)
def test_a_budget_goes_with_whole_hosts(match, hosts):
    assert hosts_of(match) == hosts
    if hosts is None:
        with pytest.raises(ParameterError, match="budget goes with whole hosts"):
            Rule.parse({"match": match, "budget": "1/s"}, 1)


@pytest.mark.parametrize(
    ("budget", "line"), [("often", "often"), ("100", "100 what"), (100, "must be text"), ("1/page/day", "per page")]
)
def test_bad_budgets_are_refused(budget, line):
    with pytest.raises(ParameterError, match=f"rule 1: .*{line}"):
        Settings(rule=({"match": "*", "budget": budget},))
