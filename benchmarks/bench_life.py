"""The whole life of an engine in one run: first decision, adding, decisions, saving, restart, memory.

For each number of pages one process for the engine with its SQLite store and one for a `heapq` of due dates with a
`dict` and SQLite (`HeapCrawler`). All pages have different importance, on 1,000 hosts; settings are the defaults. First
decisions are about pages without a copy; those of the first week about pages with copies of all ages up to a week and
few crawls, when tables are fitted often (bench_parts.py has the long run). Rates are per second of processor time,
which other processes disturb less, and include all fits. Saving and the longest call are of the clock; each batch of
500 outcomes is durable.

    python benchmarks/bench_life.py               1e4, 1e5 and 1e6 pages, some minutes; results/life.json and life.png
    python benchmarks/bench_life.py --largest     and 1e7
    python benchmarks/bench_life.py --smallest    1e3 pages; nothing is written
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
RESULTS = HERE / "results"
DAY, BATCH, PICKED = 86400.0, 500, 100
SIZES = (10_000, 100_000, 1_000_000)
PANELS = {  # figure: title, whether more is better
    "add_per_s": "pages added per s",
    "cold_per_s": "first decisions per s",
    "first_week_per_s": "decisions per s in the first week",
    "single_per_s": "single pick + record per s",
    "save_per_s": "outcomes saved per s, durable",
    "restart_s": "restart, s",
    "bytes_per_page": "bytes per page beside the URL",
    "longest_call_ms": "longest call, ms",
}


class Timer:
    """Processor time of calls, and the longest of them by the clock."""

    def __init__(self) -> None:
        self.cpu = self.clock = self.longest = 0.0
        self.made = 0  # decisions
        self.picks: list[float] = []  # processor time of each pick

    def __call__(self, call: Callable[[], Any]) -> Any:
        cpu, began = time.process_time(), time.perf_counter()
        found = call()
        took = time.perf_counter() - began
        self.cpu, self.clock, self.longest = (
            self.cpu + time.process_time() - cpu,
            self.clock + took,
            max(self.longest, took),
        )
        return found


class World:
    """Pages that change at rates of their own, and how many crawls a second there are."""

    def __init__(self, n: int) -> None:
        rng = np.random.default_rng(1)
        self.urls = [f"https://host{k % 1000}.example.org/section{k % 7}/article-{k:08d}.html" for k in range(n)]
        self.importance = rng.lognormal(0.0, 1.0, n)
        self.rate, self.last, self._rng = rng.gamma(0.5, 1.0 / DAY, n), np.zeros(n), rng
        self.budget, self.now = n / (7 * DAY), 0.0
        self.ages = rng.uniform(0.0, 7 * DAY, n)

    def crawl(self, pages: Any) -> Any:
        """Crawl pages: which of them had changed."""
        elapsed, self.last[pages] = self.now - self.last[pages], self.now
        return self._rng.random(len(pages)) < -np.expm1(-self.rate[pages] * elapsed)


class EngineLife:
    """An engine with its SQLite store."""

    def __init__(self, world: World, path: Path) -> None:
        from recrawl import Engine
        from recrawl.store import SqliteStore

        self._world, self._engine = world, Engine(world.budget)
        self._store = SqliteStore(path, keep=0)

    def add(self, fetched_at: Any = None) -> None:
        self._engine.add(self._world.urls, 0.0, importance=self._world.importance, fetched_at=fetched_at)

    def pick(self, n: int) -> Any:
        return self._engine.pick(self._world.now, n)

    def record(self, pages: Any, changed: Any) -> None:
        self._engine.record(pages, self._world.now, changed=changed)

    def save_all(self) -> None:
        asyncio.run(self._store.save(rows=self._engine.rows()))

    def save(self, pages: Any, changed: Any) -> None:
        from recrawl.store.protocol import Outcome

        found = zip(self._engine.url(pages), changed.tolist(), strict=True)
        outcomes = [Outcome(url, self._world.now, 0.1, 200, flag, f"{self._world.now}") for url, flag in found]
        asyncio.run(self._store.save(outcomes, self._engine.rows(pages)))

    def restart(self) -> None:
        from recrawl import Engine

        rows = asyncio.run(self._store.load())
        assert rows is not None
        Engine.restore(rows, now=self._world.now)


class HeapCrawler:
    """What a user would write instead: a `heapq` of due dates, a `dict` and SQLite.

    A page that had changed is due after 0.7 of its last interval, one that had not after 1.3 of it.
    """

    def __init__(self, path: Path, interval: float = 7 * DAY) -> None:
        self.due: list[tuple[float, str]] = []
        self.pages: dict[str, list[float]] = {}  # interval, last crawl, importance
        self.interval = interval
        self.base = sqlite3.connect(path, isolation_level=None)
        self.base.execute("pragma journal_mode = wal")
        self.base.execute("pragma synchronous = full")
        self.base.execute(
            "create table if not exists page (url text primary key, interval real, last real, importance real) "
            "without rowid"
        )

    def add(
        self, urls: Sequence[str], now: float, importance: Sequence[float], last: Sequence[float] | None = None
    ) -> None:
        for k, url in enumerate(urls):
            if url not in self.pages:
                at, due = (now, now - importance[k]) if last is None else (last[k], last[k] + self.interval)
                self.pages[url] = [self.interval, at, importance[k]]
                heapq.heappush(self.due, (due, url))  # of new pages, important ones first

    def pick(self, now: float, n: int) -> list[str]:
        return [heapq.heappop(self.due)[1] for _ in range(min(n, len(self.due)))]

    def record(self, urls: Sequence[str], now: float, changed: Sequence[bool]) -> None:
        for url, found in zip(urls, changed, strict=True):
            page = self.pages[url]
            page[0] = min(max(page[0] * (0.7 if found else 1.3), 60.0), 90 * DAY)
            page[1] = now
            heapq.heappush(self.due, (now + page[0], url))

    def save(self, urls: Sequence[str]) -> None:
        rows = [(url, *self.pages[url]) for url in urls]
        self.base.execute("begin immediate")
        self.base.executemany("insert or replace into page values (?, ?, ?, ?)", rows)
        self.base.execute("commit")

    def load(self) -> None:
        for url, *page in self.base.execute("select url, interval, last, importance from page"):
            self.pages[url] = page
        self.due = [(last + interval, url) for url, (interval, last, _) in self.pages.items()]
        heapq.heapify(self.due)


class HeapLife:
    """A `heapq` of due dates with a `dict` and SQLite."""

    def __init__(self, world: World, path: Path) -> None:
        self._world, self._make = world, lambda: HeapCrawler(path)
        self._mine = self._make()
        self._ids = {url: k for k, url in enumerate(world.urls)}

    def add(self, fetched_at: Any = None) -> None:
        last = None if fetched_at is None else fetched_at.tolist()
        self._mine.add(self._world.urls, 0.0, self._world.importance.tolist(), last)

    def pick(self, n: int) -> Any:
        return np.array([self._ids[url] for url in self._mine.pick(self._world.now, n)])

    def record(self, pages: Any, changed: Any) -> None:
        self._mine.record([self._world.urls[page] for page in pages.tolist()], self._world.now, changed.tolist())

    def save_all(self) -> None:
        self._mine.save(self._world.urls)

    def save(self, pages: Any, changed: Any) -> None:
        self._mine.save([self._world.urls[page] for page in pages.tolist()])

    def restart(self) -> None:
        self._make().load()


def rss() -> float:
    """Bytes in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def crawled(life: Any, world: World, n: int, batch: int) -> Timer:
    """Make n decisions in batches; only the calls of the life are timed."""
    timer = Timer()
    for _ in range(max(n // batch, 1)):
        world.now += batch / world.budget
        before = timer.cpu
        pages = timer(lambda: life.pick(batch))
        timer.picks.append(timer.cpu - before)
        if not len(pages):
            continue
        timer.made += len(pages)
        changed = world.crawl(pages)
        timer(lambda p=pages, c=changed: life.record(p, c))
    return timer


def saved(life: Any, world: World, n: int) -> Timer:
    """Save n outcomes in batches."""
    timer, pages = Timer(), np.random.default_rng(2).permutation(len(world.urls))[:n]
    for some in np.array_split(pages, max(n // BATCH, 1)):
        world.now += len(some) / world.budget
        changed = world.crawl(some)
        life.record(some, changed)
        timer(lambda p=some, c=changed: life.save(p, c))
    timer.made = n
    return timer


def lived(kind: str, n: int) -> dict[str, Any]:
    """One life."""
    world, timers = World(n), {name: Timer() for name in ("add", "restart")}
    with tempfile.TemporaryDirectory() as folder:
        if kind == "engine":
            few = World(1000)
            for name, fetched_at in (("new", None), ("old", -few.ages)):  # compile
                small = EngineLife(few, Path(folder) / name)
                small.add(fetched_at), crawled(small, few, 1000, PICKED), crawled(small, few, 10, 1)
        place = Path(folder) / "life"
        place.mkdir()
        made = EngineLife if kind == "engine" else HeapLife
        life, before = made(world, place / "cold.db"), rss()
        timers["add"](life.add)
        cold = crawled(life, world, min(n, 20_000), PICKED)
        used = rss() - before
        world, life = World(n), None
        life = made(world, place / "steady.db")
        life.add(-world.ages)
        world.last[:] = -world.ages
        crawled(life, world, min(n, 5_000), 1000)
        steady = crawled(life, world, min(n, 20_000), PICKED)
        single = crawled(life, world, 1000, 1)
        life.save_all()
        save = saved(life, world, min(n, 10_000))
        timers["restart"](life.restart)
    longest = max(cold.longest, steady.longest, single.longest)
    return {
        "kind": kind,
        "pages": n,
        "add_per_s": n / timers["add"].cpu,
        "cold_per_s": cold.made / cold.cpu,
        "cold_pick_ms": 1e3 * float(np.median(cold.picks)),
        "cold_pick_99th_ms": 1e3 * float(np.quantile(cold.picks, 0.99)),
        "first_pick_ms": 1e3 * cold.picks[0],
        "first_week_per_s": steady.made / steady.cpu,
        "single_per_s": single.made / single.cpu,
        "save_per_s": save.made / save.clock,
        "save_per_cpu_s": save.made / save.cpu,
        "restart_s": timers["restart"].cpu,
        "bytes_per_page": used / n - (len(world.urls[0]) if kind == "engine" else 0),
        "longest_call_ms": 1e3 * longest,
        "longest_cold_call_ms": 1e3 * cold.longest,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "load": round(os.getloadavg()[0], 1),
    }


def first_decision() -> float:
    """Processor time of a new process from the import to the first pick of 1,000 pages, with kernels on disk."""
    code = (
        "import time; c = time.process_time(); from recrawl import Engine; e = Engine(1.0); "
        "e.add([f'https://a.example/{k}' for k in range(1000)], 0.0); e.pick(1.0, 1); print(time.process_time() - c)"
    )
    return float(subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout)


def in_fresh_process(kind: str, n: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--life", kind, str(n)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="", flush=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """One panel per figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 6), dpi=110, layout="constrained")
    for axes, (name, title) in zip(figure.subplots(2, 4).flat, PANELS.items(), strict=True):
        for kind, colour, label in (("heap", "0.6", "heapq, dict, SQLite"), ("engine", "crimson", "recrawl")):
            points = [(row["pages"], row[name]) for row in rows if row["kind"] == kind and row[name]]
            axes.loglog(*zip(*points, strict=True), "o-", color=colour, label=label)
        axes.set_title(title, loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
    figure.axes[0].legend(frameon=False)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", action="store_true")
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    parser.add_argument("--life", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.life:
        print(json.dumps(lived(given.life[0], int(given.life[1]))))
        return
    if given.smallest:
        print(lived("heap", 1000), lived("engine", 1000))
        return
    first = first_decision(), first_decision()
    sizes = (*SIZES, 10_000_000) if given.largest else SIZES
    rows: list[dict[str, Any]] = []
    for n in sizes:
        rows += [in_fresh_process(kind, n) for kind in ("heap", "engine")]
        report = {"cores": os.cpu_count(), "first_decision_cpu_s": min(first), "rows": rows}
        RESULTS.joinpath("life.json").write_text(json.dumps(report, indent=1) + "\n")
        draw(rows, RESULTS / "life.png")


if __name__ == "__main__":
    main()
