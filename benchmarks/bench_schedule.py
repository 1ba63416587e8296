"""Decisions per second of the scheduler against the number of pages, beside what one would use instead.

A decision is a pick and a record. Pages have change rates and importances drawn from U(0, 1), the budget is a tenth of
the pages per time unit, and with signals each decision comes with one for a page drawn at random. Copies start as they
are in the long run: at an age within the page's interval, and with the signals heard since (`signal_start.py`). Each
case warms up before it is timed. Rivals run the same loop: a full numpy argmax, a `heapq` by due date (what
interval-based crawlers do: no optimum, a bound for speed), and a brute-force compiled argmax.

    python benchmarks/bench_schedule.py            all sizes up to 5e7 (about 8 GB of memory, several minutes)
    python benchmarks/bench_schedule.py --quick    up to 1e6
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from signal_start import long_run, threshold

from recrawl import Pages, Scheduler, solve
from recrawl._compile.jit import jit
from recrawl.model.kernels.fresh import fresh_value

RESULTS = Path(__file__).parent / "results"
PAPER = "the fleet of Busa-Fekete et al. 2025: 1e9 pages, 1e4 crawls/s, 1e4 hosts"


def population(m: int, signals: bool, rng: np.random.Generator) -> Pages:
    change_rate, importance = rng.uniform(0.01, 1, m), rng.uniform(0, 1, m)
    if not signals:
        return Pages(change_rate, importance)
    return Pages(change_rate, importance, rng.beta(0.25, 0.25, m), rng.uniform(0.1, 0.6, m))


def steady_ages(pages: Pages, budget: float, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Ages of the copies in the long run: anywhere within the page's interval in the optimum for the budget."""
    rate = solve(Pages(pages.change_rate, pages.importance), budget).crawl_rate
    interval = np.divide(1.0, rate, out=np.full(len(rate), 100.0), where=rate > 0)
    return rng.uniform(0, 1, len(rate)) * interval


class Run:
    """A scheduler at work: time moves on by n / budget between picks."""

    def __init__(self, m: int, signals: bool, rng: np.random.Generator) -> None:
        self.m, self.signals, self.rng = m, signals, rng
        self.budget = m / 10
        pages = population(m, signals, rng)
        if signals:
            self._start_with_signals(pages)
        else:
            self.scheduler = Scheduler(budget=self.budget, lease=1.0)
            self.scheduler.add(pages, 0.0, fetched_at=-steady_ages(pages, self.budget, rng))
        self.now = 0.0
        self.seconds_first = self.rounds(1, 1000)

    def _start_with_signals(self, pages: Pages) -> None:
        """Add the pages in their long-run state, then the signals since their fetches, oldest first."""
        per_page = self.budget / self.m
        level = threshold(pages, per_page, per_page)
        age, heard = long_run(pages, level, per_page, self.rng)
        turn = np.floor(age / 1.001).astype(np.int64)  # times a little more than a lease apart
        self.scheduler = Scheduler(budget=self.budget, lease=1.0, start=-1.001 * float(turn.max() + 1))
        self.scheduler.add(pages, -1.001 * float(turn.max() + 1), fetched_at=-age)
        for k in range(int(turn.max()), -1, -1):
            ids = np.flatnonzero((turn == k) & (heard > 0))
            self.scheduler.signal(np.repeat(ids, heard[ids]), -1.001 * k)

    def rounds(self, calls: int, n: int) -> float:
        """Seconds for that many picks of n pages, each recorded; with signals, one of them for every decision."""
        step = n / self.budget
        batches = [self.rng.integers(0, self.m, n) for _ in range(calls)] if self.signals else []
        began = time.perf_counter()
        for call in range(calls):
            self.now += step
            if self.signals:
                self.scheduler.signal(batches[call], self.now)
            self.scheduler.record(self.scheduler.pick(self.now, n), self.now)
        return time.perf_counter() - began

    def timed(self, n: int, decisions: int, warm_up: int) -> dict[str, float]:
        """Best of three timed stretches after a warm-up."""
        self.rounds(max(warm_up // n, 1), n)
        best, evaluated = np.inf, 0.0
        for _ in range(3):
            before = self.scheduler.stats
            seconds = self.rounds(max(decisions // n, 1), n)
            after = self.scheduler.stats
            made = after["decisions"] - before["decisions"]
            if seconds / made < best:
                best, evaluated = seconds / made, (after["evaluated"] - before["evaluated"]) / made
        return {"decisions_per_second": 1 / best, "values_per_decision": evaluated}


def measure(m: int, signals: bool, rng: np.random.Generator) -> dict[str, Any]:
    run = Run(m, signals, rng)
    batch = run.timed(1000, 300_000, 1_000_000)
    row: dict[str, Any] = {"pages": m, "signals": signals, "n_1000": batch}
    if not signals:
        row["n_1"] = run.timed(1, 30_000, 30_000)
    row["bytes_per_page"] = run.scheduler.nbytes / m
    row["seconds_first_pick"] = run.seconds_first
    before, run.budget = run.budget, run.budget * 1.5
    row["seconds_budget_up_50"] = run.rounds(200, 1000) - 200_000 / batch["decisions_per_second"]
    run.budget = before
    ids = rng.choice(m, m // 100, replace=False)
    began = time.perf_counter()
    run.scheduler.update(ids, change_rate=rng.uniform(0.01, 1, len(ids)))
    row["seconds_update_1_percent"] = time.perf_counter() - began
    row["scans"] = run.scheduler.stats["rebuilds"]
    return row


# --- rivals ----------------------------------------------------------------------------------------------------------


def numpy_argmax(m: int, rng: np.random.Generator) -> float:
    pages = population(m, False, rng)
    last, now = -rng.uniform(0, 20, m), 0.0
    began, decisions = time.perf_counter(), 0
    while time.perf_counter() - began < 3.0:
        now += 10 / m
        x = pages.change_rate * (now - last)
        best = int(np.argmax(pages.importance / pages.change_rate * (1 - np.exp(-x) * (1 + x))))
        last[best] = now
        decisions += 1
    return decisions / (time.perf_counter() - began)


@jit
def _brute(change_rate: Any, importance: Any, last: Any, now: float) -> int:
    best, value = 0, -1.0
    for i in range(last.size):
        v = importance[i] * fresh_value(change_rate[i] * (now - last[i])) / change_rate[i]
        if v > value:
            best, value = i, v
    return best


def brute_force(m: int, rng: np.random.Generator) -> float:
    pages = population(m, False, rng)
    rates, weights = np.array(pages.change_rate), np.array(pages.importance)
    last, now = -rng.uniform(0, 20, m), 0.0
    _brute(rates[:10], weights[:10], last[:10], 0.0)
    began, decisions = time.perf_counter(), 0
    while time.perf_counter() - began < 3.0:
        now += 10 / m
        last[_brute(rates, weights, last, now)] = now
        decisions += 1
    return decisions / (time.perf_counter() - began)


def heap_by_due_date(m: int, rng: np.random.Generator) -> float:
    interval = 1 / rng.uniform(0.01, 1, m)
    due = list(zip((rng.uniform(0, 1, m) * interval).tolist(), range(m), strict=True))
    heapq.heapify(due)
    steps = interval.tolist()
    began = time.perf_counter()
    for _ in range(200_000):
        when, page = heapq.heappop(due)
        heapq.heappush(due, (when + steps[page], page))
    return 200_000 / (time.perf_counter() - began)


def rivals(m: int, rng: np.random.Generator) -> dict[str, float]:
    found = {"numpy_argmax": numpy_argmax(m, rng), "brute_force_compiled": brute_force(m, rng)}
    if m <= 10**7:
        found["heapq_by_due_date"] = heap_by_due_date(m, rng)
    return found


# --- output ----------------------------------------------------------------------------------------------------------


def draw(report: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5.2))
    plain = [row for row in report["scheduler"] if not row["signals"]]
    noisy = [row for row in report["scheduler"] if row["signals"]]
    for rows, key, label, style in (
        (plain, "n_1000", "recrawl, no signals, 1000 per pick", "o-"),
        (noisy, "n_1000", "recrawl, a noisy signal per decision, 1000 per pick", "s-"),
        (plain, "n_1", "recrawl, no signals, one per pick", "^-"),
    ):
        cost = [1e6 / row[key]["decisions_per_second"] for row in rows]
        axes.loglog([row["pages"] for row in rows], cost, style, label=label)
    for name, style in (("numpy_argmax", "x--"), ("brute_force_compiled", "+--"), ("heapq_by_due_date", "d:")):
        rows = [row for row in report["rivals"] if name in row]
        axes.loglog([row["pages"] for row in rows], [1e6 / row[name] for row in rows], style, label=name)
    axes.set(xlabel="pages", ylabel="microseconds per decision", title="Cost of a decision against the number of pages")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to a million pages; results are not written")
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    given = parser.parse_args()
    quick = given.quick
    rng = np.random.default_rng(1)
    if given.smallest:
        print(Run(1000, False, rng).timed(100, 1000, 2000))
        return
    measure(2000, False, rng), measure(2000, True, rng)  # compile
    sizes = [10**5, 10**6] if quick else [10**5, 10**6, 10**7, 5 * 10**7]
    report: dict[str, Any] = {"cores_of_machine": os.cpu_count(), "cores_used": 1, "reference": PAPER}
    report["load_before"] = os.getloadavg()[0]
    report["scheduler"], report["rivals"] = [], []
    for m in sizes:
        for signals in (False, True):
            report["scheduler"].append(measure(m, signals, rng))
            print(json.dumps(report["scheduler"][-1]), flush=True)
        report["rivals"].append({"pages": m, **rivals(m, rng)})
        print(json.dumps(report["rivals"][-1]), flush=True)
    if not quick:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "schedule.json").write_text(json.dumps(report, indent=1) + "\n")
        draw(report, RESULTS / "schedule.png")


if __name__ == "__main__":
    main()
