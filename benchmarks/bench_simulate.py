"""Simulated crawls per second of the compiled loops, beside the same simulation in plain Python.

Worlds have change rate and importance uniform on [0, 1]; the budget is a fifth of the pages per day. Each compiled loop
is timed from a cold start (all pages come at once, with fresh copies) on a trace that lasts for 200,000 crawls, or for
2,000 or 20,000 where these take long; adding the pages and judging are included, drawing the trace is not. Beside
it, on the same trace, for as many crawls as fit in a few seconds:

- the twin: the largest crawl value over all pages by numpy, slot by slot, which must make the same crawls;
- the protocol: the same policy object driven from Python, one pick and one record for each slot.

    python benchmarks/bench_simulate.py            1e3, 1e4 and 1e5 pages; a cold start of 1e5 takes minutes
    python benchmarks/bench_simulate.py --quick    1e3 pages; results are not written
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.model.value import crawl_value
from recrawl.simulate import Contender, Trace, contender, simulate, world
from recrawl.simulate.rivals.registry import rival
from recrawl.simulate.run import run
from recrawl.simulate.run.runners import PlainRunner, runner_of

RESULTS = Path(__file__).parent / "results"
CRAWLS, PER_PAGE = 200_000, 0.2
LABELS = {
    "no-signals": "scheduler, no signals",
    "signals": "scheduler, noisy signals",
    "learned": "engine, learning",
    "heritrix": "a rival (Heritrix), capped by due date",
    "uniform": "rate policy, uniform",
    "clairvoyant": "clairvoyant",
}
TWINS = ("no-signals", "signals")


def policy(name: str) -> Contender:
    return rival("heritrix", "due", day=1.0) if name == "heritrix" else contender(name)


def draw_trace(name: str, m: int, days: float) -> Trace:
    return world("uniform", m, signals="noisy" if name == "signals" else "none").draw(days, np.random.default_rng(1))


def cut(trace: Trace, days: float) -> Trace:
    """The first days of a trace."""
    page = np.repeat(np.arange(len(trace)), trace.n_changes)
    kept = trace.changed_at < days
    offset = np.searchsorted(page[kept], np.arange(len(trace) + 1))
    signals = trace.signals and type(trace.signals)(*(c[trace.signals.at < days] for c in trace.signals))
    return Trace(0.0, days, offset, trace.changed_at[kept], trace.importance, pages=trace.pages, signals=signals)


def twin(trace: Trace, budget: float, listens: bool) -> Iterator[int]:
    """The pages crawled, slot by slot: the largest value of all."""
    pages, signals = trace.true_pages, trace.signals
    rate, gain = np.asarray(pages.change_rate), np.asarray(pages.importance / pages.change_rate)
    last, heard, k = np.zeros(len(pages)), np.zeros(len(pages)), 0
    for j in range(1, int(trace.end * budget) + 1):
        now = j / budget
        while listens and signals is not None and k < len(signals.at) and signals.at[k] <= now:
            heard[signals.page[k]] += 1
            k += 1
        if listens:
            value: NDArray[np.float64] = crawl_value(pages, now - last, heard)
        else:
            x = rate * (now - last)
            value = gain * (1 - np.exp(-x) * (1 + x))
        best = int(np.argmax(value))
        last[best], heard[best] = now, 0.0
        yield best


def timed_twin(name: str, trace: Trace, budget: float, seconds: float) -> dict[str, float]:
    """Crawls per second of the twin, and the share of pages that the compiled loop crawled as often."""
    made, began = [], time.perf_counter()
    for page in twin(trace, budget, name == "signals"):
        made.append(page)
        if time.perf_counter() - began > seconds:
            break
    speed = len(made) / (time.perf_counter() - began)
    ours = simulate(policy(name), cut(trace, (len(made) + 0.5) / budget), budget).crawls
    same = ours == np.bincount(made, minlength=len(trace))
    return {"twin_per_second": speed, "twin_crawls": len(made), "pages_crawled_alike": float(same.mean())}


def timed_protocol(name: str, trace: Trace, budget: float, crawls: int) -> float:
    short = cut(trace, (crawls + 0.5) / budget)
    run.runner_of = PlainRunner  # type: ignore[assignment]
    try:
        return timed(name, short, budget)
    finally:
        run.runner_of = runner_of


def timed(name: str, trace: Trace, budget: float) -> float:
    began = time.perf_counter()
    crawls = simulate(policy(name), trace, budget).requests
    return crawls / (time.perf_counter() - began)


def measure(name: str, m: int, crawls: int = CRAWLS, seconds: float = 5.0) -> dict[str, Any]:
    """One row: ten times as many crawls, up to ``crawls``, as long as they take no more than ``seconds``."""
    budget = PER_PAGE * m
    whole = draw_trace(name, m, crawls / budget)
    row: dict[str, Any] = {"policy": name, "pages": m}
    for n in (crawls // 100, crawls // 10, crawls):
        trace = cut(whole, (n + 0.5) / budget)
        began = time.perf_counter()
        row |= {"crawls": n, "changes": len(trace.changed_at), "compiled_per_second": timed(name, trace, budget)}
        if time.perf_counter() - began > seconds:
            break
    else:
        row["compiled_per_second"] = max(row["compiled_per_second"], timed(name, trace, budget))
    if name in TWINS:
        row |= timed_twin(name, trace, budget, seconds)
    if name != "clairvoyant":
        row["protocol_per_second"] = timed_protocol(name, trace, budget, min(row["crawls"], 2000))
    return row


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 5.2))
    for k, (name, label) in enumerate(LABELS.items()):
        these = [row for row in rows if row["policy"] == name]
        for key, style, what in (("compiled", "o-", label), ("twin", "x--", f"{label}: numpy twin")):
            speed = [row[f"{key}_per_second"] for row in these if f"{key}_per_second" in row]
            if speed:
                axes.loglog([row["pages"] for row in these], speed, style, color=f"C{k}", label=what)
    axes.set(xlabel="pages", ylabel="simulated crawls per second", title="Compiled loops and their twins")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a thousand pages; results are not written")
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    given = parser.parse_args()
    quick = given.quick
    report: dict[str, Any] = {"cores_of_machine": os.cpu_count(), "cores_used": 1, "load_before": os.getloadavg()[0]}
    report["rows"] = []
    for name in LABELS:
        measure(name, 200, 1000, 0.1)  # compile
        if given.smallest:
            continue
        for m in [10**3] if quick else [10**3, 10**4, 10**5]:
            row = measure(name, m, CRAWLS // 10, 1.0) if quick else measure(name, m)
            report["rows"].append(row)
            print(json.dumps(row), flush=True)
    if not (quick or given.smallest):
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "simulate.json").write_text(json.dumps(report, indent=1) + "\n")
        draw(report["rows"], RESULTS / "simulate.png")


if __name__ == "__main__":
    main()
