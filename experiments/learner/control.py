"""How much of the distance to ``known`` no online learner can close: every trace beside its Poisson control.

Cold, 365 days, 5% of the pages per day, without signals. Draw k takes order k among equals and draws one control.
Writes control.json, control.png and CONTROL.md; what is in control.json already is not run again.

    python experiments/learner/control.py --data FOLDER              all windows, five draws
    python experiments/learner/control.py --data FOLDER --again      run them again
    python experiments/learner/control.py --table                    no runs: the table and the picture
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from bayes import bayes
from traces import WINDOWS, mean_and_error

from recrawl.model import Pages
from recrawl.simulate import Contender, Trace, contender, poisson_control, read_trace, simulate

HERE = Path(__file__).parent
BUDGET = 0.05
ON_TRACE = ["learned", "trailing", "trailing:crawled", "known"]
ON_CONTROL = ["learned", "bayes", "trailing:crawled", "drawn", "known"]
Results = dict[str, dict[str, list[float]]]  # window: "trace POLICY" or "control POLICY": staleness by draw

HEAD = """# The Poisson control: what no online learner can close

`python experiments/learner/control.py --data FOLDER` makes this file, [control.json](control.json) and
control.png. Every trace stands beside its
[Poisson control](../../docs/reference/simulate.md#how-far-a-learner-can-get): the same pages, lifetimes and
mean rates, with changes drawn as Poisson processes. 5% of the pages are crawled per day, cold, 365 days, no
signals; means over {draws} draws, each with an order among equals and a control of its own. Standard errors are
at most {error:.1%} of a figure.

- **learned** is the engine, **known** the greedy choice with the mean rates of the very time that counts.
- **bayes** is given the true distribution of rates over all pages and does exact Bayes, page by page, on a
  grid of rates ([bayes.py](bayes.py)): what learning rates from crawls can reach in the control. It does not
  know that pages of one folder have similar rates, and it decides once an hour.
- **drawn** knows the rates that the control was drawn with: no hindsight, but nothing left to learn.

![Staleness on each trace and on its control](control.png)

## Staleness

| trace | learned | trailing | trailing:crawled | known | control: learned | bayes | trailing:crawled | drawn | known |
|---|---|---|---|---|---|---|---|---|---|
"""

SHARES = """
## Shares of the distance from learned to known

*Cannot be closed* is (bayes − known) / (learned − known) in the control. It is above 100% where the engine
does better than bayes because pages of one folder have similar rates. *Hindsight* is the part that even the
true rates leave, (drawn − known) / (learned − known). *Control / trace* is the distance in the control over
that on the trace. Where it is above 100%, the engine gains on the trace from what pages have in common, and
is nearer to known than any learner of independent constant rates could be.

| trace | cannot be closed | hindsight | distance on the trace | in the control | control / trace |
|---|---|---|---|---|---|
"""


def known_rates(control: Trace, trace: Trace) -> Trace:
    """The control, with ``known`` given the rates that it was drawn with."""
    return replace(control, pages=Pages(trace.change_rate, trace.importance))


def run_draw(trace: Trace, seed: int) -> dict[str, float]:
    """Staleness of all policies on the trace and on a new control."""
    control = poisson_control(trace, np.random.default_rng([seed, 1]))
    per_day = BUDGET * trace.n_live
    found = {}

    def run(label: str, policy: Contender, on: Trace, batch: int = 1) -> None:
        found[label] = simulate(policy, on, per_day / trace.day, batch=batch).staleness

    for name in ON_TRACE:
        run(f"trace {name}", contender(name), trace)
    for name in ("learned", "trailing:crawled", "known"):
        run(f"control {name}", contender(name), control)
    run("control drawn", contender("known"), known_rates(control, trace))
    run("control bayes", bayes(trace), control, batch=max(1, round(per_day / 24)))
    return found


def run_window(name: str, data: Path, results: Results, draws: int, path: Path) -> None:
    """Run the draws of a window that are missing, and keep each."""
    folder, start = WINDOWS[name]
    whole = replace(read_trace(data / folder, start=start), signals=None)
    kept = results.setdefault(name, {})
    for seed in range(len(kept.get("trace known", [])), draws):
        for label, value in run_draw(whole.shuffled(np.random.default_rng(seed)), seed).items():
            kept.setdefault(label, []).append(value)
        path.write_text(json.dumps(results, indent=1) + "\n")
        print(
            f"{name}, draw {seed + 1} of {draws}: " + ", ".join(f"{k} {v[-1]:.4f}" for k, v in kept.items()), flush=True
        )


# --- output ----------------------------------------------------------------------------------------------------------


def means(kept: dict[str, list[float]]) -> dict[str, float]:
    """Means over the draws."""
    return {label: mean_and_error(values)[0] for label, values in kept.items()}


def largest_error(results: Results) -> float:
    """The largest standard error, as a share of its mean."""
    pairs = [mean_and_error(values) for kept in results.values() for values in kept.values()]
    return max((error / mean for mean, error in pairs if error == error), default=float("nan"))


def report(results: Results) -> str:
    """CONTROL.md."""
    draws = min(len(kept["trace known"]) for kept in results.values())
    labels = [f"trace {name}" for name in ON_TRACE] + [f"control {name}" for name in ON_CONTROL]
    text, shares = HEAD.format(draws=draws, error=largest_error(results)), SHARES
    for name in [name for name in WINDOWS if name in results]:
        m = means(results[name])
        text += f"| {name} | " + " | ".join(f"{m[label]:.4f}" for label in labels) + " |\n"
        on_trace, distance = m["trace learned"] - m["trace known"], m["control learned"] - m["control known"]
        fixed, hindsight = (m[f"control {each}"] - m["control known"] for each in ("bayes", "drawn"))
        shares += f"| {name} | {fixed / distance:.0%} | {hindsight / distance:.0%} | {on_trace:.4f} | {distance:.4f} "
        shares += f"| {distance / on_trace:.0%} |\n"
    return text + shares


def draw(results: Results, path: Path) -> None:
    """One row per trace: the policies on the trace above, on the control below."""
    from matplotlib.figure import Figure

    names = [name for name in WINDOWS if name in results]
    figure = Figure(figsize=(9, 1.0 + 0.8 * len(names)), dpi=110, layout="constrained")
    axes = figure.subplots()
    marks = {"learned": ("o", "C0"), "bayes": ("D", "C1"), "trailing:crawled": ("s", "C2"), "drawn": ("^", "C4")}
    marks |= {"trailing": ("v", "C5"), "known": ("|", "black")}
    for row, name in enumerate(names):
        for label, value in means(results[name]).items():
            kind, policy = label.split(" ")
            shift, (mark, colour) = (-0.17 if kind == "trace" else 0.17), marks[policy]
            face = colour if kind == "trace" else "none"
            style = {} if mark == "|" else {"markerfacecolor": face}
            axes.plot(value, row + shift, mark, color=colour, markersize=10 if mark == "|" else 6, **style)
    for policy, (mark, colour) in marks.items():
        axes.plot([], [], mark, color=colour, label=policy)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("staleness at 5% of the pages per day; filled: recorded trace, hollow: its Poisson control")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.savefig(path, metadata={"Software": None})


def main() -> None:
    """Run what is missing and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the recorded traces")
    parser.add_argument("--traces", default=",".join(WINDOWS), help="windows, a comma list; default: all")
    parser.add_argument("--draws", type=int, default=5, help="draws of each control; default: 5")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    parser.add_argument("--again", action="store_true", help="run again what has results")
    parser.add_argument("--table", action="store_true", help="no runs")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / "control.json"
    results: Results = json.loads(path.read_text()) if path.exists() and not given.again else {}
    for name in [] if given.table else given.traces.split(","):
        if name not in WINDOWS:
            parser.error(f"trace {name!r} is not one of {', '.join(WINDOWS)}")
        if given.data is None or not (given.data / WINDOWS[name][0]).is_dir():
            print(f"{name}: skipped, there is no data")
            continue
        run_window(name, given.data, results, given.draws, path)
    if results:
        (given.out / "CONTROL.md").write_text(report(results))
        draw(results, given.out / "control.png")


if __name__ == "__main__":
    main()
