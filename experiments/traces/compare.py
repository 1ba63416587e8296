"""Every policy on recorded traces, cold and warm, with equal requests; writes results.json, results.png and README.md.

Budgets are 2%, 5% and 20% of the pages per day, counting lasts 365 days, warm means 90 days of the policy's own running
before. What is in results.json already is not run again.

    python experiments/traces/compare.py --data FOLDER            all traces in a folder of recorded traces
    python experiments/traces/compare.py --data FOLDER --engine   the engine again, the others as they are
    python experiments/traces/compare.py --data FOLDER --days 30 --warm 10 --only ota-contrib --out /tmp/check
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from recrawl.cli.views.plots.simulate_plot import draw_panel
from recrawl.errors import ParameterError
from recrawl.simulate.compare.comparison import compare, is_rival
from recrawl.simulate.compare.sources import Recorded
from recrawl.simulate.rivals.registry import rival_names

HERE = Path(__file__).parent
BUDGETS = ["0.02/page/day", "0.05/page/day", "0.2/page/day"]
ENGINE = ["learned", "learned:none"]  # the engine as it is, and with independent pages
OURS = [*ENGINE, "known", "uniform", "clairvoyant"]
Results = dict[str, list[dict[str, Any]]]


class Case(NamedTuple):
    """A window of a trace; without a start, its last days."""

    title: str
    folder: str
    start: str | None = None


CASES = [
    Case("ota-contrib", "ota-contrib"),
    Case("scraped-mix", "scraped-mix"),
    Case("kubernetes-website", "kubernetes-website"),
    Case("dotnet-docs", "dotnet-docs"),
    Case("homebrew-cask from 2020-04-01", "homebrew-cask", "2020-04-01"),
    Case("homebrew-cask", "homebrew-cask"),
]

HEAD = """# Recorded traces: every policy with the same requests

`python experiments/traces/compare.py --data FOLDER` makes this file, [results.json](results.json) and results.png.
FOLDER holds the recorded traces, each [a folder](../../docs/reference/simulate.md#recorded-traces); they are not
part of this repository. What the policies are and why the comparison is fair is said in
[docs/reference/simulate.md](../../docs/reference/simulate.md#policies).

- {days:g} days count: the last ones of each trace, or from the date given. **Cold**: nothing is known when they begin.
  **Warm**: every policy has run for {warm:g} days before. All copies are fresh at a run's start, which is when counting
  begins if cold: warm figures can be the higher ones.
- Budgets are 2%, 5% and 20% of the pages that exist, per day. Rivals are capped by due date, by score and in their own
  order; the least stale of these counts.
- Staleness is the share of time that copies are stale: weighted by importance / every page alike. Only homebrew-cask
  has importance (installs in the year to 2020-04-01). From 2020-04-01 on that is what one could have known; in its last
  days it is a fixed weight, years old, and the median of all for pages that came since.

![Staleness against budget, one panel per trace](results.png)
"""


def run(
    case: Case, data: Path, days: float, warm: float, jobs: int, before: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Every policy with every budget on one window; what was run before is kept."""
    have = {row["policy"] for row in before}
    missing = [policy for policy in [*OURS, *rival_names()] if policy not in have]
    source = Recorded(data / case.folder, days, warm, case.start)

    def show(done: int, total: int) -> None:
        print(f"\r{case.title}, {warm:g} days warm: {done} of {total}", end="" if done < total else "\n", flush=True)

    found = compare([source], missing, BUDGETS, jobs=jobs, progress=show) + before
    order = {policy: k for k, policy in enumerate([*OURS, *rival_names()])}
    return sorted(found, key=lambda row: order[row["policy"]])


def key(case: Case, warm: float) -> str:
    """What a window is called in results.json."""
    return f"{case.title}, {'warm' if warm else 'cold'}"


# --- output ----------------------------------------------------------------------------------------------------------


def draw(results: Results, path: Path) -> None:
    """Cold above, warm below, one column per trace."""
    from matplotlib.figure import Figure

    cases = [case for case in CASES if key(case, 0) in results or key(case, 1) in results]
    figure = Figure(figsize=(4.2 * len(cases) + 2, 8.4), dpi=110, layout="constrained")
    panels = figure.subplots(2, len(cases), squeeze=False)
    for column, case in enumerate(cases):
        for line in (0, 1):
            if key(case, line) in results:
                draw_panel(panels[line, column], results[key(case, line)], title=key(case, line))
    lines = {label: mark for mark, label in zip(*panels[0, 0].get_legend_handles_labels(), strict=True)}
    figure.legend(lines.values(), lines.keys(), loc="outside right center", frameon=False)
    figure.savefig(path, metadata={"Software": None})


WHY = [
    "",
    "On kubernetes-website and dotnet-docs many pages are changed at once; taken for pages' own, such changes draw",
    "requests to pages that stay quiet for long afterwards. With siblings (`learned`) both are far below every rival.",
    "At 2% per day a page is crawled about seven times in a year: on scraped-mix, where `known` itself is at 0.8 of",
    "the best rival, too few to learn from, and on homebrew-cask from 2020 `known` is above 0.4, too.",
]


def cell(row: dict[str, Any]) -> str:
    """Both figures of a row."""
    return f"{row['staleness']:.4f} / {row['staleness_unweighted']:.4f}"


def best_rival(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The rival with the least staleness, weighted."""
    return min((row for row in rows if is_rival(row["policy"])), key=lambda row: float(row["staleness"]))


def to_best(row: dict[str, Any], best: dict[str, Any]) -> float:
    """A policy's staleness over that of the best rival."""
    return float(row["staleness"]) / float(best["staleness"])


def contests(results: Results) -> Iterator[tuple[str, str, dict[str, dict[str, Any]], dict[str, Any]]]:
    """Of each trace, start and budget: rows by policy, and the best rival's."""
    for name, found in results.items():
        for budget in BUDGETS:
            rows = {row["policy"]: row for row in found if row["budget"] == budget}
            yield name, budget, rows, best_rival(list(rows.values()))


def overview(results: Results) -> list[str]:
    """One line per trace, start and budget: ours, and the best rival."""
    lines = [
        "## Best rival",
        "",
        "`learned:none` is the engine with independent pages. Its runs and those of `learned` are from before the",
        "scheduler let pages with little-known rates sleep longer: its choices are the same since, but for the order",
        "among equals.",
        "",
        "| trace | budget | " + " | ".join(OURS) + " | best rival | learned / best rival | learned:none / best rival |",
        "|---|---|" + "---|" * (len(OURS) + 3),
    ]
    for name, budget, rows, best in contests(results):
        there = [rows.get(policy) for policy in OURS]
        ratio = " | ".join(f"{to_best(row, best):.2f}" if row else "" for row in there[: len(ENGINE)])
        mine = " | ".join(cell(row) if row else "" for row in there)
        lines.append(f"| {name} | {budget} | {mine} | {best['policy']} {cell(best)} | {ratio} |")
    return lines


def aims(results: Results) -> list[str]:
    """Where an engine is not below every rival, or not below 0.4 of the best on homebrew-cask."""
    lines = [
        "",
        "## Aims",
        "",
        "Independent pages (`learned:none`) were to be below every rival everywhere and at most at 0.4 of the best on",
        "homebrew-cask. In these cases they, or the engine as it is, are not:",
        "",
    ]
    for policy in ENGINE:
        missed = []
        for name, budget, rows, best in contests(results):
            ratio = to_best(rows[policy], best) if policy in rows else 0.0
            if ratio > (0.4 if name.startswith("homebrew") else 1.0):
                missed.append(f"{name}, {budget} ({ratio:.2f})")
        lines.append(f"- `{policy}`: " + ("; ".join(missed) or "none") + ".")
    return [*lines, *WHY]


def details(results: Results) -> list[str]:
    """One table per trace and start: every policy, by budget, with the requests made where they are fewer."""
    lines = [
        "",
        "## All policies",
        "",
        "Requests are given where a policy left slots unused: as a share of those allowed.",
    ]
    for name, found in results.items():
        pages = found[0]["pages"]
        lines += ["", f"### {name}", "", f"{pages:,.0f} pages exist on average.", ""]
        lines += ["| policy | " + " | ".join(BUDGETS) + " |", "|---|" + "---|" * len(BUDGETS)]
        for policy in dict.fromkeys(row["policy"] for row in found):
            rows = [row for row in found if row["policy"] == policy]
            lines.append(f"| {policy} | " + " | ".join(cell(row) + remark(row) for row in rows) + " |")
    return lines


def remark(row: dict[str, Any]) -> str:
    """What came first when a rival was capped, and the share of requests used."""
    used = row["requests"] / (row["per_page_day"] * row["pages"] * row["days"])
    parts = [*([f"by {row['cap']}"] if row["cap"] else []), *([f"{used:.0%}"] if used < 0.99 else [])]
    return f" ({', '.join(parts)})" if parts else ""


def main() -> None:
    """Run what is missing, write figures, plot and tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the recorded traces")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    parser.add_argument("--only", help="one trace alone")
    parser.add_argument("--days", type=float, default=365.0)
    parser.add_argument("--warm", type=float, default=90.0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--engine", action="store_true", help="run the engine again")
    parser.add_argument("--again", action="store_true", help="run cases again that have results")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    kept = given.out / "results.json"
    results: Results = json.loads(kept.read_text())["results"] if kept.exists() and not given.again else {}
    for case in CASES:
        if given.only not in (None, case.folder):
            continue
        if not (given.data / case.folder).is_dir():
            print(f"{case.title}: there is no folder {given.data / case.folder}, left out")
            continue
        for warm in (0.0, given.warm):
            found = results.get(key(case, warm), [])
            before = [row for row in found if not (given.engine and row["policy"] in ENGINE)]
            if {row["policy"] for row in before} >= {*OURS, *rival_names()}:
                continue
            try:
                results[key(case, warm)] = run(case, given.data, given.days, warm, given.jobs, before)
            except ParameterError as problem:
                print(f"{key(case, warm)}: {problem}, left out")
                continue
            report = {"days": given.days, "warm": given.warm, "results": results}
            kept.write_text(json.dumps(report, indent=1) + "\n")
    if not results:
        return
    order = [key(case, warm) for case in CASES for warm in (0, 1)]
    results = {name: results[name] for name in order if name in results}
    draw(results, given.out / "results.png")
    head = HEAD.format(days=given.days, warm=given.warm)
    (given.out / "README.md").write_text(
        "\n".join([head, *overview(results), *aims(results), *details(results)]) + "\n"
    )


if __name__ == "__main__":
    main()
