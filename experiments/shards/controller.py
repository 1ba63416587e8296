"""A crawl in 4 and 16 shards beside one scheduler and one engine: what dividing pages and budget costs.

Pages of hosts of very unequal size (`shard_world.py`), budget 0.1 crawls per page and day, 90 days of which the first
30 are not counted. Each shard has a scheduler that knows the rates, or an engine that learns them; the controller
divides the budget by their plans every two days. Beside it: the budget divided by pages, or equally; engines that do
not share lessons; rounds ten times as frequent; a shard whose rates rise tenfold in the middle.

    python experiments/shards/controller.py            about ten minutes on one core; controller.json, controller.png
    python experiments/shards/controller.py --expected   seconds: only what the shares of known rates lose
    python experiments/shards/controller.py --met        a minute: only how far thresholds of learned rates are apart
    python experiments/shards/controller.py --smallest   whether it runs; nothing is written
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from shard_world import draw, skewed_pages

from recrawl import Pages, solve
from recrawl.cluster.shares.controller import ShardPlan, split_shares
from recrawl.cluster.simulated import ShardOptions, ShardsRun, parts_of, simulate_shards
from recrawl.schedule import shard_of
from recrawl.simulate import Trace, contender, simulate
from recrawl.solver.solving import budget_curve

HERE = Path(__file__).parent
PER_PAGE, EVERY = 0.1, 2.0
NAMES = {"plan": "by plans", "apart": "by plans, no lessons shared", "pages": "by pages", "equal": "equally"}


@dataclass(frozen=True)
class Size:
    """How large a run is."""

    pages: int = 4000
    hosts: int = 200
    days: float = 90.0
    skip: float = 30.0
    seeds: int = 3
    shards: tuple[int, ...] = (4, 16)


def world(size: Size, seed: int) -> tuple[Pages, Trace]:
    pages = skewed_pages(size.pages, size.hosts, np.random.default_rng(seed))
    return pages, draw(pages, size.days, np.random.default_rng(100 + seed))


def one(trace: Trace, known: bool, count_from: float) -> float:
    policy = contender("no-signals" if known else "learned")
    return simulate(policy, trace, PER_PAGE * len(trace), count_from=count_from).freshness


def row_of(run: ShardsRun) -> dict[str, Any]:
    """The figures of a run: freshness, thresholds at the rounds, the most that could be spent over the budget."""
    row: dict[str, Any] = {"freshness": run.freshness, "requests": run.requests}
    if len(run.spread):
        row |= {"spread": [round(float(x), 4) for x in run.spread[1:]], "most_reserved": run.most}
        row["met"] = [round(float(x), 4) for x in run.met]
    return row


def ways(trace: Trace, shard: np.ndarray, n: int, options: ShardOptions) -> dict[str, Any]:
    """All ways to divide the budget."""
    parts, budget = parts_of(trace, shard, n), PER_PAGE * len(trace)
    found = {}
    for name in NAMES:
        if name == "apart" and options.known:
            continue
        split = "plan" if name == "apart" else name
        chosen = replace(options, split=split, share_lessons=name != "apart")
        found[name] = row_of(simulate_shards(parts, budget, chosen))
    return found


def expected(size: Size) -> list[dict[str, Any]]:
    """What the shares of known rates lose by themselves: optimal plans at them beside one of all pages."""
    rows = []
    for seed in range(size.seeds):
        pages = skewed_pages(size.pages, size.hosts, np.random.default_rng(seed))
        budget = PER_PAGE * len(pages)
        best = solve(pages, budget).freshness
        for n in size.shards:
            shard = shard_of(pages.host, n)
            parts = {k: pages[np.flatnonzero(shard == k)] for k in np.unique(shard).tolist()}
            by_pages = {k: budget * len(part) / len(pages) for k, part in parts.items()}
            shares = by_pages
            for _ in range(2):
                shares = split_shares({k: plan(part, shares[k], by_pages[k]) for k, part in parts.items()}, budget)
            found = [(solve(part, shares[k]).freshness, part.importance.sum()) for k, part in parts.items()]
            lost = best - float(np.average([one for one, _ in found], weights=[weight for _, weight in found]))
            rows.append({"seed": seed, "shards": n, "optimum": best, "lost": lost})
            print(rows[-1], flush=True)
    return rows


def plan(part: Pages, share: float, by_pages: float) -> ShardPlan:
    """The plan of a shard that knows its rates, as simulated shards publish it."""
    budgets, thresholds = budget_curve(part, min(share, by_pages) / 16.0, max(share, by_pages) * 16.0, 17)
    return ShardPlan(len(part), tuple(budgets.tolist()), tuple(thresholds.tolist()))


def compare(size: Size) -> list[dict[str, Any]]:
    """One scheduler and one engine beside shards."""
    rows = []
    for seed in range(size.seeds):
        pages, trace = world(size, seed)
        best = solve(pages, PER_PAGE * len(pages)).freshness
        for known in (True, False):
            alone = one(trace, known, size.skip)
            for n in size.shards:
                options = ShardOptions(every=EVERY, known=known, count_from=size.skip)
                found = ways(trace, shard_of(pages.host, n), n, options)
                rows.append({"seed": seed, "known": known, "shards": n, "optimum": best, "one": alone, **found})
                print(
                    seed, known, n, round(alone, 4), {k: round(v["freshness"], 4) for k, v in found.items()}, flush=True
                )
    return rows


def met(size: Size) -> list[dict[str, Any]]:
    """How far planned thresholds of learned rates are apart, at the shares computed from them and at those before."""
    rows = []
    for seed in range(size.seeds):
        pages, trace = world(size, seed)
        for n in size.shards:
            parts = parts_of(trace, shard_of(pages.host, n), n)
            options = ShardOptions(every=EVERY, count_from=size.skip)
            row = row_of(simulate_shards(parts, PER_PAGE * len(trace), options))
            rows.append({"pages": size.pages, "seed": seed, "shards": n, "met": row["met"], "spread": row["spread"]})
            print(rows[-1], flush=True)
    return rows


def frequent(size: Size) -> list[dict[str, Any]]:
    """Rounds ten times as frequent."""
    pages, trace = world(size, 0)
    rows = []
    for n in size.shards:
        parts = parts_of(trace, shard_of(pages.host, n), n)
        found = {}
        for every in (EVERY, EVERY / 10):
            options = ShardOptions(every=every, count_from=size.skip)
            found[f"every {every:g} days"] = simulate_shards(parts, PER_PAGE * len(trace), options).freshness
        rows.append({"shards": n, **found})
        print(rows[-1], flush=True)
    return rows


def tenfold(size: Size) -> dict[str, Any]:
    """The rates of one shard of 16 rise tenfold in the middle of the time; counted from then on."""
    n = max(size.shards)
    pages = skewed_pages(size.pages, size.hosts, np.random.default_rng(0))
    shard = shard_of(pages.host, n)
    count = np.bincount(shard, minlength=n)
    risen = int(np.argsort(count)[n // 2])
    trace = draw(pages, size.days, np.random.default_rng(7), faster=shard == risen)
    half = size.days / 2
    options = ShardOptions(every=EVERY, count_from=half)
    found: dict[str, Any] = {"shards": n, "pages_of_it": int(count[risen]), "one": one(trace, False, half)}
    parts, budget = parts_of(trace, shard, n), PER_PAGE * len(trace)
    for split in ("plan", "pages"):
        run = simulate_shards(parts, budget, replace(options, split=split))
        found[split] = run.freshness
        if split == "plan":
            place = int(np.searchsorted(np.flatnonzero(count), risen))
            found["share"] = [round(float(x), 5) for x in run.shares[:, place] / budget]
    print({k: v for k, v in found.items() if k != "share"}, flush=True)
    return found


def plot(results: dict[str, Any], size: Size) -> None:
    """Freshness lost, and the share of the shard whose rates rise."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 4))
    for axis, known in zip(axes, (True, False), strict=False):
        for k, name in enumerate(name for name in NAMES if not (known and name == "apart")):
            for place, n in enumerate(size.shards):
                rows = [row for row in results["compare"] if row["known"] == known and row["shards"] == n]
                loss = [row["one"] - row[name]["freshness"] for row in rows]
                axis.bar(
                    place + 0.2 * k,
                    np.mean(loss),
                    0.18,
                    color=f"C{list(NAMES).index(name)}",
                    label=NAMES[name] if not place else None,
                )
                axis.plot([place + 0.2 * k] * len(loss), loss, "k.", ms=4)
        axis.axhline(0, color="k", lw=0.6)
        axis.set_xticks([place + 0.3 for place in range(len(size.shards))], [f"{n} shards" for n in size.shards])
        axis.set_title("known rates, beside one scheduler" if known else "learned rates, beside one engine")
        axis.set_ylabel("freshness lost (points: seeds)")
    axes[1].legend(title="budget divided", fontsize="small")
    share = results["tenfold"]["share"]
    axes[2].plot(EVERY * np.arange(len(share)), 100 * np.array(share))
    axes[2].axvline(size.days / 2, color="k", ls=":", lw=1)
    axes[2].set(xlabel="day", ylabel="% of the budget", title="a shard whose rates rise tenfold", ylim=(0, None))
    figure.tight_layout()
    figure.savefig(HERE / "controller.png", dpi=110, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    parser.add_argument("--expected", action="store_true", help="only what the shares of known rates lose")
    parser.add_argument("--met", action="store_true", help="only how far planned thresholds are apart, fewer pages")
    given = parser.parse_args()
    small = given.smallest
    size = Size(400, 20, 12.0, 4.0, 1, (4,)) if small else Size()
    few = replace(size, pages=min(size.pages, 1000), hosts=min(size.hosts, 50), days=40.0)
    if given.expected or given.met:
        path = HERE / "controller.json"
        kept = json.loads(path.read_text())
        kept |= {"expected": expected(size)} if given.expected else {"met": met(few)}
        path.write_text(json.dumps(kept, indent=1) + "\n")
        return
    results: dict[str, Any] = {"expected": expected(size), "compare": compare(size)}
    results |= {"met": met(few), "frequent": frequent(size), "tenfold": tenfold(size)}
    settings = {
        "pages": size.pages,
        "hosts": size.hosts,
        "days": size.days,
        "not_counted": size.skip,
        "per_page": PER_PAGE,
    }
    if not small:
        text = json.dumps({"settings": settings, **results}, indent=1)
        (HERE / "controller.json").write_text(text + "\n")
        plot(results, size)


if __name__ == "__main__":
    main()
