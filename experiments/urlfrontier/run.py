"""Strict against managed: one client of the URL Frontier service that dates its URLs as StormCrawler does.

    python experiments/urlfrontier/run.py --seeds 4 --json experiments/urlfrontier/result.json

500 pages on 25 hosts change as Poisson processes; mean times between changes are lognormal around 5 days. The client
asks for URLs every 10 minutes, fetches them at once and puts them back as known, with signature, status and the date
that its scheduler computes. In a strict crawl these dates decide. A managed crawl gets the requests per day that the
strict one made while freshness was counted, as its budget. All calls go through the service without gRPC, by a manual
clock of which a second is a minute.

- ``default``: StormCrawler's DefaultScheduler, every page once a day.
- ``adaptive``: its AdaptiveScheduler: from 1 day, half the interval (plus 30 minutes) after a change, one and a half
  times after none, from 1 hour to 14 days.
- ``adaptive, half``: the same, and the crawler has time for half of the requests that the dates ask for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.contrib.urlfrontier import FrontierService, Modes
from recrawl.contrib.urlfrontier.crawls import Crawls
from recrawl.contrib.urlfrontier.frontier import Ask
from recrawl.contrib.urlfrontier.items import Put, read_item
from recrawl.contrib.urlfrontier.testing.bench import discovered, known
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.http.memory import ManualClock
from recrawl.crawl.run.opening.pages import add_pages
from recrawl.desk import open_desk
from recrawl.desk.no_web import no_web
from recrawl.engine import Engine
from recrawl.model.pages import Pages
from recrawl.simulate.tally import Judge
from recrawl.simulate.trace import Trace
from recrawl.simulate.worlds.worlds import world
from recrawl.store.opening import open_store

CRAWL, START, DAY, TICK = "storm", 1_700_000_000.0, 1440, 10  # a day and a tick in minutes, which are seconds here
HOSTS = 25
Scheduler = Callable[[int, bool | None], int]  # of the last interval and whether the page changed; minutes


def default(interval: int, changed: bool | None) -> int:
    """StormCrawler's DefaultScheduler."""
    return DAY


def adaptive(interval: int, changed: bool | None) -> int:
    """StormCrawler's AdaptiveScheduler; the first fetch shows no change."""
    if changed is None:
        return DAY
    return int(0.5 * interval + 0.5 * 60) if changed else min(int(1.5 * interval), 14 * DAY)


def drawn(seed: int, days: float, n: int) -> Trace:
    """A world of pages with constant rates, in days."""
    rng = np.random.default_rng([seed, 26])
    return world("poisson", pages=Pages(1.0 / rng.lognormal(np.log(5.0), 1.3, n))).draw(days, rng)


class Client:
    """A crawler: it asks, fetches and puts; ``per_tick`` requests are what it has time for."""

    def __init__(self, trace: Trace, clock: ManualClock, scheduler: Scheduler, learn: float, per_tick: float) -> None:
        self._trace, self._clock, self._scheduler, self._per_tick = trace, clock, scheduler, per_tick
        self._judge = Judge(trace, count_from=learn)
        self._learn, self._allowed = learn, 0.0
        self._interval = [DAY] * len(trace)
        self._signature: list[int] = [-1] * len(trace)
        self.requests = self.counted = 0

    def url(self, page: int) -> str:
        return f"http://h{page % HOSTS}.example/{page}"

    def day(self) -> float:
        return (self._clock.now() - START) / DAY

    async def begin(self, crawls: Crawls) -> None:
        """Put in all pages."""
        items = [read_item(discovered(self.url(page), CRAWL))[1] for page in range(len(self._trace))]
        await crawls.put(items)
        crawls.frontier.set_delay("", "", 0.0)

    async def tick(self, crawls: Crawls) -> None:
        """Ask once, fetch and put."""
        self._allowed = min(self._allowed + self._per_tick, 2 * self._per_tick + 1)
        n = len(self._trace) if np.isinf(self._allowed) else int(self._allowed)
        served = []
        while n > 0:
            some = await crawls.take(CRAWL, Ask(min(n, HOSTS), max(n // HOSTS, 1), 300.0))
            served += some
            n -= len(some)
            if not some:
                break
        self._allowed -= len(served)
        if served:
            states = await crawls.put([self._fetched(one.row.url) for one in served])
            assert not any(states)

    def _fetched(self, url: str) -> Put | None:
        page, now = int(url.rpartition("/")[2]), self.day()
        self._judge.crawl(np.array([page]), now)
        self.requests += 1
        self.counted += now >= self._learn
        changes = self._trace.changed_at[self._trace.offset[page] : self._trace.offset[page + 1]]
        signature, before = int(np.searchsorted(changes, now, side="right")), self._signature[page]
        self._interval[page] = self._scheduler(self._interval[page], None if before < 0 else signature != before)
        self._signature[page] = signature
        meta = {"signature": [str(signature)], "fetch.statusCode": ["200"]}
        return read_item(known(url, CRAWL, self._clock.now() + self._interval[page], metadata=meta))[1]

    def result(self) -> dict[str, Any]:
        """Freshness and requests per day while it was counted."""
        run, days = self._judge.verdict(), self._trace.end - self._learn
        return {"freshness": round(run.freshness, 4), "requests_per_day": round(self.counted / days, 1)}


async def strict(client: Client, clock: ManualClock, folder: Path) -> None:
    """The client's dates decide."""
    service = FrontierService(folder / "strict.urlfrontier", Modes(), clock=clock)
    await client.begin(service.crawls)
    while client.day() < client._trace.end - TICK / DAY:
        clock._now += TICK
        await client.tick(service.crawls)
    await service.close()


async def managed(client: Client, clock: ManualClock, folder: Path, per_day: float) -> None:
    """The engine decides, with a budget of requests per day."""
    budget = per_day / DAY
    store = open_store(str(folder / "managed.db"), keep=0, create=True)
    engine = Engine(budget, start=START, day=float(DAY))  # the database learns in the unit of the clock
    add_pages(engine, Rules(), ["http://unit.example/"], START)
    await store.save(rows=engine.rows())
    await store.close()
    settings = Settings(database=str(folder / "managed.db"), budget=f"{budget:.6f}/s", delay=0, keep=0)
    live, desk = await open_desk(settings, web=no_web(clock))
    await desk.remove(["http://unit.example/"])
    service = FrontierService(folder / "managed.urlfrontier", Modes.of("managed"), desk, clock)

    async def crawl() -> None:
        await client.begin(service.crawls)
        while client.day() < client._trace.end - TICK / DAY:
            await clock.sleep(float(TICK))
            await client.tick(service.crawls)
        live.crawler.stop()

    await clock.drive(_both(live.crawler.run(crawl=False), crawl()))
    await service.close()
    await live.close()


async def _both(*parts: Any) -> None:
    await asyncio.gather(*parts)


def compared(seed: int, name: str, options: argparse.Namespace, cap: float | None = None) -> dict[str, Any]:
    """One strict crawl, and a managed one with its requests."""
    trace, scheduler = drawn(seed, options.days, options.pages), {"default": default}.get(name, adaptive)
    found: dict[str, Any] = {}
    for mode in ("strict", "managed"):
        clock, began = ManualClock(START), time.process_time()
        per_tick = np.inf if cap is None or mode == "managed" else cap * TICK / DAY
        client = Client(trace, clock, scheduler, options.learn, per_tick)
        with tempfile.TemporaryDirectory() as folder:
            if mode == "strict":
                asyncio.run(strict(client, clock, Path(folder)))
            else:
                asyncio.run(managed(client, clock, Path(folder), found["strict"]["requests_per_day"]))
        found[mode] = client.result()
        print(seed, name, mode, found[mode], f"{time.process_time() - began:.0f} s of processor time", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--days", type=float, default=40.0)
    parser.add_argument("--learn", type=float, default=15.0)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: dict[str, list[dict[str, Any]]] = {"default": [], "adaptive": [], "adaptive, half": []}
    for seed in range(1, options.seeds + 1):
        for name in rows:
            cap = rows["adaptive"][-1]["strict"]["requests_per_day"] / 2 if "half" in name else None
            rows[name].append(compared(seed, name, options, cap))
    result: dict[str, Any] = {name: getattr(options, name) for name in ("pages", "days", "learn", "seeds")}
    for name, given in rows.items():
        result[name] = {
            mode: {key: round(float(np.mean([row[mode][key] for row in given])), 4) for key in given[0][mode]}
            for mode in ("strict", "managed")
        }
        gains = [row["managed"]["freshness"] - row["strict"]["freshness"] for row in given]
        result[name]["gain"] = {"mean": round(float(np.mean(gains)), 4), "least": round(min(gains), 4)}
    result["runs"] = rows
    print(json.dumps({name: result[name] for name in rows}, indent=1))
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
