"""Grimes et al.: the cost of estimating the rate (unknown-cost, convergence, suboptimal)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.model.cost import refresh_cost
from recrawl.reproduce.figure import Claim, Figure, Params, Row, Task, bounded, mean_error
from recrawl.reproduce.grimes.figures import CHUNK, INTERVAL, RATIO, n_parts, simulated_pages, total_cost
from recrawl.simulate.learning.learning import CrawlIntervals, crawls_by_estimate, crawls_every

Array = NDArray[np.float64]


def cost_over_time(crawled: CrawlIntervals, time: Array) -> Array:
    """Crawls plus hours of staleness of all pages together up to each time."""
    crawls = np.searchsorted(np.sort(crawled.until[crawled.whole]), time, side="right")
    stale = np.isfinite(crawled.since)
    began, ended = np.sort(crawled.since[stale]), np.sort(crawled.until[stale])
    return np.asarray(crawls + _ramp(began, time) - _ramp(ended, time), np.float64)


def _ramp(at: Array, time: Array) -> Array:
    """Σ max(0, time − at)."""
    n = np.searchsorted(at, time, side="right")
    return np.asarray(n * time - np.concatenate([[0.0], np.cumsum(at)])[n])


# --- cost over the ratio ----------------------------------------------------------------------------------------------


def _ratio_tasks(params: Params) -> list[Task]:
    return [Task({"part": part}, len(params["ratios"]) * 0.004) for part in range(n_parts(params["reps"]))]


def _costs(params: Params, key: Row, rng: np.random.Generator) -> Row:
    trace = simulated_pages(min(CHUNK, params["reps"]), params["horizon"], rng)
    row: Row = {"unknown": [], "known": []}
    for ratio in params["ratios"]:
        row["unknown"].append(total_cost(crawls_by_estimate(trace, ratio)).mean() / params["horizon"])
        row["known"].append(total_cost(crawls_every(trace, ratio * INTERVAL)).mean() / params["horizon"])
    return row


def _cheapest(ratio: Array, cost: Array) -> float:
    """Minimum of the parabola through the smallest point and its neighbours."""
    k = int(np.clip(np.argmin(cost), 3, len(cost) - 4)) if len(cost) > 7 else len(cost) // 2
    near = slice(max(k - 3, 0), k + 4)
    a, b, _ = np.polyfit(np.log(ratio[near]), cost[near], 2)
    return float(np.exp(-b / (2 * a)))


def _judge_unknown(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    ratio = np.array(params["ratios"])
    known, unknown = (np.array([row[name] for row in rows]) for name in ("known", "unknown"))
    at = int(np.argmin(np.abs(ratio - RATIO)))
    extra, error = mean_error(unknown[:, at] - known[:, at])
    more = unknown.mean(axis=0) - known.mean(axis=0)
    crossings = ratio[1:][(more[1:] > 0) & (more[:-1] <= 0)]
    best = {name: _cheapest(ratio, costs.mean(axis=0)) for name, costs in (("known", known), ("unknown", unknown))}
    note = "early estimates are too long, and a smaller ratio makes up for it; over a longer time the two agree"
    claims = [
        bounded(
            "extra_cost",
            f"not knowing the rate costs more near the optimum (per hour, at ratio {ratio[at]:.3g})",
            extra,
            error,
            least=0.0,
        ),
        bounded(
            "same_ratio",
            "the cheapest ratio is the same as with the rate known (0.321)",
            best["unknown"],
            least=0.30,
            most=0.34,
            paper="the same",
            note=note,
        ),
        Claim(
            "crossing",
            "below this ratio not knowing is cheaper (near 0.22 in a check)",
            float(crossings[0]) if len(crossings) else None,
        ),
    ]
    spread = {
        f"{name}_error": costs.std(axis=0, ddof=1) / np.sqrt(len(costs))
        for name, costs in (("known", known), ("unknown", unknown))
    }
    data = {"ratio": ratio, "known": known.mean(axis=0), "unknown": unknown.mean(axis=0), **spread}
    return claims, data | {"formula": refresh_cost(ratio, INTERVAL, 1.0, 1.0), "best": best}


def _draw_unknown(canvas: Any, data: Row) -> None:
    axes = canvas.subplots()
    axes.plot(data["ratio"], data["formula"], color="#228833", label="formula, rate known")
    for name, colour in (("known", "#4477aa"), ("unknown", "#cc3311")):
        error = [2 * e for e in data[f"{name}_error"]]
        axes.errorbar(
            data["ratio"],
            data[name],
            error,
            fmt="o-",
            ms=3,
            capsize=2,
            color=colour,
            label=f"simulated, rate {name} (cheapest {data['best'][name]:.2f})",
        )
    axes.set(xlabel="crawl interval / (estimated) change interval", ylabel="cost per hour over 1000 h")
    axes.legend()
    axes.grid(alpha=0.3)


# --- cost over time ---------------------------------------------------------------------------------------------------


def _run_tasks(params: Params) -> list[Task]:
    seconds = params["horizon"] * 1.5e-5
    return [Task({"part": part}, seconds) for part in range(n_parts(params["reps"]))]


def _paths(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """Mean extra cost up to each time: estimated rate at ratio 1/3 minus known rate at a given ratio."""
    runs = min(CHUNK, params["reps"])
    trace = simulated_pages(runs, params["horizon"], rng)
    time = np.linspace(0.0, params["horizon"], params["points"])
    unknown = cost_over_time(crawls_by_estimate(trace, RATIO), time)
    return {"extra": (unknown - cost_over_time(crawls_every(trace, params["ratio"] * INTERVAL), time)) / runs}


def _path_data(params: Params, rows: list[Row]) -> tuple[Array, Row]:
    paths = np.array([row["extra"] for row in rows])
    time = np.linspace(0.0, params["horizon"], params["points"])
    error = paths.std(axis=0, ddof=1) / np.sqrt(len(paths))
    return paths, {"time": time, "mean": paths.mean(axis=0), "error": error}


def _judge_convergence(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    paths, data = _path_data(params, rows)
    turn = int(np.searchsorted(data["time"], params["horizon"] / 8))
    early = paths[:, turn] / data["time"][turn]
    late = (paths[:, -1] - paths[:, turn]) / (data["time"][-1] - data["time"][turn])
    ratio, error = float(late.mean() / early.mean()), float(late.std(ddof=1) / np.sqrt(len(late)) / abs(early.mean()))
    text = f"the extra cost is borne in the first {data['time'][turn]:.0f} h (cost per hour after, over before)"
    claims = [
        bounded("late_slope", text, ratio, error, most=0.2),
        Claim(
            "extra_early", f"extra cost of the first {data['time'][turn]:.0f} h, in crawls", *mean_error(paths[:, turn])
        ),
        Claim("extra_all", f"extra cost of all {params['horizon']:.0f} h", *mean_error(paths[:, -1])),
    ]
    return claims, data | {"mark": params["horizon"] / 8, "label": "known r = 1/3"}


def _judge_suboptimal(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    paths, data = _path_data(params, rows)
    gain, error = mean_error(-paths[:, -1])
    later = data["time"] >= params["horizon"] / 4
    time, mean = data["time"][later], data["mean"][later]
    slope, start = np.polyfit(time, mean, 1)
    linear = float(1 - np.var(mean - slope * time - start) / np.var(mean))
    known, optimal = refresh_cost([params["ratio"], RATIO], INTERVAL, 1.0, 1.0)
    claims = [
        bounded(
            "gain",
            f"unknown at 1/3 is cheaper than known at 0.8 over {params['horizon']:.0f} h (crawls saved)",
            gain,
            error,
            least=0.0,
        ),
        bounded("linear", "the gap grows linearly (R² of a line over the last three quarters)", linear, least=0.98),
        Claim(
            "slope",
            f"saved per hour there (the difference of the known-rate costs is {known - optimal:.4f})",
            float(-slope),
        ),
    ]
    return claims, data | {"mark": None, "label": "known r = 0.8"}


def _draw_path(canvas: Any, data: Row) -> None:
    axes = canvas.subplots()
    time, mean, error = (np.array(data[name]) for name in ("time", "mean", "error"))
    axes.plot(time, mean, color="#ee7733", label=f"unknown (r = 1/3) less {data['label']}")
    axes.fill_between(time, mean - 2 * error, mean + 2 * error, color="#ee7733", alpha=0.25, lw=0)
    axes.axhline(0.0, color="#999999", lw=0.8)
    if data["mark"]:
        axes.axvline(data["mark"], color="#999999", ls="--", label=f"{data['mark']:.0f} h")
    axes.set(xlabel="hours", ylabel="cost so far, unknown less known (crawls)")
    axes.legend(loc="lower right" if data["mark"] else "lower left")
    axes.grid(alpha=0.3)


def _times(horizon: float, ratio: float, full: int, quick: int) -> dict[str, Params]:
    every = {"horizon": horizon, "ratio": ratio, "points": 241}
    return {
        "tiny": {**every, "horizon": 400.0, "reps": 100},
        "quick": {**every, "reps": quick},
        "full": {**every, "reps": full},
    }


_GRID = sorted([*(round(0.10 + 0.03 * k, 2) for k in range(20)), RATIO, 0.8, 1.0])
_COSTS: dict[str, Params] = {
    "tiny": {"horizon": 300.0, "ratios": [0.2, RATIO, 0.6], "reps": 100},
    "quick": {"horizon": 1000.0, "ratios": _GRID, "reps": 1000},
    "full": {"horizon": 1000.0, "ratios": _GRID, "reps": 10_000},
}
FIGURES = [
    Figure(
        "grimes/unknown-cost", "Cost when the rate is estimated", _COSTS, _ratio_tasks, _costs, _judge_unknown,
        _draw_unknown,
    ),
    Figure(
        "grimes/convergence", "When the cost of estimating is borne", _times(12_000.0, RATIO, 1000, 200), _run_tasks,
        _paths, _judge_convergence, _draw_path,
    ),
    Figure(
        "grimes/suboptimal", "A poor ratio with the rate known", _times(1000.0, 0.8, 1000, 1000), _run_tasks, _paths,
        _judge_suboptimal, _draw_path,
    ),
]  # fmt: skip
