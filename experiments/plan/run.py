"""What `recrawl plan` predicts from a year's log, beside what then happens; writes results.json, results.png, table.md.

For each recorded trace, a crawler that crawls every page at one interval (at a budget of 5% of the pages a day) makes
a log of one year. From that log alone `recrawl plan` says how fresh its copies were and what half, the same and double
the budget would reach at best. Then the next 220 days are simulated, the last 180 of which count, on the pages that
were in the log and still existed: crawled alike as before; by the plan's own rates; and by the engine, which starts
from what the log taught (`recrawl import`) and goes on learning. Without the folder of traces nothing is run.

    python experiments/plan/run.py --data FOLDER
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.cli.shared.logs.crawl_log import CrawlLog, read_crawl_log
from recrawl.cli.views.plan_report import Asked, history_of, prospects_of
from recrawl.estimate import estimate_change_rate, fit_group_priors
from recrawl.model.pages import Pages
from recrawl.simulate.run.policies import PlannedPolicy, contender, learning
from recrawl.simulate.run.run import Contender, simulate
from recrawl.simulate.trace import Trace
from recrawl.simulate.traces.recorded import DAY, read_trace
from recrawl.solver.solving import solve

HERE = Path(__file__).parent
TRACES = ("ota-contrib", "scraped-mix", "kubernetes-website", "dotnet-docs", "homebrew-cask")
RATE, YEAR, AFTER, SETTLE = 0.05, 365.0, 220.0, 40.0  # crawls per page and day; days; days that do not count yet
FACTORS = (0.5, 1.0, 2.0)
Row = dict[str, Any]


def write_log(trace: Trace, path: Path) -> float:
    """Crawl every page at one interval from its own phase; returns the true freshness after the first crawl."""
    interval, rng = DAY / RATE, np.random.default_rng(0)
    fresh = total = 0.0
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["url", "time", "changed", "importance", "status"])
        for i in range(len(trace)):
            changes = trace.changed_at[trace.offset[i] : trace.offset[i + 1]]
            begin, end, weight = float(trace.created_at[i]), float(trace.deleted_at[i]), float(trace.importance[i])
            crawls = np.arange(begin + interval * rng.random(), end, interval)
            edges = np.append(crawls, end)
            k = np.searchsorted(changes, edges, side="right")
            for j, at in enumerate(crawls.tolist()):
                out.writerow([trace.url[i], at, int(j > 0 and k[j] > k[j - 1]), weight, 200])  # type: ignore[index]
                stale_from = changes[k[j]] if k[j] < len(changes) else np.inf
                fresh += weight * (min(stale_from, edges[j + 1]) - at)
                total += weight * (edges[j + 1] - at)
            if len(crawls) and crawls[-1] + interval < trace.end:
                out.writerow([trace.url[i], crawls[-1] + interval, 0, weight, 404])  # type: ignore[index]
    return fresh / total


def known_pages(trace: Trace, log: CrawlLog) -> tuple[Trace, np.ndarray]:
    """The part of a trace whose pages the log has and that are there from the start; their rows in the log."""
    place = {url: k for k, url in enumerate(log.urls)}
    rows = [i for i, url in enumerate(trace.url.tolist()) if url in place and trace.created_at[i] <= trace.start]  # type: ignore[union-attr]
    mine = [trace.changed_at[trace.offset[i] : trace.offset[i + 1]] for i in rows]
    cut = Trace(
        trace.start,
        trace.end,
        offset=np.concatenate([[0], np.cumsum([len(one) for one in mine])]),
        changed_at=np.concatenate(mine),
        importance=trace.importance[rows],
        created_at=trace.created_at[rows],
        deleted_at=trace.deleted_at[rows],
        url=trace.url[rows],  # type: ignore[index]
        name=trace.name,
        day=DAY,
    )
    return cut, np.array([place[url] for url in cut.url.tolist()])  # type: ignore[union-attr]


def warm(log: CrawlLog, rows: np.ndarray) -> Contender:
    """The engine after it has lived through the log, as `recrawl import` has it; all copies are fresh at the start."""
    seen = log.observations

    def admit(policy: Any, trace: Trace, which: Any, now: float) -> Any:
        mine = rows[which]
        count, first = np.diff(seen.offset)[mine], seen.offset[:-1][mine]
        begin = np.full(len(mine), now)
        some = np.flatnonzero(count > 0)
        begin[some] = log.ended_at[first[some]] - seen.interval[first[some]]
        ids = policy.add(trace.url[which].tolist(), now, fetched_at=begin, importance=trace.importance[which])  # type: ignore[index]
        for k in range(int(count.max(initial=0))):
            some = np.flatnonzero(count > k)
            at = first[some] + k
            policy.record(ids[some], now, changed=seen.changed[at], as_of=log.ended_at[at])
        policy.record(ids, now)
        return ids

    return Contender("engine", learning(), admit)


def by_plan(pages: Pages) -> Contender:
    """The plan's rates, run by deadline."""

    def make(trace: Trace, budget: float, rng: Any) -> PlannedPolicy:
        return PlannedPolicy(solve(pages, budget), budget, "deadline", trace.start, rng)

    return Contender("plan", make)


def _freshness(who: Contender, trace: Trace, budget: float) -> float:
    """Freshness once the copies, all fresh at the start, have settled."""
    return simulate(who, trace, budget, count_from=trace.start + SETTLE * DAY).freshness


def run(folder: Path) -> Row:
    """One trace: what is predicted, and what then happens."""
    whole = read_trace(folder, days=YEAR + AFTER)
    start = whole.start
    past = read_trace(folder, start=start, days=YEAR)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "log.csv"
        truly = write_log(past, path)
        log = read_crawl_log(path)
    found = prospects_of(log, Asked(group="folder"), folder.name)
    seen = log.observations
    rates = estimate_change_rate(seen, prior=fit_group_priors(seen, log.folders).of(log.folders))
    after, rows = known_pages(read_trace(folder, start=start + YEAR * DAY, days=AFTER), log)
    gamma = rates.gamma()
    pages = Pages(gamma.mean[rows], after.importance, evidence=gamma.shape[rows])
    # the plan is for all pages of the log; those that are gone take their part of the budget with them
    scale = history_of(log, folder.name).budget * len(rows) / found["pages"]
    measured = {}
    for factor in FACTORS:
        for who in (contender("uniform"), by_plan(pages), warm(log, rows)):
            measured[f"{who.name} {factor:g}"] = _freshness(who, after, scale * factor)
    return {
        "trace": folder.name,
        "pages": found["pages"],
        "pages_gone": found["pages_gone"],
        "pages_after": len(rows),
        "so_far": {"measured": truly, **found["now"]},
        "predicted": {f"{row['times_own']:.3g}": row for row in found["budgets"]},
        "after": measured,
        "poisson": found["poisson"],
    }


def draw(results: list[Row], path: Path) -> None:
    """Predicted and measured freshness by budget, one panel per trace."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.3 * len(results), 4.0), dpi=110, layout="constrained")
    for axes, row in zip(figure.subplots(1, len(results), squeeze=False)[0], results, strict=True):
        said = [row["predicted"][f"{factor:.3g}"] for factor in FACTORS]
        error = [[p["freshness"] - p["low"] for p in said], [p["high"] - p["freshness"] for p in said]]
        axes.errorbar(
            FACTORS, [p["freshness"] for p in said], error, fmt="o-", color="crimson", label="predicted, best"
        )
        axes.plot(FACTORS, [p["alike"] for p in said], "o--", color="salmon", label="predicted, all alike")
        for name, style in (("engine", "ks-"), ("plan", "b^-"), ("uniform", "kx--")):
            axes.plot(FACTORS, [row["after"][f"{name} {factor:g}"] for factor in FACTORS], style, ms=4, label=name)
        axes.set(xscale="log", title=row["trace"], xlabel="budget, in the log's")
        axes.set_xticks(FACTORS, [f"{factor:g}×" for factor in FACTORS])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("freshness")
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Software": None})


def table(results: list[Row]) -> str:
    """All figures as Markdown."""
    lines = [
        "| trace | so far: by the log (true) | budget | predicted, best | then: engine | then: plan's rates | "
        "predicted, alike | then: alike |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in results:
        for factor in FACTORS:
            said, after = row["predicted"][f"{factor:.3g}"], row["after"]
            past = f"{row['so_far']['freshness']:.4f} ({row['so_far']['measured']:.4f})" if factor == 1 else ""
            lines.append(
                f"| {row['trace']} | {past} | {factor:g}× | {said['freshness']:.4f} ({said['low']:.4f} to "
                f"{said['high']:.4f}) | {after[f'engine {factor:g}']:.4f} | {after[f'plan {factor:g}']:.4f} | "
                f"{said['alike']:.4f} | {after[f'uniform {factor:g}']:.4f} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Run every trace that is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the recorded traces")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--only", help="one trace alone")
    given = parser.parse_args()
    results = []
    for name in TRACES if given.only is None else [given.only]:
        if not (given.data / name).is_dir():
            print(f"{name}: there is no folder {given.data / name}, left out")
            continue
        results.append(run(given.data / name))
        print(f"{name}: {json.dumps(results[-1])}", flush=True)
    if not results:
        return
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    draw(results, given.out / "results.png")
    (given.out / "table.md").write_text(table(results) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
