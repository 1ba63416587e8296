"""Sitemaps polled at the learned rate, at other rates and not at all; writes results.json and the table of README.md.

Hosts with honest sitemaps and hosts that stamp every page every day, crawled by the engine. Each request is a crawl or
a poll, so that all rows spend the same. The rule, the credits and the engine are those of the live crawler.

    python experiments/polls/run.py
    python experiments/polls/run.py --seeds 1 --days 10 --out /tmp/check
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.crawl.listings.credits import Credits
from recrawl.crawl.listings.worth import Worth, poll_interval
from recrawl.engine import Engine
from recrawl.model import Pages
from recrawl.schedule import Scheduler

HERE = Path(__file__).parent
START, END = "<!-- table: written by run.py -->", "<!-- end of table -->"
DAY = 86400.0
FACTORS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
UNPROVEN = 0.01  # share of requests for polls that no worth asks for
_SMOOTH = 0.02


@dataclass(frozen=True)
class World:
    """Half of the hosts are honest: a change moves the page's date with probability ``recall``."""

    hosts: int = 40
    pages: int = 25
    rate: float = 0.1  # mean changes of a page per day
    recall: float = 0.8
    budget: float = 0.1  # requests per page and day
    days: float = 60.0


class Sites:
    """The pages of all hosts, their changes, and the dates in their sitemaps."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        n = world.hosts * world.pages
        self.host = np.arange(n) // world.pages
        self.honest = np.arange(world.hosts) % 2 == 0
        self.rates = rates = rng.gamma(0.7, world.rate / 0.7, n)
        self.changes = [np.sort(rng.uniform(0, world.days, rng.poisson(r * world.days))) * DAY for r in rates]
        self.signalled = [times[rng.random(len(times)) < world.recall] for times in self.changes]
        self.urls = [f"https://h{h:02}.example/{k}" for k, h in enumerate(self.host)]

    def dates(self, host: int, now: float) -> np.ndarray:
        """The dates of the sitemap of a host."""
        pages = np.flatnonzero(self.host == host)
        if not self.honest[host]:
            return np.full(len(pages), np.floor(now / DAY) * DAY)
        counts = [np.searchsorted(self.signalled[p], now) for p in pages]
        return np.array([self.signalled[p][c - 1] if c else 0.0 for p, c in zip(pages, counts, strict=True)])

    def changed(self, page: int, since: float, now: float) -> bool:
        """Whether a page changed in between."""
        times = self.changes[page]
        return bool(np.searchsorted(times, now) > np.searchsorted(times, since))


class Known:
    """An engine that knows the rates of pages and the quality of their signals."""

    def __init__(self, sites: Sites, world: World) -> None:
        honest = sites.honest[sites.host]
        recall = np.where(honest, world.recall, 0.0)
        rates = np.maximum(sites.rates, 1e-4) / DAY
        self._pages = Pages(rates, recall=recall, false_rate=np.where(honest, 1e-3 * rates, 0.0))
        self._fetched = np.zeros(len(rates))

    def add(self, urls: list[str], now: float, *, fetched_at: np.ndarray) -> np.ndarray:
        self._fetched = fetched_at.copy()
        self._scheduler = Scheduler(start=now)
        return self._scheduler.add(self._pages, now, fetched_at=fetched_at)

    def pick(self, now: float, n: int) -> np.ndarray:
        return self._scheduler.pick(now, n)

    @property
    def threshold(self) -> float:
        return self._scheduler.threshold

    def record(self, ids: list[int], now: float, *, changed: list[bool]) -> None:
        self._fetched[ids] = now
        self._scheduler.record(ids, now)

    def signal(self, ids: np.ndarray, now: float, *, source: int, changed_at: np.ndarray) -> None:
        self._scheduler.signal(ids, now, changed_at=changed_at)

    def copied(self, rows: np.ndarray) -> np.ndarray:
        return np.ones(len(rows), bool)

    def fetched_at(self, rows: np.ndarray) -> np.ndarray:
        return self._fetched[rows]

    def pages(self, ids: np.ndarray) -> Pages:
        return self._pages[ids]


class Run:
    """One crawl: requests at equal intervals, each a poll that is due or a crawl."""

    def __init__(self, world: World, seed: int, factor: float, *, known: bool = False) -> None:
        self.world, self.factor = world, factor
        self.sites = Sites(world, np.random.default_rng(seed))
        n = len(self.sites.urls)
        self.engine: Any = Engine(world.budget * n / DAY, min_change_probability=0.0)
        if known:
            self.engine = Known(self.sites, world)
        rng = np.random.default_rng(seed)
        self.fetched = -rng.uniform(0.0, 2.0 / world.budget, n) * DAY  # a crawl that has run for some time
        self.ids = self.engine.add(self.sites.urls, 0.0, fetched_at=self.fetched)
        self.credits = Credits(self.engine)
        self.worth = [Worth() for _ in range(world.hosts)]
        self.polled_at, self.due_at = np.full(world.hosts, -np.inf), np.zeros(world.hosts)
        self.dates = [self.sites.dates(h, 0.0) for h in range(world.hosts)]
        self.stale = 0.0
        self.threshold, self.polls = 0.0, np.zeros(2, int)

    def run(self) -> dict[str, Any]:
        """Spend the budget; freshness after the first third, and how many polls were made."""
        n, world = len(self.sites.urls), self.world
        total = int(world.budget * n * world.days)
        for k in range(total):
            now = (k + 0.5) * world.days * DAY / total
            if k % 20 == 0 and self.factor and self.threshold:
                self.due_at = self.polled_at + [self.interval(worth) for worth in self.worth]
            due = np.flatnonzero(self.due_at <= now) if self.factor and self.threshold else ()
            if len(due):
                self.poll(int(due[np.argmin(self.due_at[due])]), now)
            else:
                self.crawl(now)
        end = world.days * DAY
        for page in range(n):
            self._count_stale(page, end)
        fresh = 1.0 - self.stale / (n * end * 2 / 3)
        return {"freshness": round(float(fresh), 6), "polls": self.polls.tolist(), "requests": total}

    def crawl(self, now: float) -> None:
        """Crawl the page that is worth most."""
        page = int(self.engine.pick(now, 1)[0])
        value = self.engine.threshold
        if 0 < value < 1e200:
            before = self.threshold or value
            self.threshold = math.exp((1 - _SMOOTH) * math.log(before) + _SMOOTH * math.log(value))
        changed = self.sites.changed(page, self.fetched[page], now)
        self._count_stale(page, now)
        self.engine.record([page], now, changed=[changed])
        credit = self.credits.crawled(page, changed=changed, at=now)
        if credit is not None:
            host = int(credit.listing)
            self.worth[host] = self.worth[host].credited(credit.gain, credit.lead).signalled(-1)

    def poll(self, host: int, now: float) -> None:
        """Poll the sitemap of a host and signal the pages whose dates moved."""
        pages = np.flatnonzero(self.sites.host == host)
        dates = self.sites.dates(host, now)
        moved = pages[dates != self.dates[host]]
        self.polls[int(self.sites.honest[host])] += 1
        waiting = 0
        if len(moved):
            latest = dates[dates != self.dates[host]] + (0.0 if self.sites.honest[host] else DAY)
            self.engine.signal(moved, now, source=0, changed_at=np.minimum(latest, now))
            seen = (max(self.polled_at[host], 0.0) + now) / 2
            waiting = self.credits.signalled(str(host), moved.tolist(), seen, self.threshold)
        forecast = self.credits.forecast(pages, self.threshold)
        worth = self.worth[host].polled(now).signalled(waiting).with_prior(self.engine.pages(pages), forecast)
        self.worth[host], self.dates[host], self.polled_at[host] = worth, dates, now
        self.due_at[host] = now + self.interval(worth)

    def interval(self, worth: Worth) -> float:
        """Seconds until the next poll."""
        share = DAY / (UNPROVEN * self.world.pages * self.world.budget)
        return min(poll_interval(worth, self.threshold), max(worth.longest, share)) / self.factor

    def _count_stale(self, page: int, now: float) -> None:
        begin = self.world.days * DAY / 3
        times = self.sites.changes[page]
        first = np.searchsorted(times, self.fetched[page], side="right")
        if first < len(times) and times[first] < now:
            self.stale += max(now - max(times[first], begin), 0.0)
        self.fetched[page] = now


def table(results: dict[str, list[dict[str, Any]]]) -> str:
    """A row per factor."""
    lines = ["| polls | freshness | ± | polls of honest hosts | of lying hosts |", "|---|---|---|---|---|"]
    for name, runs in results.items():
        fresh = np.array([run["freshness"] for run in runs])
        error = fresh.std(ddof=1) / math.sqrt(len(fresh)) if len(fresh) > 1 else math.nan
        lying, honest = np.mean([run["polls"] for run in runs], axis=0)
        label = "none" if float(name) == 0 else "learned" if float(name) == 1 else f"{float(name):g} x learned"
        lines.append(f"| {label} | {fresh.mean():.4f} | {error:.4f} | {honest:.0f} | {lying:.0f} |")
    return "\n".join(lines)


def main() -> None:
    """Run all factors and write the results."""
    parser = argparse.ArgumentParser(description="Polls at the learned rate and at others.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--days", type=float, default=60.0)
    parser.add_argument("--known", action="store_true")
    parser.add_argument("--factors", default=",".join(f"{one:g}" for one in FACTORS), help="multiples of the rate")
    parser.add_argument("--out", type=Path, default=HERE)
    options = parser.parse_args()
    world = World(days=options.days)
    results: dict[str, list[dict[str, Any]]] = {}
    for factor in map(float, options.factors.split(",")):
        results[f"{factor:g}"] = [
            Run(world, 1 + seed, factor, known=options.known).run() for seed in range(options.seeds)
        ]
        print(factor, results[f"{factor:g}"][0])
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    readme = HERE / "README.md"
    print(table(results))
    if options.out == HERE and readme.is_file():
        before, rest = readme.read_text().split(START)
        readme.write_text(f"{before}{START}\n{table(results)}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
