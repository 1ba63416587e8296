"""Recorded traces through the live crawler, beside the simulator: staleness of both, order by order among equals.

A trace is served as a web in memory, and the crawler of ``recrawl run`` crawls it by a manual clock for 365 days
(``recrawl.demo.replay_trace``). The simulator runs the policy ``learned`` on the same trace with the same budget, a
share of the pages that exist per day. Order k adds the pages that come at the same time in the k-th random permutation.
Where a trace has signals, ``NAME+signals`` runs both with them, ``NAME`` without. What the file of results holds
already is not run again.

    python experiments/live_traces/run.py --data FOLDER --json experiments/live_traces/results.json
    python experiments/live_traces/run.py --data FOLDER --traces ota-contrib --orders 1
    python experiments/live_traces/run.py --json experiments/live_traces/results.json      table of what was run
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from recrawl._files import whole_file
from recrawl.demo import even_budget, replay_trace
from recrawl.errors import ParameterError
from recrawl.simulate import Trace, contender, read_trace, simulate

TRACES = ["ota-contrib", "scraped-mix", "telegram-web", "homebrew-cask", "kubernetes-website", "dotnet-docs"]
SIGNALS = "+signals"
NAMES = [*TRACES, f"dotnet-docs{SIGNALS}"]
BUDGET = 0.05  # of the pages, per day
BOUND = 0.03  # the live crawler is to be within this share of the simulator; with signals no staler by more
Orders = dict[str, dict[str, float]]  # figures by order
Results = dict[str, Orders]  # by name


def run_order(trace: Trace) -> dict[str, float]:
    """One order of one trace, simulated and live."""
    budget = even_budget(BUDGET * trace.n_live / trace.day)
    begun = time.perf_counter()
    simulated = simulate(contender("learned"), trace, budget)
    took = time.perf_counter() - begun
    live = replay_trace(trace, budget)
    figures = {"simulated": simulated.staleness, "live": live.run.staleness, "simulated_requests": simulated.requests}
    figures |= {"requests": live.requests, "changes_found": live.run.changes_found, "wrong": live.wrong}
    figures |= {"not_modified": live.not_modified, "failed": live.failed, "events": live.events}
    return figures | {"simulated_seconds": round(took, 2), "seconds": live.seconds}


def read_results(path: Path | None) -> Results:
    """The results of a file; none if it does not exist."""
    return json.loads(path.read_text())["results"] if path is not None and path.exists() else {}


def keep(path: Path, name: str, order: int, figures: dict[str, float]) -> None:
    """Add one run to the file, which another process may have written to meanwhile."""
    found = read_results(path)
    found.setdefault(name, {})[str(order)] = figures
    with whole_file(path) as partial:
        partial.write_text(json.dumps({"budget": BUDGET, "results": found}, indent=1) + "\n")


def run_trace(name: str, folder: Path, order: int, given: argparse.Namespace) -> None:
    """Run one order of a trace, unless the file of results has it."""
    if str(order) in read_results(given.json).get(name, {}):
        return
    trace = read_trace(folder, days=given.days).shuffled(np.random.default_rng(order))
    if not name.endswith(SIGNALS):
        trace = replace(trace, signals=None)
    figures = run_order(trace)
    if given.json is not None:
        keep(given.json, name, order, figures)
    ratio = figures["live"] / figures["simulated"] - 1.0
    both = f"simulated {figures['simulated']:.5f}, live {figures['live']:.5f} ({ratio:+.2%})"
    print(f"{name}, order {order + 1} of {given.orders}: {both} in {figures['seconds']:.0f} s", flush=True)


def table(found: Results) -> str:
    """Means over orders, and the difference of the means."""
    lines = ["| trace | simulated | live | difference | largest of an order | requests | seconds | orders |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for name in [name for name in NAMES if name in found]:
        rows = list(found[name].values())
        simulated, live, requests, seconds = (
            float(np.mean([row[key] for row in rows])) for key in ("simulated", "live", "requests", "seconds")
        )
        largest = max((row["live"] / row["simulated"] - 1.0 for row in rows), key=abs)
        lines.append(
            f"| {name} | {simulated:.5f} | {live:.5f} | {live / simulated - 1.0:+.2%} | {largest:+.2%} "
            f"| {requests:.0f} | {seconds:.0f} | {len(rows)} |"
        )
    return "\n".join(lines)


def verdict(found: Results) -> list[str]:
    """What is beyond the bounds, one line each."""
    lines = []
    for name, orders in found.items():
        simulated, live = (np.mean([row[key] for row in orders.values()]) for key in ("simulated", "live"))
        if abs(live / simulated - 1.0) > BOUND:
            lines.append(f"{name}: live {live:.5f}, simulated {simulated:.5f}")
        plain = found.get(name.removesuffix(SIGNALS), {})
        both = [order for order in orders if name.endswith(SIGNALS) and order in plain]
        if both:
            told, silent = (float(np.mean([side[order]["live"] for order in both])) for side in (orders, plain))
            print(f"{name}: live {told:.5f} with signals, {silent:.5f} without ({told / silent - 1.0:+.2%})")
            if told > (1.0 + BOUND) * silent:
                lines.append(f"{name}: staler with signals")
    return lines


def main() -> int:
    """Run what is missing and print it; exit code 1: something is beyond its bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the recorded traces; none: run nothing")
    parser.add_argument("--traces", default=",".join(NAMES), help="traces, a comma list; default: all")
    parser.add_argument("--orders", type=int, default=10, help="orders among equals; default: 10")
    parser.add_argument("--days", type=float, default=365.0, help="the last days of each trace; default: 365")
    parser.add_argument("--json", type=Path, help="file of results, to add to")
    given = parser.parse_args()
    names = given.traces.split(",")
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
