"""The desk under random calls by a manual clock, with restarts: what must hold whatever happens."""

import asyncio
import random
from collections import Counter

import pytest

from recrawl.desk import NewPage, PageChange, Report
from tests.desk.desks import DeskWorld

RATE = 5.0
URLS = [f"https://h{k % 4}.example/{k}" for k in range(24)]


class Machine:
    """Random calls, and what callers know: who holds what, what was acknowledged, when requests began."""

    def __init__(self, seed):
        self.rng, self.world = random.Random(seed), DeskWorld(budget=RATE, delay=0.5)
        self.held = {}  # lease -> page as it was picked
        self.ended = []  # leases that were recorded or released
        self.acknowledged = Counter()  # outcomes by URL
        self.lost = set()  # leases that had ended when the process was killed; the clock may go back then
        self.began, self.restarted = [], []
        self.pages, self.paused = set(URLS), set()

    @property
    def now(self):
        return self.world.clock.now()

    async def run(self, steps):
        """Make so many random calls."""
        await self.world.open(URLS)
        calls = [self.pick] * 6 + [self.record] * 5 + [self.again, self.release, self.restart, self.change]
        for _ in range(steps):
            self.world.clock._now += self.rng.choice([0.0, 0.1, 0.3, 1.0, 5.0])
            await self.rng.choice(calls)()
        await self.check()

    def holds(self, page):
        return page.until > self.now and page.lease not in self.lost

    async def pick(self):
        hosts = self.rng.choice([None, None, ["h1.example"], ["h2.example", "h3.example"]])
        found = await self.world.desk.pick(self.rng.randint(1, 6), lease=self.rng.choice([1.0, 4.0, 60.0]), hosts=hosts)
        self.began += [self.now] * len(found)
        live = {page.url for page in self.held.values() if self.holds(page)}
        for page in found:
            assert page.url not in live, "a page has one holder"
            assert page.url in self.pages - self.paused
            assert hosts is None or any(f"//{host}/" in page.url for host in hosts)
            self.held[page.lease] = page
            live.add(page.url)

    async def record(self):
        some = self.rng.sample(list(self.held), min(len(self.held), self.rng.randint(1, 4)))
        reports = [Report(lease, status=200, digest=str(self.rng.randint(0, 2))) for lease in some]
        sent = reports * self.rng.choice([1, 1, 2])
        words = await self.world.desk.record(sent)
        assert words[len(some) :] == ["repeated"] * (len(sent) - len(some))
        for lease, word in zip(some, words, strict=False):
            page = self.held.pop(lease)
            self.ended.append(lease)
            expected = {"recorded"} if page.until > self.now else {"late", "outdated"}
            assert word in (expected | {"outdated"} if page.url in self.pages else {"removed"}), (word, page)
            self.acknowledged[page.url] += word in ("recorded", "late")

    async def again(self):
        if self.ended:
            words = await self.world.desk.record([Report(lease, status=200, digest="9") for lease in self.ended[-5:]])
            assert set(words) <= {"repeated", "released"}, "however often it is sent"

    async def release(self):
        for lease in self.rng.sample(list(self.held), min(len(self.held), 2)):
            page = self.held.pop(lease)
            (word,) = await self.world.desk.release([lease])
            assert word == ("released" if self.holds(page) else "lost")
            self.ended.append(lease)

    async def restart(self):
        """The process is killed: nothing but the store is left."""
        self.restarted.append(self.now)
        self.lost |= {lease for lease, page in self.held.items() if page.until <= self.now}
        await self.world.open()
        self.world.clock._now -= 3.0 * (self.rng.random() < 0.5)

    async def change(self):
        url, desk = self.rng.choice(URLS), self.world.desk
        what = self.rng.choice(["add", "remove", "pause", "resume"])
        if what == "add":
            await desk.add([NewPage(url)])
            self.pages.add(url)
        elif what == "remove":
            await desk.remove([url])
            self.pages.discard(url)
            self.paused.discard(url)
            self.acknowledged.pop(url, None)  # its outcomes go with it
        elif url in self.pages:
            await desk.update([PageChange(url, paused=what == "pause")])
            (self.paused.add if what == "pause" else self.paused.discard)(url)

    async def check(self):
        """Nothing is lost or doubled, and the budget is kept in every window."""
        stored = Counter(outcome.url for outcome in await self.world.listed())
        present = {url: stored[url] for url in self.pages if self.acknowledged[url]}
        assert present == {url: n for url, n in self.acknowledged.items() if n}
        for i, start in enumerate(self.began):
            for j in range(i, len(self.began)):
                end = self.began[j]
                kills = sum(start <= at <= end for at in self.restarted)
                assert j - i + 1 <= RATE * (end - start + 1.0 + kills) + 1e-6
        lost = [page for page in self.held.values() if page.until <= self.now + 61.0]
        self.world.clock._now += 120.0
        back = set()
        for _ in range(200):
            self.world.clock._now += 0.5
            back |= {page.url for page in await self.world.desk.pick(50, lease=86400.0)}
        assert {page.url for page in lost} & (self.pages - self.paused) <= back, "lost leases come back"


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(k, marks=pytest.mark.full) for k in range(3, 60))])
def test_whatever_happens(seed):
    asyncio.run(Machine(seed).run(150))
