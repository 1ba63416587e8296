"""Calibration of the engine: predicted and observed changes, estimated and true staleness.

On recorded traces, four windows: ten bins of the predicted probability per trace and budget, over all crawls; the
engine's staleness ledger, and its belief about its copies at a hundred times in 182 days, beside the simulated
truth. Writes calibration.json, calibration.png, staleness.png and CALIBRATION.md.

    python experiments/parts/calibration.py --data FOLDER
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from ablation import DAYS, TRACES, WINDOWS
from numpy.typing import NDArray

from recrawl.engine import Engine
from recrawl.engine.clocks.folders import folders
from recrawl.simulate.compare.sources import Recorded, live_pages
from recrawl.simulate.run.policies import admit_unknown, learning
from recrawl.simulate.run.run import Contender, simulate
from recrawl.simulate.trace import Trace

HERE = Path(__file__).parent
SHARES = (0.02, 0.05, 0.2)
LOOKS = 100


def run(trace: Trace, share: float, pages: float) -> dict[str, Any]:
    """One engine on one trace: predictions, beliefs and the staleness ledger, outcomes and the truth."""
    held: list[Engine] = []
    make = learning()

    def keep(trace: Trace, budget: float, rng: np.random.Generator) -> Engine:
        held.append(make(trace, budget, rng))
        return held[0]

    stale, weight = 0.0, 0.0
    so_far: list[float] = []

    def look(_: float) -> None:
        nonlocal stale, weight
        engine, ids = held[0], held[0].ids()
        importance = engine.pages(ids).importance
        stale += float((importance * (1.0 - engine.fresh(ids, engine.now))).sum())
        weight += float(importance.sum())
        so_far.append(engine.ledger(engine.now).staleness)

    budget = share * pages / trace.day
    found = simulate(Contender("learned", keep, admit_unknown), trace, budget, bins=LOOKS, progress=look)
    return {
        "ledger": held[0].ledger(trace.end).staleness,
        "believed": stale / weight,
        "true": found.staleness,
        "error": error_of(trace, found.page_staleness),
        "bins": held[0].calibration.reliability.tolist(),
        "so_far": [round(value, 6) for value in so_far],
        "true_by_time": (1.0 - found.window_freshness).round(6).tolist(),
    }


def error_of(trace: Trace, staleness: NDArray[np.float64]) -> float:
    """Standard error of the true staleness if folders are drawn at random: how much of it is random."""
    assert trace.url is not None
    _, folder = np.unique([folders(str(url))[-1] for url in trace.url], return_inverse=True)
    weight = trace.importance * np.maximum(trace.deleted_at - np.maximum(trace.created_at, trace.start), 0.0)
    mean = float(np.average(staleness, weights=weight))
    return float(np.sqrt((np.bincount(folder, weight * (staleness - mean)) ** 2).sum()) / weight.sum())


def within(row: dict[str, Any], what: str = "ledger") -> bool:
    """Whether an estimate is as near to the truth as it was meant to be."""
    return bool(abs(row[what] - row["true"]) <= max(0.002, 0.15 * row["true"]))


def together(results: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """All windows of each trace and budget as one."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for name, row in results.items():
        rows.setdefault(name.rsplit(", ", 1)[0], []).append(row)
    mean = ("ledger", "believed", "true")
    return {
        name: {**{what: float(np.mean([row[what] for row in mine])) for what in mean}, "bins": _bins(mine), "of": mine}
        for name, mine in rows.items()
    }


def _bins(rows: list[dict[str, Any]]) -> NDArray[np.float64]:
    return np.sum([row["bins"] for row in rows], axis=0)


def write(results: dict[str, dict[str, Any]], out: Path) -> None:
    """CALIBRATION.md and its pictures."""
    whole, n = together(results), len(results)
    held = {what: sum(within(row, what) for row in results.values()) for what in ("ledger", "believed")}
    held_whole = {what: sum(within(row, what) for row in whole.values()) for what in ("ledger", "believed")}
    lines = [
        "# Predictions and beliefs of the engine, and the truth",
        "",
        f"{DAYS:.0f} days from each of {', '.join(WINDOWS)}, cold. Made by",
        "`python experiments/parts/calibration.py --data FOLDER`. Aim: the engine's running estimate of its own",
        "staleness (`Engine.ledger`: outcomes of crawls, and beliefs since the last one) within max(0.002, 15%) of the",
        "truth. Beside it the belief about the copies at the time (`Engine.fresh`), before the next crawls, at a",
        "hundred times of each window. Reliability: over the crawls of a bin, predicted → observed share of changes.",
        "",
        f"Over the windows together the ledger is within in {held_whole['ledger']} of {len(whole)} cases and the",
        f"belief in {held_whole['believed']}; of the {n} single windows in {held['ledger']} and {held['believed']}.",
        "",
        "![Predicted and observed shares of changes, per trace](calibration.png)",
        "",
        "![Staleness by the ledger and in truth](staleness.png)",
        "",
        "| trace, budget | ledger | true | within | windows within | believed | predicted → observed, bins of 50 |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in whole.items():
        bins = "; ".join(f"{p / k:.2f} → {c / k:.2f}" for p, k, c in row["bins"] if k >= 50)
        ok, mine = "yes" if within(row) else "**no**", sum(map(within, row["of"]))
        figures = [f"{row['ledger']:.4f}", f"{row['true']:.4f}", ok, f"{mine} of {len(row['of'])}"]
        lines.append("| " + " | ".join([name, *figures, f"{row['believed']:.4f}", bins]) + " |")
    lines += [
        "",
        "Single windows in which the ledger is not within (± is a standard error of the truth, if the folders were",
        "drawn at random):",
        "",
    ]
    for name, row in results.items():
        if not within(row):
            off = row["ledger"] / row["true"] - 1.0
            lines.append(f"- {name}: {row['ledger']:.4f}, true {row['true']:.4f} ± {row['error']:.4f} ({off:+.0%})")
    lines += [
        "",
        "The ledger does not know when within an interval a change came, only that one did: where it is off, changes",
        "came earlier or later than the page's own past and its siblings made probable. Of three ways to compute it",
        "(raw probabilities, calibrated ones, or raw ones up to the last crawl and calibrated ones since) the last was",
        "chosen as the only one within on all 15 cases of 2022-08-01, with an earlier learner; the other windows had",
        "no part in that choice.",
    ]
    (out / "CALIBRATION.md").write_text("\n".join(lines) + "\n")
    draw(whole, out / "calibration.png")
    draw_staleness(results, out / "staleness.png")


def draw_staleness(results: dict[str, dict[str, Any]], path: Path) -> None:
    """One panel per trace: staleness so far by the ledger (solid) and in truth (dashed), the newest window."""
    from matplotlib.figure import Figure

    traces = list(dict.fromkeys(name.split(", ")[0] for name in results))
    figure = Figure(figsize=(3.4 * len(traces), 3.6), dpi=110, layout="constrained")
    for axes, trace in zip(figure.subplots(1, len(traces), squeeze=False)[0], traces, strict=True):
        mine = [(n.split(", "), row) for n, row in results.items() if n.startswith(f"{trace}, ")]
        newest = max(parts[2] for parts, _ in mine)
        for k, (parts, row) in enumerate(item for item in mine if item[0][2] == newest):
            truth = np.cumsum(row["true_by_time"]) / np.arange(1, len(row["true_by_time"]) + 1)
            days = DAYS * np.arange(1, len(truth) + 1) / len(truth)
            axes.plot(days[: len(row["so_far"])], row["so_far"], color=f"C{k}", label=parts[1])
            axes.plot(days, truth, color=f"C{k}", linestyle="--")
        axes.set_yscale("log")
        axes.set_title(f"{trace}, {newest}", fontsize=9)
        axes.set_xlabel("days")
    figure.axes[0].set_ylabel("staleness so far: ledger, truth dashed")
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Software": None})


def draw(results: dict[str, dict[str, Any]], path: Path) -> None:
    """One panel per trace, one line per budget."""
    from matplotlib.figure import Figure

    traces = list(dict.fromkeys(name.split(", ")[0] for name in results))
    figure = Figure(figsize=(3.4 * len(traces), 3.6), dpi=110, layout="constrained")
    for axes, trace in zip(figure.subplots(1, len(traces), squeeze=False)[0], traces, strict=True):
        axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        for name, row in results.items():
            bins = [(p / n, k / n, np.sqrt(max(k / n * (1 - k / n), 0.0) / n)) for p, n, k in row["bins"] if n >= 50]
            if name.startswith(f"{trace}, ") and bins:
                predicted, found, error = zip(*bins, strict=True)
                axes.errorbar(predicted, found, yerr=error, marker="o", markersize=3, label=name.split(", ")[1])
        axes.set_title(trace, fontsize=9)
        axes.set_xlabel("predicted probability of a change")
    figure.axes[0].set_ylabel("observed share")
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Software": None})


def main() -> None:
    """Run every trace and budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the recorded traces")
    parser.add_argument("--out", type=Path, default=HERE)
    given = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    for name in TRACES:
        if not (given.data / name).is_dir():
            print(f"there is no folder {given.data / name}, left out")
            continue
        for share, window in product(SHARES, WINDOWS):
            source = Recorded(given.data / name, DAYS, 0.0, window)
            trace = source.trace(np.random.default_rng(0))
            title = f"{name}, {share:.0%} per day, {window}"
            results[title] = row = run(trace, share, live_pages(source, trace))
            print(title, *(f"{what} {row[what]:.4f}" for what in ("ledger", "believed", "true")), flush=True)
    if results:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "calibration.json").write_text(
            "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in results.items()) + "\n}\n"
        )
        write(results, given.out)


if __name__ == "__main__":
    main()
