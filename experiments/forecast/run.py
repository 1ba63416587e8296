"""Forecasts of a stated time and what came true; writes results.json and results.png.

``demo``: whole demos of 60 s by the manual clock (500 pages on eight hosts, changes in bursts and in whole folders);
the forecast is made at half time for the rest. ``poisson``: 80 pages on four hosts at constant rates, 6 days to
learn, 3 days forecast. Seeds begin at 1000: the correlation within folders was chosen on demo seeds 0 to 99.
What results.json holds already is not run again.

    python experiments/forecast/run.py                        400 seeds of each kind, about half an hour
    python experiments/forecast/run.py --seeds 5 --out /tmp/check
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from recrawl import Engine
from recrawl.demo import LiveDemo
from recrawl.store import MemoryStore

HERE = Path(__file__).parent
FIRST = 1000
Row = dict[str, float]


def demo(seed: int) -> Row:
    """One demo: the forecast of its second half, and what came true."""
    found = asyncio.run(LiveDemo(MemoryStore(), seconds=60.0, seed=seed, signals=False).run_in_memory()).half
    assert found is not None
    return row(seed, found.forecast, found.freshness)


def poisson(seed: int, learn: float = 6.0, window: float = 3.0, n: int = 80, budget: float = 40.0) -> Row:
    """A world of constant rates, crawled by an engine one page at a time."""
    rng = np.random.default_rng([seed, 11])
    host = rng.integers(0, 4, n)
    rate, weight = rng.lognormal(rng.normal(-0.7, 0.7, 4)[host], 1.0), rng.lognormal(0.0, 0.7, n)
    end = learn + window
    changes = [np.append(np.sort(rng.uniform(0.0, end, rng.poisson(one * end))), np.inf) for one in rate]
    engine, last, fresh, found = Engine(budget, day=1.0, sources=0), np.zeros(n), np.zeros(n), None
    urls = [f"https://h{h}.example/f{k % 3}/{k}" for k, h in enumerate(host)]
    engine.add(urls, 0.0, importance=weight, fetched_at=0.0)

    def renew(page: int, now: float) -> bool:
        stale_at = changes[page][np.searchsorted(changes[page], last[page], side="right")]
        fresh[page] += max(min(stale_at, now) - max(last[page], learn), 0.0)
        last[page] = now
        return bool(stale_at <= now)

    for now in np.arange(1, int(end * budget)) / budget:
        if found is None and now > learn:
            found = engine.forecast(budget, start=learn, duration=window)
        ids = engine.pick(now, 1)
        engine.record(ids, now, changed=[renew(page, now) for page in ids.tolist()])
    for page in range(n):
        renew(page, end)
    return row(seed, found, float(np.average(fresh / window, weights=weight)))


def row(seed: int, forecast: Any, true: float) -> Row:
    """One line of the results."""
    return {
        "seed": seed,
        "true": round(true, 5),
        "forecast": round(forecast.freshness, 5),
        "low": round(forecast.low, 5),
        "high": round(forecast.high, 5),
    }


KINDS: dict[str, Callable[[int], Row]] = {"poisson": poisson, "demo": demo}


def summary(rows: list[Row]) -> dict[str, float]:
    """Coverage of the 90% interval, its standard error and mean width; bias and spread of the forecast."""
    low, high, true, forecast = (np.array([one[name] for one in rows]) for name in ("low", "high", "true", "forecast"))
    held = float(((low <= true) & (true <= high)).mean())
    return {
        "worlds": len(rows),
        "coverage": round(held, 4),
        "standard_error": round(float(np.sqrt(held * (1 - held) / len(rows))), 4),
        "bias": round(float((forecast - true).mean()), 4),
        "error": round(float((forecast - true).std()), 4),
        "width": round(float((high - low).mean()), 4),
    }


def draw(found: dict[str, list[Row]], path: Path) -> None:
    """Forecast against truth, with intervals; misses are red."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), dpi=120, layout="constrained")
    for axes, (kind, rows) in zip(figure.subplots(1, 2), found.items(), strict=True):
        for one in rows:
            held = one["low"] <= one["true"] <= one["high"]
            style = {"color": "0.6" if held else "crimson", "lw": 0.6, "alpha": 0.6}
            axes.plot([one["true"]] * 2, [one["low"], one["high"]], **style)
            axes.plot(one["true"], one["forecast"], ".", ms=3, color=style["color"])
        ends = [min(one["low"] for one in rows), max(one["high"] for one in rows)]
        axes.plot(ends, ends, color="black", lw=0.8)
        figures = summary(rows)
        axes.set_title(f"{kind}: {figures['coverage']:.1%} of {len(rows)} intervals hold the truth", loc="left")
        axes.set(xlabel="freshness that came true", ylabel="forecast and 90% interval")
    figure.savefig(path)


def main() -> None:
    """Run what is missing, then write both files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=400)
    parser.add_argument("--out", type=Path, default=HERE)
    options = parser.parse_args()
    path = options.out / "results.json"
    found: dict[str, list[Row]] = json.loads(path.read_text())["rows"] if path.exists() else {}
    for kind, run in KINDS.items():
        rows = found.setdefault(kind, [])
        for seed in range(FIRST + len(rows), FIRST + options.seeds):
            rows.append(run(seed))
            if len(rows) % 20 == 0 or len(rows) == options.seeds:
                figures = {name: summary(each) for name, each in found.items() if each}
                path.write_text(json.dumps({"summary": figures, "rows": found}, indent=0) + "\n")
                print(kind, figures[kind], flush=True)
    draw(found, options.out / "results.png")


if __name__ == "__main__":
    main()
