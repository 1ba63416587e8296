"""A hundred million pages in 64 shards on one machine: real engines that know change rates, the real controller.

Two stretches of time. In each, one shard after the other starts an engine from the times of its copies, as a worker
that takes over a shard does, crawls at its share by `pick` and `record`, and publishes its plan. Before each the
controller divides the budget: first by plans of a sample of each shard's pages, then by those of the engines. Engines
are given the true change rates with the evidence of a million changes, so that crawls are recorded without a
comparison, which would hardly move the beliefs: learning at this size costs many hours (`bench_shards.py` learns, with
fewer pages). When a page changes next is drawn when it is crawled. At the beginning copies are as old as evenly spaced
crawls at the first shares leave them. Freshness is counted over the last third of the time, beside the optimum that
`solve` finds for all pages together.

Each shard of each stretch is a file: a run that was ended goes on where it was.

    python benchmarks/bench_shards_known.py --dir DIR --pages 1562500    1e8 pages; results/shards_known.json
    python benchmarks/bench_shards_known.py --dir DIR                    64 × 10,000 pages; results are not written
    python benchmarks/bench_shards_known.py --smallest                   whether it runs
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl import Engine, Pages, solve
from recrawl.cluster.shares.controller import Round, ShardPlan, plan_of
from recrawl.cluster.simulated import ControlState
from recrawl.engine.views.curve import MOST_PAGES
from recrawl.estimate.sampling import draw
from recrawl.solver.curves import build_curves
from recrawl.solver.parts import PartsProblem
from recrawl.solver.solving import budget_curve

Array = NDArray[np.float64]
RESULTS = Path(__file__).parent / "results"
PER_PAGE, EDGES, COUNTED = 0.1, (0.0, 20.0, 51.0), 1 / 3  # crawls per page and day; days; part that is counted
EVIDENCE, BATCH, OLDEST = 1e6, 4000, 100.0  # changes; pages per pick; days
PER_PROCESS = 8  # stretches of shards, one after the other: freed memory is not all given back
COUNT_FROM = EDGES[-1] * (1 - COUNTED)


@dataclass(frozen=True)
class Size:
    """How large a run is."""

    shards: int
    pages: int  # of an average shard

    def pages_of(self, shard: int) -> int:
        """Shards differ in size by up to four times."""
        return int(self.pages * 2.0 ** np.random.default_rng(0).uniform(-1, 1, self.shards)[shard])

    @property
    def total(self) -> int:
        """Pages of all shards."""
        return sum(map(self.pages_of, range(self.shards)))


@dataclass(frozen=True)
class Task:
    """One stretch of one shard."""

    size: Size
    folder: Path
    shard: int
    stretch: int
    share: float

    @property
    def file(self) -> Path:
        """Where the result is kept; without its ending, also the copies."""
        return self.folder / f"{self.stretch}-{self.shard}.json"

    @property
    def copies(self) -> Path:
        """Where the times of the copies, and of the first changes after them, are kept after the stretch."""
        return self.folder / f"copies-{self.shard}-{self.stretch % 2}.npy"


def pages_of(size: Size, shard: int) -> Pages:
    """The pages of a shard: hosts that differ, and shards that differ in size."""
    rng, n = np.random.default_rng([1, shard]), size.pages_of(shard)
    n_hosts = max(n // 100, 2)
    share = 1 / np.arange(1, n_hosts + 1)
    host = np.sort(rng.choice(n_hosts, n, p=share / share.sum()))
    change, importance = rng.lognormal(0.0, 1.0, (2, n_hosts)) * rng.lognormal(0.0, 0.5, (2, 1))
    rate = 0.1 * rng.lognormal(0.0, 0.7, n) * change[host]
    return Pages(rate, rng.lognormal(0.0, 0.5, n) * importance[host], host=host)


def first_plan(size: Size, shard: int) -> ShardPlan:
    """What a shard plans before its first crawl: the thresholds of a sample of its pages, as engines compute them."""
    pages = pages_of(size, shard)
    importance, by_pages = np.asarray(pages.importance), PER_PAGE * len(pages)
    sample = draw(importance, MOST_PAGES, np.random.default_rng(0))
    rate, each = np.asarray(pages.change_rate)[sample.rows], sample.stands_for
    weighed = Pages(rate, importance[sample.rows] * each, cost=each)
    budgets, thresholds = budget_curve(weighed, by_pages / 16.0, by_pages * 16.0, 17)
    return ShardPlan(len(pages), tuple(budgets.tolist()), tuple(thresholds.tolist()))


class Shard:
    """The pages of one shard, how old their copies are, and when each copy became stale."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.pages = pages_of(task.size, task.shard)
        self.rate, self.weight = np.asarray(self.pages.change_rate), np.asarray(self.pages.importance)
        self._rng = np.random.default_rng([2, task.shard, task.stretch])
        self.stale, self.crawls = 0.0, 0
        if task.stretch:
            before = Task(task.size, task.folder, task.shard, task.stretch - 1, 0.0)
            self.copied_at, self.changes_at = np.load(before.copies)
        else:
            alone = solve(self.pages.replace(host=None), task.share).crawl_rate
            cycle = 1.0 / np.maximum(alone, 1.0 / OLDEST)
            self.copied_at = -cycle * self._rng.random(len(self.pages))
            self.changes_at = self.copied_at + self._drawn(self.rate)

    def _drawn(self, rate: Array) -> Array:
        """How long until a page changes."""
        return self._rng.exponential(1.0, len(rate)) / rate

    def engine(self, now: float) -> Engine:
        """An engine that has the pages and their copies."""
        known: dict[str, Any] = {"sources": 0, "siblings": False, "min_change_probability": 0.0}
        engine = Engine(self._task.share, start=now, day=1.0, lease=1.0, **known)
        host = self.pages.host.tolist()
        names = [f"https://s{self._task.shard}h{name}.example/{k:x}" for k, name in enumerate(host)]
        engine.add(
            names,
            now,
            fetched_at=self.copied_at,
            importance=self.weight,
            change_rate=self.rate,
            evidence=EVIDENCE,
        )
        return engine

    def run(self, engine: Engine, begin: float, end: float) -> None:
        """Crawl at the shard's share, in batches."""
        n = int((end - begin) * self._task.share)
        batch = max(min(BATCH, n // 100), 1)
        for k in range(batch, n + 1, batch):
            now = begin + k / self._task.share
            ids = engine.pick(now, batch)
            self._count(ids, now)
            self.copied_at[ids] = now
            self.changes_at[ids] = now + self._drawn(self.rate[ids])
            engine.record(ids, now)
            self.crawls += len(ids)
        if end == EDGES[-1]:
            self._count(np.arange(len(self.pages)), end)

    def _count(self, ids: NDArray[np.int64], now: float) -> None:
        """Count for how long copies were stale, up to now."""
        if now > COUNT_FROM:
            stale = now - np.maximum(self.changes_at[ids], COUNT_FROM)
            self.stale += float(self.weight[ids] @ np.maximum(stale, 0.0))


def run_shard(task: Task) -> dict[str, Any]:
    """One stretch of one shard; what came of it, which is also kept in a file."""
    begin, end = EDGES[task.stretch : task.stretch + 2]
    marks = [time.process_time()]

    def mark() -> None:
        marks.append(time.process_time())

    shard = Shard(task)
    mark()
    engine = shard.engine(begin)
    mark()
    shard.run(engine, begin, end)
    mark()
    plan = plan_of(engine, end, share=task.share, by_pages=PER_PAGE * len(shard.pages))
    mark()
    fresh = task.copies.with_suffix(".new.npy")
    np.save(fresh, np.stack([shard.copied_at, shard.changes_at]))
    fresh.replace(task.copies)
    mark()
    parts = ("draw", "start", "crawl", "publish", "write")
    found = {
        "pages": len(shard.pages),
        "share": task.share,
        "crawls": shard.crawls,
        "plan": plan.as_dict(),
        "threshold": engine.threshold,
        "stale": shard.stale,
        "importance": float(shard.weight.sum()),
        "never": float((shard.copied_at < COUNT_FROM).mean()),
        "cpu": {name: b - a for name, a, b in zip(parts, marks, marks[1:], strict=False)},
        "load": os.getloadavg()[0],
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    text = task.file.with_suffix(".new")
    text.write_text(json.dumps(found))
    text.replace(task.file)
    return found


def run(size: Size, folder: Path, processes: int) -> dict[str, Any]:
    """All stretches of all shards; what came of it."""
    control = ControlState({}, Round(), dict.fromkeys(range(size.shards), 0))
    plans = first_plans(size, folder)
    shares, stretches = [], []
    with get_context("spawn").Pool(processes, maxtasksperchild=PER_PROCESS) as pool:
        for stretch, begin in enumerate(EDGES[:-1]):
            control.step(plans, PER_PAGE * size.total, begin, 0.0)
            shares.append([control.shares[k].rate for k in range(size.shards)])
            tasks = [Task(size, folder, k, stretch, share) for k, share in enumerate(shares[-1])]
            waiting = [task for task in tasks if not task.file.exists()]
            for done, _ in enumerate(pool.imap_unordered(run_shard, waiting), 1):
                print(f"stretch {stretch + 1}, shard {done} of {len(waiting)}", file=sys.stderr, flush=True)
            stretches.append([json.loads(task.file.read_text()) for task in tasks])
            plans = {task.shard: ShardPlan.of(one["plan"]) for task, one in zip(tasks, stretches[-1], strict=True)}
    return report(size, folder, shares, stretches)


def first_plans(size: Size, folder: Path) -> dict[int, ShardPlan]:
    """The plans of all shards before the first crawl; they are kept in a file."""
    file = folder / "plans.json"
    if not file.exists():
        file.write_text(json.dumps([first_plan(size, k).as_dict() for k in range(size.shards)]))
    return {k: ShardPlan.of(plan) for k, plan in enumerate(json.loads(file.read_text()))}


def optimum(size: Size, folder: Path) -> dict[str, float]:
    """The optimum for all pages together, computed shard by shard, and that of shards alone; kept in a file."""
    file = folder / "optimum.json"
    if not file.exists():
        began = time.process_time()
        columns = []
        for k in range(size.shards):
            pages = pages_of(size, k)
            columns.append((np.asarray(pages.change_rate, np.float64), np.asarray(pages.importance, np.float64)))

        def each(question: Any, *given: Any) -> list[Any]:
            return [question(build_curves(Pages(*part), "freshness", "even", 0.0, None), *given) for part in columns]

        plan = PartsProblem(each).solve("freshness", budget=PER_PAGE * size.total)
        found = {"freshness": plan.freshness, "threshold": plan.threshold, "gap": plan.gap}
        apart = [(solve(Pages(*part), PER_PAGE * len(part[0])).freshness, part[1].sum()) for part in columns]
        found["by_pages"] = float(np.average([one for one, _ in apart], weights=[weight for _, weight in apart]))
        file.write_text(json.dumps({**found, "cpu": time.process_time() - began}))
    return dict(json.loads(file.read_text()))


def report(
    size: Size, folder: Path, shares: list[list[float]], stretches: list[list[dict[str, Any]]]
) -> dict[str, Any]:
    """The figures of a run."""
    everything = [one for stretch in stretches for one in stretch]
    last = stretches[-1]
    stale, weight = (sum(one[name] for one in last) for name in ("stale", "importance"))
    freshness, best = 1.0 - stale / (weight * (EDGES[-1] - COUNT_FROM)), optimum(size, folder)
    crawls, pages = sum(one["crawls"] for one in everything), size.total
    cpu = {name: sum(one["cpu"][name] for one in everything) for name in last[0]["cpu"]}
    return {
        "cores_of_machine": os.cpu_count(),
        "load": [min(one["load"] for one in everything), max(one["load"] for one in everything)],
        "shards": size.shards,
        "pages": pages,
        "largest_shard": max(one["pages"] for one in last),
        "crawls": crawls,
        "crawls_per_page": crawls / pages,
        "not_crawled_while_counted": sum(one["never"] * one["pages"] for one in last) / pages,
        "freshness": freshness,
        "optimum": best["freshness"],
        "gap_of_optimum": best["gap"],
        "optimum_of_shares_by_pages": best["by_pages"],
        "below_optimum": best["freshness"] - freshness,
        "rounds": [_round(shares[k], stretches[k], best["threshold"]) for k in range(len(stretches))],
        "cpu_seconds": {name: round(value, 1) for name, value in cpu.items()},
        "cpu_seconds_of_optimum": round(best["cpu"], 1),
        "crawls_per_cpu_second": crawls / (cpu["crawl"] or 1.0),
        "starts_per_cpu_second": pages * len(stretches) / (cpu["start"] or 1.0),
        "copies_bytes_per_page": 16.0,
        "plan_bytes": len(json.dumps(last[0]["plan"])),
        "peak_bytes": max(one["peak_bytes"] for one in everything),
    }


def _round(shares: list[float], stretch: list[dict[str, Any]], best: float) -> dict[str, float]:
    """Shares beside parts by pages, and how far thresholds that shards plan at their shares are apart."""
    planned = np.array([ShardPlan.of(one["plan"]).threshold(share) for one, share in zip(stretch, shares, strict=True)])
    by_pages = np.array(shares) / [PER_PAGE * one["pages"] for one in stretch]
    return {
        "least_share_by_pages": float(by_pages.min()),
        "largest_share_by_pages": float(by_pages.max()),
        "planned_thresholds_largest_to_least": float(planned.max() / planned.min()),
        "planned_thresholds_95_to_5": float(np.percentile(planned, 95) / np.percentile(planned, 5)),
        "planned_by_optimal_threshold": float(np.median(planned) / best),
    }


def draw_shards(folder: Path, size: Size, path: Path) -> None:
    """What a shard costs against its pages, and its share and planned threshold."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), dpi=110, layout="constrained")
    cost, split = figure.subplots(1, 2)
    for stretch in range(len(EDGES) - 1):
        rows = [json.loads((folder / f"{stretch}-{k}.json").read_text()) for k in range(size.shards)]
        pages = np.array([row["pages"] for row in rows])
        crawl = [1e6 * row["cpu"]["crawl"] / row["crawls"] for row in rows]
        start = [1e6 * row["cpu"]["start"] / row["pages"] for row in rows]
        cost.plot(pages / 1e6, crawl, "o", ms=3, color=f"C{stretch}", label=f"a crawl, stretch {stretch + 1}")
        cost.plot(
            pages / 1e6, start, "x", ms=4, color=f"C{stretch}", label=f"the start, per page, stretch {stretch + 1}"
        )
        share = np.array([row["share"] for row in rows])
        planned = [ShardPlan.of(row["plan"]).threshold(row["share"]) for row in rows]
        split.plot(share / (PER_PAGE * pages), planned, "o", ms=3, color=f"C{stretch}", label=f"stretch {stretch + 1}")
    cost.set(title="Processor time", xlabel="pages of the shard, millions", ylabel="µs", ylim=(0, 8))
    split.set(
        title="Shares", xlabel="share over the part of the budget by pages", ylabel="planned threshold at the share"
    )
    best = optimum(size, folder)["threshold"]
    split.axhline(best, color="grey", lw=0.8, label="optimum of all pages")
    split.set_ylim(0, best * 2)
    for axes in (cost, split):
        axes.legend(frameon=False, fontsize=7, ncols=2)
    figure.savefig(path, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, help="where shards are kept between stretches, and a run can go on")
    parser.add_argument("--pages", type=int, default=10_000, help="of an average shard")
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--processes", type=int, default=1, help="shards at the same time")
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    given = parser.parse_args()
    size = Size(3, 200) if given.smallest else Size(given.shards, given.pages)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.dir or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        known = folder / "size.json"
        if known.exists() and json.loads(known.read_text()) != [size.shards, size.pages]:
            sys.exit(f"{folder} holds a run of another size: {known.read_text()}")
        known.write_text(json.dumps([size.shards, size.pages]))
        found = run(size, folder, given.processes)
        print(json.dumps(found, indent=1))
        if size.pages >= 1_000_000:
            (RESULTS / "shards_known.json").write_text(json.dumps(found, indent=1) + "\n")
            draw_shards(folder, size, RESULTS / "shards_known.png")


if __name__ == "__main__":
    main()
