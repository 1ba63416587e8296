"""Staleness of a policy on recorded traces, cold, over several orders among equal pages; compares two such files.

A run counts 365 days, and nothing is known when they begin. Budgets are shares of the pages that exist, per day. Pages
of equal value are taken in the order in which they were added, and this order alone moves a single run by up to 10%.
Order k adds the pages that come at the same time in the k-th random permutation (``Trace.shuffled``, seed k): the same
for every policy, so that differences are paired by order. Of a rival, every order under a cap is run; the one with the
least mean staleness counts. What the file of results holds already is not run again.

    python experiments/learner/traces.py --data FOLDER --json before.json
    python experiments/learner/traces.py --data FOLDER --policy rivals --orders 1 --json before.json
    python experiments/learner/traces.py --data FOLDER --traces ota-contrib --budgets 0.05 --policy learned,known
    python experiments/learner/traces.py --compare before.json after.json      exit code 1: a cell is worse
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recrawl._system.files import whole_file
from recrawl.errors import ParameterError
from recrawl.simulate import Trace, contender, read_trace, simulate
from recrawl.simulate.compare.comparison import is_rival
from recrawl.simulate.rivals.registry import caps, rival, rival_names

WINDOWS = {  # name: folder and first day (None: the last 365 days); cheap ones first
    "ota-contrib": ("ota-contrib", None),
    "scraped-mix": ("scraped-mix", None),
    "homebrew-cask-2020": ("homebrew-cask", "2020-04-01"),
    "homebrew-cask": ("homebrew-cask", None),
    "kubernetes-website": ("kubernetes-website", None),
    "telegram-web": ("telegram-web", None),
    "dotnet-docs": ("dotnet-docs", None),
}
BUDGETS = ["0.02", "0.05", "0.2"]
WORSE_SHARE, WORSE_LEAST = 0.05, 0.0003  # a cell is worse if it rose by more than the larger of share and least
Cells = dict[str, dict[str, dict[str, float]]]  # "trace budget policy": staleness and seconds by order


class Cell(NamedTuple):
    """One policy on one window with one budget."""

    trace: str
    budget: str
    policy: str

    @property
    def key(self) -> str:
        """Its name in the file of results."""
        return " ".join(self)


# --- runs ------------------------------------------------------------------------------------------------------------


def staleness(trace: Trace, budget: float, policy: str) -> float:
    """Staleness of one run; ``budget`` is a share of the pages per day."""
    chosen = rival(policy, day=trace.day) if is_rival(policy) else contender(policy)
    return simulate(chosen, trace, budget * trace.n_live / trace.day).staleness


def read_cells(path: Path | None) -> Cells:
    """The results of a file; none if it does not exist."""
    return json.loads(path.read_text())["cells"] if path is not None and path.exists() else {}


def note(cells: Cells, cell: Cell, order: int, figures: dict[str, float]) -> None:
    """Add one run to the results."""
    for name, value in figures.items():
        cells.setdefault(cell.key, {}).setdefault(name, {})[str(order)] = value


def keep(path: Path, cell: Cell, order: int, figures: dict[str, float]) -> None:
    """Add one run to the file, which another process may have written to meanwhile."""
    cells = read_cells(path)
    note(cells, cell, order, figures)
    with whole_file(path) as partial:
        partial.write_text(json.dumps({"cells": cells}, indent=1) + "\n")


def run_window(name: str, folder: Path, given: argparse.Namespace) -> Cells:
    """Run what is missing of a window, order by order, and keep it; the results of this window."""
    base = read_trace(folder, start=WINDOWS[name][1])
    found = read_cells(given.json)
    for order in range(given.orders):
        trace = base.shuffled(np.random.default_rng(order))
        for budget in given.budgets.split(","):
            for policy in ways(given.policy):
                cell = Cell(name, budget, policy)
                if str(order) in found.get(cell.key, {}).get("staleness", {}):
                    continue
                begun = time.perf_counter()
                value = staleness(trace, float(budget), policy)
                took = round(time.perf_counter() - begun, 2)
                figures = {"staleness": value, "seconds": took}
                note(found, cell, order, figures)
                if given.json is not None:
                    keep(given.json, cell, order, figures)
                print(f"{cell.key}, order {order + 1} of {given.orders}: {value:.5f} in {took:.1f} s", flush=True)
    return {key: cell for key, cell in found.items() if key.split(" ")[0] == name}


def ways(policies: str) -> list[str]:
    """Policies to run: of each rival all caps; ``rivals`` is all rivals."""
    names = [each for name in policies.split(",") for each in (rival_names() if name == "rivals" else [name])]
    return [way for name in names for way in (caps(name) if is_rival(name) else [name])]


# --- tables ----------------------------------------------------------------------------------------------------------


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Mean and its standard error (NaN for one value)."""
    column = np.array(values)
    return float(column.mean()), float(column.std(ddof=1) / np.sqrt(len(column))) if len(column) > 1 else float("nan")


def summary(cells: Cells) -> list[tuple[Cell, float, float, int]]:
    """Mean, standard error and orders of every cell; of all rivals' caps, the best of a cell."""
    rows, best = [], {}
    for key, found in cells.items():
        cell = Cell(*key.split(" "))
        row = (cell, *mean_and_error(list(found["staleness"].values())), len(found["staleness"]))
        if not is_rival(cell.policy):
            rows.append(row)
        elif row[1] < best.get(cell[:2], (None, np.inf))[1]:
            best[cell[:2]] = row
    names, budgets = list(WINDOWS), sorted({row[0].budget for row in [*rows, *best.values()]}, key=float)
    return sorted([*rows, *best.values()], key=lambda row: (names.index(row[0].trace), budgets.index(row[0].budget)))


def table(cells: Cells) -> str:
    """All cells of a file."""
    lines = ["| trace | budget | policy | staleness | standard error | orders |", "|---|---|---|---|---|---|"]
    for cell, mean, error, orders in summary(cells):
        label = f"best rival: {cell.policy}" if is_rival(cell.policy) else cell.policy
        lines.append(f"| {cell.trace} | {cell.budget} | {label} | {mean:.5f} | {error:.5f} | {orders} |")
    return "\n".join(lines)


def compared(before: Cells, after: Cells) -> tuple[str, int]:
    """Differences of the cells that both files hold, paired by order, and how many cells are worse."""
    lines = ["| trace | budget | policy | before | after | difference | error | orders | |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    worse = 0
    for cell, *_ in summary({key: cell for key, cell in after.items() if key in before}):
        old, new = before[cell.key]["staleness"], after[cell.key]["staleness"]
        both = [order for order in old if order in new]
        if not both:
            continue
        was, now = (float(np.mean([side[order] for order in both])) for side in (old, new))
        difference, error = mean_and_error([new[order] - old[order] for order in both])
        flag = "WORSE" if difference > max(WORSE_SHARE * was, WORSE_LEAST) else ""
        worse += bool(flag)
        lines.append(
            f"| {' | '.join(cell)} | {was:.5f} | {now:.5f} | {difference:+.5f} ({difference / was:+.1%}) "
            f"| {error:.5f} | {len(both)} | {flag} |"
        )
    return "\n".join(lines), worse


def rivals_above(cells: Cells, other: Cells, policy: str = "learned") -> list[str]:
    """Cells in which the policy is not below the best rival, taken from either file."""
    least = {row[0][:2]: row for row in summary(other | cells) if is_rival(row[0].policy)}
    return [
        f"{cell.trace} {cell.budget}: {policy} {mean:.5f}, {least[cell[:2]][0].policy} {least[cell[:2]][1]:.5f}"
        for cell, mean, *_ in summary(cells)
        if cell.policy == policy and cell[:2] in least and mean >= least[cell[:2]][1]
    ]


def main() -> int:
    """Run what is missing and print it, or compare two files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the recorded traces")
    parser.add_argument("--traces", default=",".join(WINDOWS), help="windows, a comma list; default: all")
    parser.add_argument("--budgets", default=",".join(BUDGETS), help="shares of the pages per day, a comma list")
    parser.add_argument("--orders", type=int, default=10, help="orders among equals; default: 10")
    parser.add_argument("--policy", default="learned", help="policies, a comma list; rivals: all of them")
    parser.add_argument("--json", type=Path, help="file of results, to add to")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"), help="no runs: compare two files")
    given = parser.parse_args()
    if given.compare:
        before, after = map(read_cells, given.compare)
        text, worse = compared(before, after)
        print(text, *(f"not below the best rival: {line}" for line in rivals_above(after, before)), sep="\n")
        print(f"{worse} cells worse by more than max({WORSE_SHARE:.0%}, {WORSE_LEAST})")
        return int(worse > 0)
    found: Cells = {}
    for name in given.traces.split(","):
        if name not in WINDOWS:
            parser.error(f"trace {name!r} is not one of {', '.join(WINDOWS)}")
        folder = (given.data or Path()) / WINDOWS[name][0]
        if given.data is None or not folder.is_dir():
            print(f"{name}: skipped, there is no folder {folder}" if given.data else f"{name}: skipped, no --data")
            continue
        try:
            found |= run_window(name, folder, given)
        except ParameterError as problem:
            print(f"{name}: {problem}, skipped")
    if found:
        print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
