"""Recorded traces through the live crawler, beside the simulator: staleness of both, order by order among equals.

A trace is served as a web in memory, and the crawler of ``recrawl run`` crawls it by a manual clock for 365 days
(``recrawl.demo.replay_trace``). The simulator runs the policy ``learned`` on the same trace with the same budget, a
share of the pages that exist per day: by its compiled loop, and by the engine's protocol with the host rules and pieces
of a crawl (`recrawl.demo.replay.protocol`), which the live crawler equals to the last bit. Order k
adds the pages that come at the same time in the k-th random permutation. Where a trace has signals, ``NAME+signals``
runs all with them, ``NAME`` without. What the file of results holds already is not run again.

    python experiments/live_traces/run.py --data FOLDER --json experiments/live_traces/results.json
    python experiments/live_traces/run.py --data FOLDER --traces ota-contrib --orders 1 --live 1
    python experiments/live_traces/run.py --json experiments/live_traces/results.json      table of what was run
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from recrawl._system.files import whole_file
from recrawl.demo import ReplayOptions, even_budget, replay_trace
from recrawl.demo.replay.protocol import by_protocol
from recrawl.errors import ParameterError
from recrawl.simulate import Trace, contender, read_trace, simulate

TRACES = ["ota-contrib", "scraped-mix", "telegram-web", "homebrew-cask", "kubernetes-website", "dotnet-docs"]
SIGNALS = "+signals"
NAMES = [*TRACES, f"dotnet-docs{SIGNALS}"]
BUDGET = 0.05  # of the pages, per day
LIVE: dict[str, Literal["engine", "inbox", "polls"]] = {"live": "engine", "polls": "polls", "inbox": "inbox"}
WAYS = ("simulated", "protocol", *LIVE)  # names of staleness in results
BOUND = 0.03  # the live crawler is to be within this share of the simulator; with signals no staler by more
Orders = dict[str, dict[str, float]]  # figures by order
Results = dict[str, Orders]  # by name


def run_simulated(trace: Trace, budget: float) -> dict[str, float]:
    """The simulator by both its ways."""
    begun = time.perf_counter()
    compiled = simulate(contender("learned"), trace, budget)
    took = time.perf_counter() - begun
    protocol = simulate(by_protocol(), trace, budget)
    figures = {"simulated": compiled.staleness, "protocol": protocol.staleness}
    return figures | {"simulated_requests": compiled.requests, "simulated_seconds": round(took, 2)}


def run_live(trace: Trace, budget: float, way: str) -> dict[str, float]:
    """The live crawler. Signals reach the engine as in the simulator (``live``), by the inbox or by polled sitemaps."""
    live = replay_trace(trace, budget, ReplayOptions(signals=LIVE[way]))
    figures = {way: live.run.staleness, "requests": live.requests, "changes_found": live.run.changes_found}
    figures |= {"wrong": live.wrong, "not_modified": live.not_modified, "failed": live.failed, "events": live.events}
    figures |= {"seconds": live.seconds}
    return figures if way == "live" else {key if key == way else f"{way}_{key}": figures[key] for key in figures}


def read_results(path: Path | None) -> Results:
    """The results of a file; none if it does not exist."""
    return json.loads(path.read_text())["results"] if path is not None and path.exists() else {}


def keep(path: Path, name: str, order: int, figures: dict[str, float]) -> None:
    """Add figures to the file, which another process may have written to meanwhile."""
    found = read_results(path)
    found.setdefault(name, {}).setdefault(str(order), {}).update(figures)
    with whole_file(path) as partial:
        partial.write_text(json.dumps({"budget": BUDGET, "results": found}, indent=1) + "\n")


def run_trace(name: str, folder: Path, order: int, given: argparse.Namespace) -> None:
    """Run what the file of results does not have of one order of a trace."""
    held = read_results(given.json).get(name, {}).get(str(order), {})
    ways: dict[str, Callable[[Trace, float], dict[str, float]]] = {"protocol": run_simulated}
    if order < given.live:
        names = LIVE if name.endswith(SIGNALS) else ["live"]
        ways |= {way: partial(run_live, way=way) for way in names}
    ways = {way: run for way, run in ways.items() if way not in held and way in given.ways.split(",")}
    if not ways:
        return
    trace = read_trace(folder, days=given.days).shuffled(np.random.default_rng(order))
    if not name.endswith(SIGNALS):
        trace = replace(trace, signals=None)
    budget = even_budget(BUDGET * trace.n_live / trace.day)
    for label, run in ways.items():
        begun = time.perf_counter()
        figures = run(trace, budget)
        if given.json is not None:
            keep(given.json, name, order, figures)
        texts = [f"{key} {figures[key]:.5f}" for key in WAYS if key in figures]
        print(f"{name}, order {order}, {label}: {', '.join(texts)} in {time.perf_counter() - begun:.0f} s", flush=True)


def mean_of(rows: list[dict[str, float]], way: str) -> float:
    """Mean staleness of a way."""
    return float(np.mean([row[way] for row in rows]))


def compared(orders: Orders, way: str) -> str:
    """Mean staleness of a way, how far it is from the simulator's, and over how many orders."""
    rows = [row for row in orders.values() if way in row and "simulated" in row]
    if not rows:
        return "|"
    mean, reference = mean_of(rows, way), mean_of(rows, "simulated")
    return f"| {mean:.5f} ({mean / reference - 1.0:+.2%}, {len(rows)})"


def table(found: Results) -> str:
    """Means over orders; in brackets the difference from the simulator over the same orders, and their number."""
    lines = ["| trace | simulator | by protocol | live | as by protocol | requests | seconds |"]
    lines.append("|---|---|---|---|---|---|---|")
    for name in [name for name in NAMES if name in found]:
        rows = [row for row in found[name].values() if "simulated" in row]
        ran = [row for row in rows if "live" in row]
        both = [row for row in ran if "protocol" in row]
        same = sum(row["live"] == row["protocol"] for row in both)
        cells = f"| {name} | {mean_of(rows, 'simulated'):.5f} ({len(rows)}) {compared(found[name], 'protocol')} "
        cells += f"{compared(found[name], 'live')} | {same} of {len(both)} "
        cells += f"| {mean_of(ran, 'requests'):.0f} | {mean_of(ran, 'seconds'):.0f} |" if ran else "| | |"
        lines.append(cells)
    return "\n".join(lines)


def verdict(found: Results) -> list[str]:
    """What is beyond the bounds, one line each; prints what signals do."""
    lines = []
    for name, orders in found.items():
        for way in ("protocol", "live"):
            rows = [row for row in orders.values() if way in row and "simulated" in row]
            if rows and abs(mean_of(rows, way) / mean_of(rows, "simulated") - 1.0) > BOUND:
                lines.append(f"{name}: {way} {mean_of(rows, way):.5f}, simulated {mean_of(rows, 'simulated'):.5f}")
        plain = found.get(name.removesuffix(SIGNALS), {}) if name.endswith(SIGNALS) else {}
        for way in WAYS:
            silent = "live" if way in ("inbox", "polls") else way
            both = [order for order in orders if way in orders[order] and silent in plain.get(order, {})]
            if both:
                heard, quiet = mean_of([orders[k] for k in both], way), mean_of([plain[k] for k in both], silent)
                share = heard / quiet - 1.0
                print(f"{name}, {way}, {len(both)} orders: {heard:.5f}, without signals {quiet:.5f} ({share:+.2%})")
                lines += [f"{name}: {way} staler with signals"] if share > BOUND else []
    return lines


def main() -> int:
    """Run what is missing and print it; exit code 1: something is beyond its bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the recorded traces; none: run nothing")
    parser.add_argument("--traces", default=",".join(NAMES), help="traces, a comma list; default: all")
    parser.add_argument("--orders", type=int, default=10, help="orders among equals that are simulated; default: 10")
    parser.add_argument("--live", type=int, default=10, help="the first orders that are crawled live; default: 10")
    parser.add_argument("--ways", default=",".join(WAYS[1:]), help="what is run, a comma list; default: all")
    parser.add_argument("--days", type=float, default=365.0, help="the last days of each trace; default: 365")
    parser.add_argument("--json", type=Path, help="file of results, to add to")
    given = parser.parse_args()
    names = given.traces.split(",")
    if unknown := set(given.ways.split(",")) - set(WAYS[1:]):
        parser.error(f"{min(unknown)!r} is not one of {', '.join(WAYS[1:])}")
    for name in names:
        if name not in NAMES:
            parser.error(f"trace {name!r} is not one of {', '.join(NAMES)}")
    if given.data is None:
        print("no --data: nothing is run")
    for order in range(given.orders if given.data is not None else 0):
        for name in names:
            folder = given.data / name.removesuffix(SIGNALS)
            try:
                if folder.is_dir():
                    run_trace(name, folder, order, given)
                elif order == 0:
                    print(f"{name}: skipped, there is no folder {folder}")
            except ParameterError as problem:
                print(f"{name}: {problem}, skipped")
    found = {name: orders for name, orders in read_results(given.json).items() if name in names}
    if found:
        print(table(found))
    beyond = verdict(found)
    print(*beyond, sep="\n", end="\n" if beyond else "")
    return int(bool(beyond))


if __name__ == "__main__":
    sys.exit(main())
