"""Picks for some hosts: all their pages, best first, whatever others are worth; rules of hosts and budgets are kept."""

import random

import pytest

from recrawl.crawl.config.rules import Rule, Rules
from recrawl.desk import NewPage, Report, picks
from recrawl.engine.names.addresses import host_of
from tests.desk.desks import on_desk


async def fill(world, pages, seed=0):
    """Add pages (URL, importance) in random order."""
    order = [NewPage(*page) for page in random.Random(seed).sample(pages, len(pages))]
    for first in range(0, len(order), 10_000):
        await world.desk.add(order[first : first + 10_000])


def ranked(world, hosts):
    """URLs of hosts that may be picked now, best first, by the value of each page alone."""
    engine, now = world.crawler.engine, world.clock.now()
    world.desk.expire(now)
    urls = [url for url in engine.url(engine.ids()) if host_of(url) in hosts and engine.held_until(host_of(url)) <= now]
    reasons = [set(map(str, engine.eligibility.reasons(int(engine.id(url)[0]), now))) - {"cohort"} for url in urls]
    value = dict(zip(urls, engine.scheduler.value(engine.id(urls), now).tolist(), strict=True))
    free = [url for url, why in zip(urls, reasons, strict=True) if not why and value[url] > 0]
    return sorted(free, key=lambda url: -value[url])


@pytest.mark.slow
def test_better_pages_of_other_hosts_starve_nobody():
    async def test(world):
        better = [(f"https://a.example/{k}", 5.0) for k in range(15_000)]
        await fill(world, [*better, ("https://b.example/1", 1.0), ("https://b.example/2", 2.0)])
        assert [page.url for page in await world.desk.pick(1, hosts=["b.example"])] == ["https://b.example/2"]
        assert [page.url for page in await world.desk.pick(5, hosts=["B.example"])] == ["https://b.example/1"]
        assert await world.desk.pick(5, hosts=["b.example", "c.example"]) == []
        assert len(await world.desk.pick(5)) == 5

    on_desk(test)


@pytest.mark.parametrize("seed", range(4))
def test_hosts_in_any_order_are_picked_as_by_brute_force(seed, monkeypatch):
    monkeypatch.setattr(picks, "_EXAMINED_FIRST", 8)

    async def test(world):
        rng = random.Random(seed)
        hosts = [f"h{k}.example" for k in range(5)]
        pages = [(f"https://{hosts[k % 5]}/{k % 3}/{k}", rng.uniform(0.1, 9.0) * 3 ** (k % 5)) for k in range(200)]
        await fill(world, pages, seed)
        engine = world.crawler.engine
        for page in await world.desk.pick(60):
            await world.desk.record([Report(page.lease, status=rng.choice([200, 404, 500]), digest="x")])
        engine.pause(rng.sample(engine.ids().tolist(), 10))
        for _ in range(12):
            world.clock._now += rng.choice([0.0, 100.0, 1e5])
            some, n = rng.sample(hosts, rng.randint(1, 3)), rng.choice([1, 7, 40])
            expected = ranked(world, some)[:n]
            found = [page.url for page in await world.desk.pick(n, hosts=some, lease=rng.choice([50.0, 2e4]))]
            values = engine.scheduler.value(engine.id([*found, *expected]), world.clock.now()).tolist()
            assert values[: len(found)] == values[len(found) :], "ties may go either way"
            engine.scheduler._check()
            engine.eligibility._check()

    on_desk(test)


def test_held_hosts_delays_and_budgets_are_kept(monkeypatch):
    monkeypatch.setattr(picks, "_EXAMINED_FIRST", 8)
    limited = "slow.example"

    async def test(world):
        hosts = ["b.example", "c.example", limited]
        pages = [(f"https://a{k}.example/", 9.0) for k in range(50)]
        await fill(world, [*pages, *((f"https://{host}/{k}", 1.0) for host in hosts for k in range(6))])
        world.crawler.engine.hold("b.example", world.clock.now() + 50.0)
        first = [host_of(page.url) for page in await world.desk.pick(20, hosts=hosts)]
        assert sorted(first) == ["c.example", limited], "one each: the delay; and none of the host that is held"
        world.clock._now += 10.0
        assert [host_of(page.url) for page in await world.desk.pick(20, hosts=hosts)] == ["c.example"], "its budget"
        world.clock._now += 45.0
        assert sorted(host_of(page.url) for page in await world.desk.pick(20, hosts=hosts)) == sorted(hosts[:2])
        assert len(await world.desk.pick(20)) == 20, "other hosts were not made to wait"

    on_desk(test, delay=10.0, rules=Rules((Rule(f"https://{limited}/*", budget="1/min"),)))


class First:
    """One page, and nothing that is worth less."""

    keeps, few = False, False

    def __init__(self):
        self.asked = []

    def look(self, urls):
        pass

    def leased(self, pages):
        pass

    def __call__(self, url):
        self.asked.append(url)
        return True if len(self.asked) == 1 else None

    def pages(self, addresses):
        raise AssertionError("nobody asks for further pages")


def test_after_the_last_page_that_is_wanted_no_other_is_looked_at():
    async def test(world):
        await fill(world, [(f"https://h{k}.example/", 1.0) for k in range(40)])
        wanted = First()
        picked = await world.desk.pick(5, wanted=wanted)
        assert [one.url for one in picked] == wanted.asked[:1]
        assert len(wanted.asked) == 2

    on_desk(test)
