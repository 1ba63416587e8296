"""The budget of a crawl: one object that counts every request, and the one place that reads robots.txt."""

import asyncio
from datetime import UTC

import pytest

from recrawl.crawl import Answer, Budget, HostLimiter, Hours, ManualClock, MemoryWeb, Robots
from recrawl.crawl.polite.budget import MARK
from recrawl.crawl.polite.robots_gate import RobotsGate
from recrawl.engine import Engine

NOON = 12 * 3600.0


class Loop:
    """What a budget is attached to."""

    def __init__(self):
        self.n_wakes, self.watched = 0, []

    def wake(self):
        self.n_wakes += 1

    def watch(self, task):
        self.watched.append(task)


def test_requests_start_at_the_rate_and_charges_are_paid_first():
    budget = Budget(1.0, 0.0, catch_up=10.0)
    assert (budget.ready(0.0), budget.take(0.0, 5), budget.used) == (1, 1, 1)
    budget.charge(2)
    assert budget.ready(2.0) == 0, "both that are due are paid to the charge"
    assert (budget.ready(3.0), budget.used) == (1, 3)


def test_further_requests_of_running_crawls_come_before_new_crawls():
    async def main():
        budget, loop = Budget(1.0, 0.0, catch_up=10.0), Loop()
        budget.attach(loop, None)
        waiting = [asyncio.ensure_future(budget.further()) for _ in range(3)]
        await asyncio.sleep(0)
        assert (loop.n_wakes, budget.n_waiting) == (3, 3)
        assert budget.ready(1.0) == 0, "two of the three are served"
        await asyncio.sleep(0)
        assert [one.done() for one in waiting] == [True, True, False]
        budget.end()
        late = asyncio.ensure_future(budget.further())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert waiting[2].cancelled()
        assert late.cancelled(), "after the end nobody waits"

    asyncio.run(main())


def test_the_mark_is_written_before_requests_are_made_and_resumes_the_budget():
    notes = {}

    async def save(new):
        notes.update(new)

    async def main():
        budget = Budget(0.5, 100.0)
        budget.attach(Loop(), save)
        await budget.cover(100.0)
        assert notes[MARK] == 101.0 + 2.0, "a second ahead, and the gap to the next request"
        budget.take(100.0, 1)
        return budget.last_mark(100.0)[MARK]

    assert asyncio.run(main()) == 102.0, "at the end no more than what was spent"
    resumed = Budget(0.5, 100.5)
    resumed.resume(102.0, 100.5)
    assert (resumed.ready(101.0), resumed.next_at(101.0)) == (0, 102.0)


def test_a_run_that_starts_in_closed_hours_makes_no_request():
    budget = Budget.parse("1/s", 1, NOON, Hours("13-14", UTC))
    assert (budget.ready(NOON), budget.next_at(NOON)) == (0, NOON + 3600.0)
    assert budget.ready(NOON + 3600.0) == 1


def test_the_rate_follows_hours_and_pages():
    budget = Budget.parse("2/page/day", 43200, NOON, Hours("12-18", UTC))
    assert budget.rate == pytest.approx(4.0), "a quota of a day is spent in the open quarter"
    budget.set_pages(21600, NOON)
    assert budget.rate == pytest.approx(2.0)
    budget.set_pages(0, NOON)
    assert budget.rate == pytest.approx(2.0)
    last = 18 * 3600.0 - 0.1
    assert budget.take(last, 100) > 0
    assert (budget.ready(18 * 3600.0), budget.ready(18 * 3600.0 + 60.0)) == (0, 0)
    assert budget.next_at(18 * 3600.0 + 60.0) == 36 * 3600.0
    plain = Budget(1.0, NOON)
    plain.set_pages(5, NOON)
    assert plain.rate == 1.0
    plain.set_rate(3.0, NOON)
    assert plain.rate == 3.0


def gate_of(page, clock, notes, robots=True):
    engine = Engine(1.0, start=clock.now(), host_spacing=1.0, host_concurrency=1)
    web = MemoryWeb(page, clock, max_redirects=0)
    limiter, budget = HostLimiter(engine, clock, 60.0), Budget(10.0, clock.now())

    async def save(new):
        notes.update(new)

    robots = Robots(web, "recrawl/1 (+test)", clock) if robots else None
    return RobotsGate(robots, limiter, budget, clock, save), web


def test_the_gate_answers_once_robots_txt_is_read_and_takes_over_its_delay():
    clock, notes = ManualClock(1000.0), {}
    gate, web = gate_of(lambda url, now: "User-agent: *\nDisallow: /no\nCrawl-delay: 7\n", clock, notes)

    async def main():
        assert await gate.check("https://a.example/") is None
        assert await gate.read("https://a.example/") == 1
        assert (await gate.check("https://a.example/")).allowed
        return await gate.check("https://a.example/no/1")

    refused = asyncio.run(clock.drive(main()))
    assert (refused.allowed, refused.failure, refused.unreachable) == (False, "robots", False)
    assert refused.read_again_at == pytest.approx(1000.0 + 86400.0)
    assert notes == {"delay:a.example": 7.0}
    assert gate.limiter.wait("a.example") == 7.0
    assert len(web.requests) == 1


def test_the_gate_refuses_everything_while_robots_txt_cannot_be_read():
    clock = ManualClock(1000.0)
    gate, _ = gate_of(lambda url, now: Answer(status=503), clock, {})

    async def main():
        await gate.read("https://a.example/")
        return await gate.check("https://a.example/")

    found = asyncio.run(clock.drive(main()))
    assert not found.allowed
    assert found.unreachable
    assert gate.limiter.wait("a.example") >= 30.0, "a busy host is not asked"


def test_without_robots_txt_everything_is_allowed():
    clock = ManualClock(1000.0)
    gate, web = gate_of(lambda url, now: None, clock, {}, robots=False)
    assert asyncio.run(gate.check("https://a.example/")).allowed
    assert asyncio.run(gate.read("https://a.example/")) == 0
    assert not web.requests
