"""Grimes et al.: cost of refreshing at a known change rate (cost-curve, cost-map, cost-lines)."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.model.cost import refresh_cost, refresh_ratio
from recrawl.model.pages import Pages
from recrawl.reproduce.figure import Claim, Figure, Params, Row, Task, bounded, mean_error
from recrawl.simulate.learning.learning import CrawlIntervals, crawls_every
from recrawl.simulate.trace import Trace
from recrawl.simulate.worlds.worlds import World

INTERVAL = 24.0  # mean time between changes, hours; a crawl costs 1, an hour of staleness 1
RATIO = 1 / 3  # the paper's rounding of the cheapest crawl interval, in units of the change interval
CHUNK = 50  # pages simulated together
RATIOS = [round(0.06 + 0.04 * k, 2) for k in range(25)]


def simulated_pages(runs: int, horizon: float, rng: np.random.Generator) -> Trace:
    """Pages that change every 24 hours on average, over a horizon."""
    return World("hours", Pages(np.full(runs, 1 / INTERVAL))).draw(horizon, rng)


def n_parts(runs: int) -> int:
    """Sizes of the chunks of some runs; at least two, for a standard error."""
    return max(runs // CHUNK, 2)


def total_cost(crawled: CrawlIntervals) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Crawls plus hours of staleness of every page."""
    crawls = np.diff(crawled.offset) - 1
    return np.asarray(crawls + np.add.reduceat(crawled.stale, crawled.offset[:-1]), np.float64)


def _curve_tasks(params: Params) -> list[Task]:
    return [Task({"ratio": ratio}, params["runs"] * 5e-5) for ratio in params["ratios"]]


def _known_cost(params: Params, key: Row, rng: np.random.Generator) -> Row:
    trace = simulated_pages(params["runs"], params["horizon"], rng)
    mean, error = mean_error(total_cost(crawls_every(trace, key["ratio"] * INTERVAL)) / params["horizon"])
    return {"cost": mean, "error": error}


def _judge_curve(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    ratio, cost, error = (np.array([row[name] for row in rows]) for name in ("ratio", "cost", "error"))
    formula = refresh_cost(ratio, INTERVAL, 1.0, 1.0)
    best = float(refresh_ratio(INTERVAL, 1.0, 1.0))
    off = float(np.abs(cost / formula - 1).max())
    claims = [
        bounded("deviation", "simulated cost equals the formula (largest relative difference)", off, most=0.03),
        bounded("best_ratio", "the cheapest ratio by the formula", best, least=0.32, most=0.322, paper=0.3),
        Claim("simulated_ratio", "the cheapest ratio of those simulated", float(ratio[np.argmin(cost)]), paper=0.3),
    ]
    return claims, {"ratio": ratio, "cost": cost, "error": error, "formula": formula, "best": best}


def _draw_curve(canvas: Any, data: Row) -> None:
    axes = canvas.subplots()
    axes.plot(data["ratio"], data["formula"], color="#228833", label="formula")
    axes.errorbar(
        data["ratio"], data["cost"], [2 * e for e in data["error"]], fmt="o", ms=4, color="#cc3311", label="simulated"
    )
    axes.axvline(data["best"], color="#999999", lw=1, ls="--", label=f"cheapest: {data['best']:.3f}")
    axes.set(
        xlabel="crawl interval / change interval",
        ylabel="cost per hour",
        title="Change interval 24 h, a crawl costs an hour of staleness",
    )
    axes.legend()
    axes.grid(alpha=0.3)


def _map(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """The cheapest ratio for crawl costs and staleness costs of 1 to 10 at 24 hours."""
    side = np.linspace(0.25, 10.0, params["side"])
    crawl, stale = np.meshgrid(side, side)
    return {"side": side, "ratio": refresh_ratio(INTERVAL, crawl, stale)}


def _judge_map(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    dear, cheap = (float(refresh_ratio(INTERVAL, *costs)) for costs in ((4.0, 1.0), (1.0, 4.0)))
    note = "the formula's value; the paper reads contours off a plot and says about"
    claims = [
        bounded(
            "dear_over_cheap", "dear crawls are spaced wider: ratio at 4:1 over ratio at 1:4", dear / cheap, least=2.0
        ),
        bounded(
            "dear", "ratio when a crawl costs four hours of staleness", dear, least=0.7, most=0.9, paper=0.8, note=note
        ),
        bounded(
            "cheap",
            "ratio when an hour of staleness costs four crawls",
            cheap,
            least=0.1,
            most=0.2,
            paper=0.15,
            note=note,
        ),
    ]
    return claims, rows[0]


def _draw_map(canvas: Any, data: Row) -> None:
    axes = canvas.subplots()
    ratio = np.array([[np.nan if r is None else r for r in line] for line in data["ratio"]])
    mesh = axes.pcolormesh(data["side"], data["side"], np.clip(ratio, 0, 2), cmap="viridis", shading="gouraud")
    lines = axes.contour(
        data["side"],
        data["side"],
        ratio,
        levels=[0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2, 1.6],
        colors="white",
        linewidths=0.9,
    )
    axes.clabel(lines, fontsize=8)
    canvas.colorbar(mesh, ax=axes, label="cheapest crawl interval / change interval")
    axes.set(xlabel="cost of a crawl", ylabel="cost of an hour of staleness", title="Change interval 24 h")


_COSTS = ((4.0, 1.0), (1.0, 1.0), (1.0, 4.0))


def _lines(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """The cheapest ratio over change intervals."""
    interval = np.geomspace(6.0, params["longest"], 120)
    return {"interval": interval, "ratios": [refresh_ratio(interval, crawl, stale) for crawl, stale in _COSTS]}


def _judge_lines(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    far = np.array([params["longest"] / 10, params["longest"]])
    slopes = [np.diff(np.log(refresh_ratio(far, *costs)))[0] / np.diff(np.log(far))[0] for costs in _COSTS]
    slope = float(max(slopes, key=lambda s: abs(s + 0.5)))
    text = "the ratio falls like the change interval to the power −1/2 (slope farthest from it, last decade)"
    far_off = float(refresh_ratio(far[1], 1.0, 1.0) * far[1] / np.sqrt(2 * far[1]))
    claims = [
        bounded("slope", text, slope, least=-0.55, most=-0.45, paper=-0.5),
        bounded(
            "asymptote", "interval over √(2·D·crawl/stale) at the longest D", far_off, least=0.95, most=1.05, paper=1.0
        ),
    ]
    return claims, rows[0]


def _draw_lines(canvas: Any, data: Row) -> None:
    axes = canvas.subplots()
    for (crawl, stale), ratio, colour in zip(_COSTS, data["ratios"], ("#228833", "#4477aa", "#cc3311"), strict=True):
        axes.plot(data["interval"], ratio, color=colour, label=f"crawl {crawl:g}, staleness {stale:g} per hour")
    axes.set(
        xscale="log", yscale="log", xlabel="change interval, hours", ylabel="cheapest crawl interval / change interval"
    )
    axes.legend()
    axes.grid(alpha=0.3, which="both")


def _once(params: Params) -> list[Task]:
    return [Task({"part": 0}, 0.1)]


_CURVE: dict[str, Params] = {
    "tiny": {"runs": 100, "horizon": 600.0, "ratios": [0.2, 0.3, 0.6]},
    "quick": {"runs": 1000, "horizon": 1000.0, "ratios": RATIOS},
    "full": {"runs": 10_000, "horizon": 1000.0, "ratios": RATIOS},
}
_MAP: dict[str, Params] = {"tiny": {"side": 12}, "quick": {"side": 120}, "full": {"side": 120}}
_LINES: dict[str, Params] = {name: {"longest": 1e4} for name in ("tiny", "quick", "full")}
FIGURES = [
    Figure(
        "grimes/cost-curve",
        "Cost over the crawl interval",
        _CURVE,
        _curve_tasks,
        _known_cost,
        _judge_curve,
        _draw_curve,
    ),
    Figure(
        "grimes/cost-map",
        "Cheapest interval over both costs",
        _MAP,
        _once,
        _map,
        _judge_map,
        _draw_map,
        size=(6.8, 5.2),
    ),
    Figure(
        "grimes/cost-lines",
        "Cheapest interval over the change interval",
        _LINES,
        _once,
        _lines,
        _judge_lines,
        _draw_lines,
    ),
]
