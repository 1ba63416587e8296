"""Audits of simulated worlds whose truth is known; writes results.json and results.png.

Each world has 3,000 pages, crawled by the engine for 30 days and then audited 50 times in 20 days, 100 draws each.
Poisson worlds differ in how change rates and importances are spread and in their budget; bursty and seasonal worlds
break the engine's model, and in lying ones the servers of a part of the pages answer every crawl "not modified".
What results.json holds already is not run again.

    python experiments/audit/run.py                 all worlds: 200 Poisson ones, 25 to 40 of each other kind
    python experiments/audit/run.py --worlds 5 --out /tmp/check
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from recrawl.estimate.audit import share_interval, verdict
from recrawl.model.pages import Pages
from recrawl.simulate.compare.audits import audited
from recrawl.simulate.worlds.processes import Constant, Process, Renewal, SelfExciting
from recrawl.simulate.worlds.rhythms import Seasonal
from recrawl.simulate.worlds.worlds import World

HERE = Path(__file__).parent
PAGES, HISTORY, DAYS, MOMENTS, DRAWS = 3000, 30.0, 20.0, 50, 100
KINDS: dict[str, tuple[int, Process]] = {
    "poisson": (200, Constant()),
    "bursty": (40, Renewal("lognormal", 2.5)),
    "self-exciting": (25, SelfExciting(0.9, 3.0)),
    "seasonal": (25, Seasonal()),
    "lying": (25, Constant()),
}
Row = dict[str, Any]


def pages_of(rng: np.random.Generator) -> Pages:
    """Change rates with a mean of half a change a day and importances, each spread in one of a few ways."""
    rate = [
        lambda: rng.random(PAGES),
        lambda: rng.gamma(shape := float(rng.uniform(0.5, 3.0)), 0.5 / shape, PAGES),
        lambda: rng.lognormal(np.log(0.5) - 0.5, 1.0, PAGES),
    ][rng.integers(3)]()
    importance = [lambda: np.ones(PAGES), lambda: rng.random(PAGES), lambda: rng.lognormal(0.0, 0.7, PAGES)]
    return Pages(rate, importance[rng.integers(3)]())


def run(kind: str, seed: int) -> Row:
    """One world: its truth, forecasts and audits."""
    rng = np.random.default_rng([list(KINDS).index(kind), seed])
    pages = pages_of(rng)
    budget = float(np.exp(rng.uniform(np.log(0.2), np.log(2.0))))
    trace = World(kind, pages, KINDS[kind][1]).draw(HISTORY + DAYS + 1.0, rng)
    lying = rng.random(PAGES) < 0.3 if kind == "lying" else None
    moments = HISTORY + DAYS * np.arange(1, MOMENTS + 1) / MOMENTS
    found = audited(trace, budget * PAGES, moments.tolist(), draws=DRAWS, lying=lying, learn=False, rng=rng)
    audits = [one.audits[0] for one in found]
    said = {n: verdict(audits[:n]) for n in (1, 10, 50)}
    return {
        "seed": seed,
        "budget": budget,
        "truth": [round(one.truth, 6) for one in found],
        "forecast": [round(one.forecast, 6) for one in found],
        "fresh": [one.fresh for one in audits],
        "covered": [a.interval[0] <= m.truth <= a.interval[1] for a, m in zip(audits, found, strict=True)],
        "holds_forecast": [one.holds_forecast for one in audits],
        "disagree": {n: v is not None and not v.agree for n, v in said.items()},
    }


def summary(rows: list[Row]) -> Row:
    """The figures of one kind of world."""
    error = np.array([np.subtract(row["forecast"], row["truth"]) for row in rows])
    return {
        "worlds": len(rows),
        "truth": float(np.mean([row["truth"] for row in rows])),
        "forecast_error": float(error.mean()),
        "forecast_error_sd": float(error.mean(axis=1).std()),
        "covered_last": float(np.mean([row["covered"][-1] for row in rows])),
        "covered": float(np.mean([row["covered"] for row in rows])),
        "holds_forecast_last": float(np.mean([row["holds_forecast"][-1] for row in rows])),
        "holds_forecast": float(np.mean([row["holds_forecast"] for row in rows])),
        **exactly(rows),
        "disagree": {n: float(np.mean([row["disagree"][n] for row in rows])) for n in rows[0]["disagree"]},
    }


def exactly(rows: list[Row]) -> Row:
    """Probability that an audit's interval holds the truth, and the forecast, by the binomial distribution."""
    truth, forecast = (np.array([row[name] for row in rows]).reshape(-1, 1) for name in ("truth", "forecast"))
    chance = binom.pmf(np.arange(DRAWS + 1), DRAWS, truth)
    low, high = np.array([share_interval(k, DRAWS) for k in range(DRAWS + 1)]).T
    held = {"exactly_covered": truth, "exactly_holds_forecast": forecast}
    return {name: float((chance * ((low <= at) & (at <= high))).sum(axis=1).mean()) for name, at in held.items()}


def draw(results: dict[str, list[Row]], path: Path) -> None:
    """Forecast and audits against the truth, one panel per kind: every world's last audit."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.4 * len(results), 3.8), dpi=110, layout="constrained")
    for axes, (kind, rows) in zip(figure.subplots(1, len(results), squeeze=False)[0], results.items(), strict=True):
        truth = [row["truth"][-1] for row in rows]
        axes.plot([0, 1], [0, 1], color="0.7", lw=1)
        axes.plot(truth, [row["fresh"][-1] / DRAWS for row in rows], ".", color="0.5", ms=4, label="audit of 100 draws")
        mean = [np.mean(row["fresh"]) / DRAWS for row in rows]
        axes.plot([np.mean(row["truth"]) for row in rows], mean, "o", color="black", ms=3, label="50 audits together")
        axes.plot(truth, [row["forecast"][-1] for row in rows], "D", color="crimson", ms=3, label="forecast")
        axes.set(title=f"{kind}, {len(rows)} worlds", xlabel="true freshness", xlim=(0.2, 1), ylim=(0.2, 1))
        axes.grid(alpha=0.3)
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Software": None})


def main() -> None:
    """Run what is missing; write figures and plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, help="of each kind  [default: 200, and 25 to 40]")
    parser.add_argument("--out", type=Path, default=HERE)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    kept = given.out / "results.json"
    results: dict[str, list[Row]] = json.loads(kept.read_text())["worlds"] if kept.exists() else {}
    for kind, (n, _) in KINDS.items():
        rows = results.setdefault(kind, [])
        for seed in range(len(rows), given.worlds or n):
            rows.append(json.loads(json.dumps(run(kind, seed))))
            print(f"\r{kind}: {len(rows)}", end="", flush=True)
            if seed % 10 == 9 or seed + 1 == (given.worlds or n):
                figures = {name: summary(done) for name, done in results.items() if done}
                kept.write_text(json.dumps({"summary": figures, "worlds": results}, separators=(",", ":")) + "\n")
        print(f"\r{kind}: {json.dumps(summary(rows))}")
    draw(results, given.out / "results.png")


if __name__ == "__main__":
    main()
