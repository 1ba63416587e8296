"""The ablation's table and picture, from its results."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from recrawl.simulate.compare.comparison import is_rival

NONE, SIBLINGS = "learned:none", "learned:siblings"
DOCS = ("kubernetes-website", "dotnet-docs")
HELD_OUT = ("2023-08-01", "2024-08-01")
Results = dict[str, list[dict[str, Any]]]
Cases = dict[tuple[str, str], dict[tuple[str, str], dict[str, float]]]  # trace, window: start and budget: policy

HEAD = """# Siblings on recorded traces

`python experiments/parts/ablation.py --data FOLDER --rivals` (then with `--last`) makes this file, results.json and
results.png. FOLDER holds the [recorded traces](../../docs/reference/simulate.md#recorded-traces), which are not
part of this repository. Windows of 182 days begin on {windows}; the last two are held out.
Budgets are 2%, 5% and 20% of the pages per day; warm means 90 days of running before.

The held-out windows were first run after the defaults were frozen. Since then a defect was fixed, found in a test of
forecasts: changes attributed to siblings were lost when siblings stopped being used. Now each page keeps the belief of
the other case. Siblings were run again on every window with that, every setting as it was; that is what stands below.
These runs are from before the scheduler learned to let pages with little-known rates sleep longer. Its choices are the
same since, but for the order among equals, and on traces where all pages weigh the same that order alone makes single
runs differ: with all effects of the time on kubernetes-website from 2022-08-01 at 2% per day, three orders left it
stale 4.4, 4.6 and 5.1% of the time.

How much staler than with independent pages (`learned:none`), in percent, less being better: the mean logarithm of the
ratio over budgets, cold and warm, and windows; ± a paired standard error over windows.

![Change of staleness by trace](results.png)
"""

REMOVED = """
## What was tried and removed

Four other effects were part of the engine, each off unless it was asked for: group priors (a new page is expected to
change as often as others of its folder and host), bursts (a page that just changed is expected to change again soon),
drift (the half-life of evidence is estimated) and seasons (rates differ by hour of the day and day of the week). On the
windows and budgets of this page they changed staleness as follows, each alone and all with siblings, in percent against
independent pages:

| trace | priors | bursts | drift | seasons | all with siblings | siblings alone |
|---|---|---|---|---|---|---|
| kubernetes-website | +0.5 ± 2.3 | +0.7 ± 0.4 | +0.1 ± 0.1 | -0.1 ± 0.2 | -29.2 ± 2.5 | -31.2 ± 2.5 |
| homebrew-cask | -0.0 ± 0.2 | -0.0 ± 0.1 | +0.1 ± 0.1 | -1.0 ± 0.4 | -1.7 ± 0.7 | -0.3 ± 0.8 |
| ota-contrib | +0.7 ± 1.0 | -0.4 ± 0.4 | -0.3 ± 0.3 | +0.1 ± 0.1 | -7.2 ± 0.7 | -7.5 ± 0.4 |
| scraped-mix | +32.9 ± 9.8 | -1.4 ± 0.3 | -0.6 ± 0.2 | -0.4 ± 0.1 | +3.4 ± 2.5 | -2.1 ± 1.4 |
| dotnet-docs | +2.2 ± 1.5 | +0.2 ± 1.2 | +0.1 ± 0.3 | -0.5 ± 0.7 | -48.8 ± 9.5 | -54.9 ± 10.6 |
| all traces | +6.6 ± 2.1 | -0.2 ± 0.3 | -0.1 ± 0.1 | -0.4 ± 0.2 | -19.3 ± 2.3 | -22.5 ± 2.4 |

No trace gained more than 1.4% from any of them. Over all traces, all of them together left copies staler than siblings
alone. Group priors did harm on scraped-mix: what a folder's pages did there says little of how often one of them will
change, and the score by which folders were used counted the crawled pages only. All four left the engine. A database
that was saved with one of them opens; the setting is ignored.
"""

REASONS = ["", "On homebrew-cask at 2% per day not even the true mean rates (`known`) reach 0.35 of the best rival."]


def cases_of(results: Results) -> Cases:
    """Weighted staleness by trace and window, then by start and budget, then by policy."""
    cases: Cases = {}
    for name, rows in results.items():
        trace, window, start = name.split(", ")
        for row in rows:
            case = cases.setdefault((trace, window), {}).setdefault((start, row["budget"]), {})
            case[row["policy"]] = float(row["staleness"])
    return cases


def effect(cases: Cases, policy: str, traces: tuple[str, ...], windows: tuple[str, ...] = ()) -> tuple[float, float]:
    """Mean change against independent pages (as a logarithm), and its standard error over windows."""
    by_window: dict[str, list[float]] = {}
    for (trace, window), found in cases.items():
        if trace in traces and (not windows or window in windows):
            logs = [math.log(row[policy] / row[NONE]) for row in found.values() if policy in row and NONE in row]
            by_window.setdefault(window, []).extend(logs)
    each = [mean(logs) for logs in by_window.values() if logs]
    return mean(each), stdev(each) / math.sqrt(len(each)) if len(each) > 1 else math.nan


def percent(value: tuple[float, float]) -> str:
    """A change and its standard error in percent."""
    return f"{100 * math.expm1(value[0]):+.1f} ± {100 * value[1]:.1f}"


def write(results: Results, out: Path) -> None:
    """README.md and results.png."""
    cases = cases_of(results)
    traces = list(dict.fromkeys(trace for trace, _ in cases))
    windows = sorted({window for _, window in cases}, key=lambda window: (window in HELD_OUT, window))
    lines = [HEAD.format(windows=", ".join(windows)), "| trace | siblings |", "|---|---|"]
    lines += [_row(cases, trace, (trace,)) for trace in traces] + [_row(cases, "all traces", tuple(traces))]
    lines += aims(cases, traces, windows)
    lines += [*REASONS, REMOVED.rstrip(), *details(cases, traces)]
    (out / "README.md").write_text("\n".join(lines) + "\n")
    draw(cases, traces, out / "results.png")


def _row(cases: Cases, title: str, traces: tuple[str, ...]) -> str:
    return f"| {title} | {percent(effect(cases, SIBLINGS, traces))} |"


def aims(cases: Cases, traces: list[str], windows: list[str]) -> list[str]:
    """What was aimed at, and what came of it: on all windows and on the held-out ones."""
    held = tuple(window for window in windows if window in HELD_OUT)
    lines = ["", "## Aims", "", "| aim | all windows | held-out windows | reached |", "|---|---|---|---|"]
    docs = tuple(trace for trace in DOCS if trace in traces)

    def line(aim: str, chosen: tuple[str, ...], reached: bool) -> None:
        apart = percent(effect(cases, SIBLINGS, chosen, held)) if held else ""
        lines.append(
            f"| {aim} | {percent(effect(cases, SIBLINGS, chosen))} | {apart} | {'yes' if reached else '**no**'} |"
        )

    if docs:
        line("both documentation sites: −25", docs, effect(cases, SIBLINGS, docs)[0] <= math.log(0.75))
    line("all traces: −10", tuple(traces), effect(cases, SIBLINGS, tuple(traces))[0] <= math.log(0.9))
    for trace in traces:
        change, error = effect(cases, SIBLINGS, (trace,))
        line(f"{trace}: at most +2 and two standard errors", (trace,), change <= math.log(1.02) + 2 * error)
    ratios = best_rival_ratios(cases, "homebrew-cask")
    if ratios:
        reached = "yes" if max(ratios.values()) <= 0.35 else "**no**"
        shown = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
        lines.append(f"| homebrew-cask: at most 0.35 of the best rival's staleness | {shown} | | {reached} |")
    return lines


def best_rival_ratios(cases: Cases, trace: str) -> dict[str, float]:
    """Mean staleness with siblings against that of the best rival, by start and budget."""
    ratios: dict[str, list[float]] = {}
    for (name, _), found in cases.items():
        for (start, budget), row in found.items():
            rivals = [stale for policy, stale in row.items() if is_rival(policy)]
            if name == trace and rivals and SIBLINGS in row:
                ratios.setdefault(f"{budget} {start}", []).append(row[SIBLINGS] / min(rivals))
    return {name: mean(found) for name, found in ratios.items()}


def details(cases: Cases, traces: list[str]) -> list[str]:
    """Mean staleness over windows of every policy."""
    lines = ["", "## Staleness", "", "Weighted by importance, means over the windows."]
    lines += ["", "| trace | start | budget | none | siblings | known | best rival |", "|---|---|---|---|---|---|---|"]
    for trace in traces:
        mine = [found for (name, _), found in cases.items() if name == trace]
        for start, budget in dict.fromkeys(name for found in mine for name in found):
            rows = [found[start, budget] for found in mine if (start, budget) in found]
            cells = [_mean(rows, policy) for policy in (NONE, SIBLINGS, "known")]
            lines.append(f"| {trace} | {start} | {budget} | " + " | ".join([*cells, _best(rows)]) + " |")
    return lines


def _mean(rows: list[dict[str, float]], policy: str) -> str:
    found = [row[policy] for row in rows if policy in row]
    return f"{mean(found):.4f}" if found else ""


def _best(rows: list[dict[str, float]]) -> str:
    names = {policy for row in rows for policy in row if is_rival(policy)}
    means = {name: mean(row[name] for row in rows if name in row) for name in names}
    if not means:
        return ""
    best = min(means, key=lambda name: means[name])
    return f"{best} {means[best]:.4f}"


def draw(cases: Cases, traces: list[str], path: Path) -> None:
    """One bar per trace."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), dpi=110, layout="constrained")
    axes = figure.subplots()
    found = [effect(cases, SIBLINGS, (trace,)) for trace in traces]
    heights = [100 * math.expm1(change) for change, _ in found]
    errors = [0.0 if math.isnan(error) else 100 * error for _, error in found]
    axes.bar(range(len(traces)), heights, 0.5, yerr=errors, capsize=2)
    axes.axhline(0.0, color="0.3", linewidth=0.8)
    axes.set_xticks(range(len(traces)), traces)
    axes.set_ylabel("staleness against independent pages, %")
    figure.savefig(path, metadata={"Software": None})
