"""Many pages in 64 shards on one machine: real engines, the real controller, one shard in memory at a time.

Time is divided into stretches. In each, one shard after the other is read from disk, learns from what the others have
published, crawls at its share, publishes its plan and its lessons, and is written back; then the controller divides the
budget. Pages are known by a host and a fingerprint alone; nothing is fetched or stored. Rates are learned: engines know
nothing beforehand. Freshness is counted over the last third of the time, beside the optimum that `solve` finds for all
pages with their true rates. Every page is crawled about eight times on average; those that are never worth a crawl are
not. A run that was ended goes on where it was.

    python benchmarks/bench_shards.py --dir DIR                    64 × 10,000 pages; results/shards.json
    python benchmarks/bench_shards.py --dir DIR --pages 1562500    1e8 pages; see docs/reference/sizing.md for the time
    python benchmarks/bench_shards.py --smallest                   whether it runs; nothing is written
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recrawl import Pages, solve
from recrawl.cluster.shares.controller import Round, ShardPlan
from recrawl.cluster.shares.shares import Share
from recrawl.cluster.simulated import ControlState, ShardOptions, SimulatedShard
from recrawl.simulate import Trace
from recrawl.simulate.worlds.events import poisson_events

RESULTS = Path(__file__).parent / "results"
PER_PAGE, DAYS, COUNTED = 0.1, 80.0, 1 / 3  # crawls per page and day; days; part of them that is counted


@dataclass(frozen=True)
class Size:
    """How large a run is."""

    shards: int
    pages: int  # of an average shard
    stretches: int

    @property
    def edges(self) -> list[float]:
        """When stretches begin and end; the first are short: there is nothing to go by yet."""
        return [0.0, *np.geomspace(DAYS / 16, DAYS, self.stretches).tolist()]


def pages_of(size: Size, shard: int) -> Pages:
    """The pages of a shard: hosts that differ, and shards that differ in size by up to four times."""
    rng = np.random.default_rng([1, shard])
    n = int(size.pages * 2.0 ** np.random.default_rng(0).uniform(-1, 1, size.shards)[shard])
    n_hosts = max(n // 100, 2)
    share = 1 / np.arange(1, n_hosts + 1)
    host = np.sort(rng.choice(n_hosts, n, p=share / share.sum()))
    change, importance = rng.lognormal(0.0, 1.0, (2, n_hosts)) * rng.lognormal(0.0, 0.5, (2, 1))
    rate = 0.1 * rng.lognormal(0.0, 0.7, n) * change[host]
    return Pages(rate, rng.lognormal(0.0, 0.5, n) * importance[host], host=host)


def trace_of(size: Size, shard: int) -> Trace:
    """The changes of a shard's pages, the same whenever they are drawn."""
    pages = pages_of(size, shard)
    events = poisson_events(np.asarray(pages.change_rate), 0.0, DAYS, np.random.default_rng([2, shard]))
    names = [f"h{shard}-{host}/{k:x}" for k, host in enumerate(pages.host.tolist())]
    return Trace(0.0, DAYS, *events, pages.importance, pages=pages, url=np.array(names, dtype=object))


class Progress:
    """What was done so far, in a file that is replaced as a whole."""

    def __init__(self, folder: Path, size: Size) -> None:
        self._path = folder / "progress.pickle"
        self.done: dict[str, Any] = {"size": size, "stretch": 0, "shard": 0, "plans": {}, "said": {}, "before": {}}
        self.done |= {"control": ControlState({}, Round(), dict.fromkeys(range(size.shards), 0)), "shares": []}
        self.done |= {"seconds": dict.fromkeys(("draw", "read", "crawl", "publish", "write"), 0.0), "crawls": 0}
        self.done |= {"stale": {}, "bytes": {}, "sent": [0, 0]}
        if self._path.exists():
            saved = pickle.loads(self._path.read_bytes())
            if saved["size"] != size:
                sys.exit(f"{folder} holds a run of another size: {saved['size']}")
            self.done = saved

    def save(self) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.write_bytes(pickle.dumps(self.done))
        fresh.replace(self._path)

    def timed(self, name: str, began: float) -> float:
        """Count processor time since `began`; the time now."""
        now = time.process_time()
        self.done["seconds"][name] += now - began
        return now


def control(progress: Progress, size: Size, pages: list[int], now: float) -> list[float]:
    """The shares of the next stretch, by the plans of the last."""
    done = progress.done
    plans = {k: done["plans"].get(k, ShardPlan(n)) for k, n in enumerate(pages)}
    done["control"].step(plans, PER_PAGE * sum(pages), now, 0.0)
    shares: dict[int, Share] = done["control"].shares
    return [shares[k].rate for k in range(size.shards)]


def run_shard(progress: Progress, size: Size, folder: Path, shard: int, stretch: int) -> None:
    """One stretch of one shard."""
    done, path = progress.done, folder / f"shard{shard}.pickle"
    begin, end = size.edges[stretch : stretch + 2]
    rate = done["shares"][stretch][shard]
    at = time.process_time()
    trace = trace_of(size, shard)
    at = progress.timed("draw", at)
    one = SimulatedShard(trace, rate, ShardOptions(count_from=DAYS * (1 - COUNTED)))
    if stretch:
        one.restore(pickle.loads(path.read_bytes()))
        others = [lessons for k, lessons in done["before"].items() if k != shard]
        one.policy.learn_from(others, begin)
    at = progress.timed("read", at)
    before = one.policy.beliefs.crawls
    one.run(begin, end, rate)
    done["crawls"] += one.policy.beliefs.crawls - before
    at = progress.timed("crawl", at)
    done["plans"][shard] = plan = one.plan(end, rate, PER_PAGE * len(trace))
    done["said"][shard] = said = one.policy.lessons()
    done["sent"] = [len(json.dumps(plan.as_dict())), len(json.dumps(said.as_dict()))]
    at = progress.timed("publish", at)
    if stretch + 1 < size.stretches:
        fresh = path.with_suffix(".new")
        fresh.write_bytes(pickle.dumps(one.state(), protocol=5))
        fresh.replace(path)
        done["bytes"][shard] = path.stat().st_size / len(trace)
    else:
        never = float((one.judge.tally.crawls == 0).mean())
        done["stale"][shard] = (one.stale, float(trace.importance.sum()), never)
    progress.timed("write", at)


def run(size: Size, folder: Path) -> dict[str, Any]:
    """All stretches of all shards; what came of it."""
    progress = Progress(folder, size)
    done = progress.done
    pages = [len(pages_of(size, k)) for k in range(size.shards)]
    while done["stretch"] < size.stretches:
        stretch = done["stretch"]
        if len(done["shares"]) == stretch:
            done["shares"].append(control(progress, size, pages, size.edges[stretch]))
            done["before"] = dict(done["said"])
        while done["shard"] < size.shards:
            run_shard(progress, size, folder, done["shard"], stretch)
            done["shard"] += 1
            progress.save()
            spent = sum(done["seconds"].values())
            line = f"stretch {stretch + 1} of {size.stretches}, shard {done['shard']} of {size.shards}"
            end = "\n" if done["shard"] == size.shards else "\r"
            if sys.stderr.isatty() or end == "\n":
                print(f"{line}, {done['crawls']:.3g} crawls, {spent:.0f} s", end=end, file=sys.stderr, flush=True)
        done["stretch"], done["shard"] = stretch + 1, 0
    return report(size, done, pages)


def report(size: Size, done: dict[str, Any], pages: list[int]) -> dict[str, Any]:
    """The figures of a run."""
    parts = [pages_of(size, k) for k in range(size.shards)]
    rate, importance = (
        np.concatenate([np.asarray(getattr(p, name)) for p in parts]) for name in ("change_rate", "importance")
    )
    budget = PER_PAGE * sum(pages)
    best = solve(Pages(rate, importance), budget)
    stale, weight, never = (sum(row[k] for row in done["stale"].values()) for k in range(3))
    seconds = {name: round(value, 1) for name, value in done["seconds"].items()}
    spread = [plan.threshold(done["shares"][-1][k]) for k, plan in done["plans"].items()]
    return {
        "cores_of_machine": os.cpu_count(),
        "load": os.getloadavg()[0],
        "shards": size.shards,
        "pages": sum(pages),
        "largest_shard": max(pages),
        "crawls_learned_from": done["crawls"],
        "crawls_per_page": PER_PAGE * DAYS,
        "never_crawled_while_counted": never / size.shards,
        "freshness": 1 - stale / weight,
        "optimum": best.freshness,
        "below_optimum": best.freshness - (1 - stale / weight),
        "planned_thresholds_ratio": float(np.percentile(spread, 95) / np.percentile(spread, 5)),
        "cpu_seconds": seconds,
        "crawls_per_cpu_second": done["crawls"] / (done["seconds"]["crawl"] or 1.0),
        "state_bytes_per_page": float(np.mean(list(done["bytes"].values()))) if done["bytes"] else None,
        "plan_bytes": done["sent"][0],
        "lessons_bytes": done["sent"][1],
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, help="where shards are kept between stretches, and a run can go on")
    parser.add_argument("--pages", type=int, default=10_000, help="of an average shard")
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--stretches", type=int, default=5)
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    given = parser.parse_args()
    size = Size(3, 200, 3) if given.smallest else Size(given.shards, given.pages, given.stretches)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.dir or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        found = run(size, folder)
    print(json.dumps(found, indent=1))
    if not given.smallest:
        (RESULTS / "shards.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
