"""Grimes et al.: what it costs that the rate must be estimated (unknown-cost to changed-share)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.model.refresh_cost import refresh_cost
from recrawl.reproduce.figure import Claim, Figure, Params, Row, Task, bounded, column, mean_error
from recrawl.reproduce.grimes import INTERVAL, simulated_pages, total_cost
from recrawl.simulate.learning import Visits, visits_by_estimate, visits_every

Array = NDArray[np.float64]

_RATIO = 1 / 3  # the paper's rounding of the cheapest ratio
_CHUNK = 50  # pages simulated together
_READING = "the paper does not say how it counts; here an interval counts if its crawl falls within the horizon"


def cost_over_time(visits: Visits, time: Array) -> Array:
    """Crawls plus hours of staleness of all pages together up to each time."""
    crawls = np.searchsorted(np.sort(visits.until[visits.whole]), time, side="right")
    stale = np.isfinite(visits.since)
    began, ended = np.sort(visits.since[stale]), np.sort(visits.until[stale])
    return np.asarray(crawls + _ramp(began, time) - _ramp(ended, time), np.float64)


def _ramp(at: Array, time: Array) -> Array:
    """Σ max(0, time − at)."""
    n = np.searchsorted(at, time, side="right")
    return np.asarray(n * time - np.concatenate([[0.0], np.cumsum(at)])[n])


# --- cost over the ratio ----------------------------------------------------------------------------------------------


def _ratio_tasks(params: Params) -> list[Task]:
    return [Task({"part": part}, len(params["ratios"]) * 0.05) for part in range(_parts(params["reps"]))]


def _parts(runs: int) -> int:
    return max(runs // _CHUNK, 2)


def _costs(params: Params, key: Row, rng: np.random.Generator) -> Row:
    trace = simulated_pages(min(_CHUNK, params["reps"]), params["horizon"], rng)
    row: Row = {"unknown": [], "known": []}
    for ratio in params["ratios"]:
        row["unknown"].append(total_cost(visits_by_estimate(trace, ratio)).mean() / params["horizon"])
        row["known"].append(total_cost(visits_every(trace, ratio * INTERVAL)).mean() / params["horizon"])
    return row


def _cheapest(ratio: Array, cost: Array) -> float:
    """Where a parabola through the points around the smallest has its minimum."""
    k = int(np.clip(np.argmin(cost), 3, len(cost) - 4)) if len(cost) > 7 else len(cost) // 2
    near = slice(max(k - 3, 0), k + 4)
    a, b, _ = np.polyfit(np.log(ratio[near]), cost[near], 2)
    return float(np.exp(-b / (2 * a)))


def _judge_unknown(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    ratio = np.array(params["ratios"])
    known, unknown = (np.array([row[name] for row in rows]) for name in ("known", "unknown"))
    at = int(np.argmin(np.abs(ratio - _RATIO)))
    extra, error = mean_error(unknown[:, at] - known[:, at])
    more = unknown.mean(axis=0) - known.mean(axis=0)
    crossings = ratio[1:][(more[1:] > 0) & (more[:-1] <= 0)]
    best = {name: _cheapest(ratio, costs.mean(axis=0)) for name, costs in (("known", known), ("unknown", unknown))}
    note = "early estimates are too long, and a smaller ratio makes up for it; over a longer time the two agree"
    claims = [
        bounded("extra_cost", f"not knowing the rate costs more near the optimum (per hour, at ratio {ratio[at]:.3g})", extra, error, least=0.0),
        bounded("same_ratio", "the cheapest ratio is the same as with the rate known (0.321)", best["unknown"], least=0.30, most=0.34, paper="the same", note=note),
        Claim("crossing", "below this ratio not knowing is cheaper", float(crossings[0]) if len(crossings) else None, paper="near .22 in a check"),
    ]
    spread = {f"{name}_error": costs.std(axis=0, ddof=1) / np.sqrt(len(costs)) for name, costs in (("known", known), ("unknown", unknown))}
    data = {"ratio": ratio, "known": known.mean(axis=0), "unknown": unknown.mean(axis=0), **spread}
    return claims, data | {"formula": refresh_cost(ratio, INTERVAL, 1.0, 1.0), "best": best}


def _draw_unknown(canvas: Any, data: Row) -> None:
    axes = canvas.subplots()
    axes.plot(data["ratio"], data["formula"], color="#228833", label="formula, rate known")
    for name, colour in (("known", "#4477aa"), ("unknown", "#cc3311")):
        error = [2 * e for e in data[f"{name}_error"]]
        axes.errorbar(data["ratio"], data[name], error, fmt="o-", ms=3, capsize=2, color=colour, label=f"simulated, rate {name} (cheapest {data['best'][name]:.2f})")
    axes.set(xlabel="crawl interval / (estimated) change interval", ylabel="cost per hour over 1000 h")
    axes.legend()
    axes.grid(alpha=0.3)


# --- cost over time ---------------------------------------------------------------------------------------------------


def _run_tasks(params: Params) -> list[Task]:
    seconds = params["horizon"] * 1e-4
    return [Task({"part": part}, seconds) for part in range(_parts(params["reps"]))]


def _paths(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """Mean cost so far, unknown at 1/3 less known at a ratio, in a chunk of pages."""
    runs = min(_CHUNK, params["reps"])
    trace = simulated_pages(runs, params["horizon"], rng)
    time = np.linspace(0.0, params["horizon"], params["points"])
    unknown = cost_over_time(visits_by_estimate(trace, _RATIO), time)
    return {"extra": (unknown - cost_over_time(visits_every(trace, params["ratio"] * INTERVAL), time)) / runs}


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
        Claim("extra_early", f"extra cost of the first {data['time'][turn]:.0f} h, in crawls", *mean_error(paths[:, turn])),
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
    known, optimal = refresh_cost([params["ratio"], _RATIO], INTERVAL, 1.0, 1.0)
    claims = [
        bounded("gain", f"unknown at 1/3 is cheaper than known at 0.8 over {params['horizon']:.0f} h (crawls saved)", gain, error, least=0.0),
        bounded("linear", "the gap grows linearly (R² of a line over the last three quarters)", linear, least=0.98),
        Claim("slope", "saved per hour there, beside the difference of the known-rate costs", float(-slope), paper=f"{known - optimal:.4f} by the formula"),
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
    axes.legend()
    axes.grid(alpha=0.3)


# --- shares of intervals ----------------------------------------------------------------------------------------------

_BINS = 13


def _shares(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """Intervals that ended very stale (8 h or more) and that saw a change; a histogram of how stale they were."""
    trace = simulated_pages(min(_CHUNK, params["reps"]), key["horizon"], rng)
    row: Row = {}
    for name, visits in (("unknown", visits_by_estimate(trace, _RATIO)), ("known", visits_every(trace, _RATIO * INTERVAL))):
        stale = visits.stale[visits.whole]
        row |= {f"{name}_intervals": len(stale), f"{name}_very": int((stale >= _RATIO * INTERVAL).sum())}
        row |= {f"{name}_changed": int((stale > 0).sum())}
        row[f"{name}_hours"] = np.bincount(np.minimum(stale[stale > 0], _BINS - 1).astype(int), minlength=_BINS)
    return row


def _share_tasks(params: Params) -> list[Task]:
    return [
        Task({"horizon": horizon, "part": part}, horizon * 1e-4)
        for horizon, runs in zip(params["horizons"], params["runs"], strict=True)
        for part in range(_parts(runs))
    ]


def _share(rows: list[Row], name: str, what: str, horizon: float) -> tuple[float, float]:
    part, whole = (column(rows, f"{name}_{end}", horizon=horizon) for end in (what, "intervals"))
    share = float(part.sum() / whole.sum())
    return share, float(np.std(part - share * whole, ddof=1) * np.sqrt(len(part)) / whole.sum())


def _judge_stale(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    short, long = (_share(rows, "unknown", "very", horizon) for horizon in params["horizons"])
    claims = [
        bounded("fall", "the share of very stale intervals falls with the horizon (by)", short[0] - long[0], least=0.0),
        bounded("known", "it is 0 when the rate is known", _share(rows, "known", "very", params["horizons"][0])[0], most=0.0, paper=0.0),
    ]
    for horizon, (ours, error), paper in zip(params["horizons"], (short, long), (0.091, 0.038), strict=True):
        text = f"share of intervals stale for 8 h or more, {horizon:.0f} h"
        claims.append(bounded(f"share_{horizon:.0f}", text, ours, error, least=paper - 4 * error, most=paper + 4 * error, paper=paper, note=_READING))
    hist = {name: np.sum([row[f"{name}_hours"] for row in rows if row["horizon"] == params["horizons"][0]], axis=0) for name in ("known", "unknown")}
    return claims, {name: counts / max(counts.sum(), 1) for name, counts in hist.items()}


def _draw_stale(canvas: Any, data: Row) -> None:
    axes = canvas.subplots()
    at = np.arange(_BINS)
    axes.bar(at - 0.2, data["known"], 0.4, color="#bbbbbb", label="rate known")
    axes.bar(at + 0.2, data["unknown"], 0.4, color="#4477aa", label="rate unknown")
    axes.axvline(7.5, color="#cc3311", ls="--", label="very stale from here")
    axes.set_xticks(at, [*map(str, at[:-1]), f"{_BINS - 1}+"])
    axes.set(xlabel="hours stale at the crawl", ylabel="share of intervals that saw a change", title="1000 h, crawl interval = 1/3 of the (estimated) change interval")
    axes.legend()


def _judge_changed(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    first, last = params["horizons"]
    known = _share(rows, "known", "changed", first)
    claims = [bounded("known", "intervals that saw a change, rate known (1 − e^{−1/3} = 0.2835)", *known, least=0.275, most=0.292, paper=0.283)]
    shares: dict[str, list[float]] = {"known": [], "unknown": []}
    for horizon, paper in ((first, 0.271), (last, 0.282)):
        ours, error = _share(rows, "unknown", "changed", horizon)
        text = f"the same, rate unknown, {horizon:.0f} h"
        claims.append(bounded(f"unknown_{horizon:.0f}", text, ours, error, least=paper - 4 * error, most=paper + 4 * error, paper=paper, note=_READING))
        for name, found in shares.items():
            found += _share(rows, name, "changed", horizon)
    nearer = abs(shares["unknown"][2] - known[0]) <= abs(shares["unknown"][0] - known[0])
    claims.append(bounded("nearer", "with time it tends to the known case (1: yes)", float(nearer), least=1.0))
    return claims, {"horizons": [first, last], **shares}


def _draw_changed(canvas: Any, data: Row) -> None:
    axes = canvas.subplots()
    at = np.arange(2)
    for shift, name, colour in ((-0.2, "known", "#bbbbbb"), (0.2, "unknown", "#4477aa")):
        axes.bar(at + shift, data[name][::2], 0.4, yerr=[2 * e for e in data[name][1::2]], capsize=4, color=colour, label=f"rate {name}")
    axes.plot(at, [0.271, 0.282], "D", color="#cc3311", label="the paper, unknown")
    axes.axhline(-np.expm1(-_RATIO), color="#999999", ls="--", label="1 − e^(−1/3)")
    axes.set_xticks(at, [f"{h:.0f} h" for h in data["horizons"]])
    axes.set(ylabel="share of intervals that saw a change", ylim=(0.2, 0.34))
    axes.legend()


def _times(horizon: float, ratio: float, full: int, quick: int) -> dict[str, Params]:
    every = {"horizon": horizon, "ratio": ratio, "points": 241}
    return {"tiny": {**every, "horizon": 400.0, "reps": 100}, "quick": {**every, "reps": quick}, "full": {**every, "reps": full}}


_GRID = sorted([*(round(0.10 + 0.03 * k, 2) for k in range(20)), _RATIO, 0.8, 1.0])
_COSTS: dict[str, Params] = {
    "tiny": {"horizon": 300.0, "ratios": [0.2, _RATIO, 0.6], "reps": 100},
    "quick": {"horizon": 1000.0, "ratios": _GRID, "reps": 1000},
    "full": {"horizon": 1000.0, "ratios": _GRID, "reps": 10_000},
}
_SHARES: dict[str, Params] = {
    "tiny": {"horizons": [300.0, 900.0], "runs": [100, 100], "reps": 100},
    "quick": {"horizons": [1000.0, 12_000.0], "runs": [1000, 200], "reps": 1000},
    "full": {"horizons": [1000.0, 12_000.0], "runs": [1000, 1000], "reps": 1000},
}
_Judge = Callable[[Params, list[Row]], tuple[list[Claim], Row]]
FIGURES = [
    Figure("grimes/unknown-cost", "Cost when the rate is estimated", _COSTS, _ratio_tasks, _costs, _judge_unknown, _draw_unknown),
    Figure("grimes/convergence", "When the cost of estimating is borne", _times(12_000.0, _RATIO, 1000, 200), _run_tasks, _paths, _judge_convergence, _draw_path),
    Figure("grimes/suboptimal", "A poor ratio with the rate known", _times(1000.0, 0.8, 1000, 1000), _run_tasks, _paths, _judge_suboptimal, _draw_path),
    Figure("grimes/very-stale", "Very stale intervals", _SHARES, _share_tasks, _shares, _judge_stale, _draw_stale, "shares"),
    Figure("grimes/changed-share", "Intervals that saw a change", _SHARES, _share_tasks, _shares, _judge_changed, _draw_changed, "shares"),
]
