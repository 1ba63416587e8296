"""Azar et al., PNAS 2018: the deadline schedule of the exact optimum, and which pages are crawled (figures 1, 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.model.freshness import page_freshness
from recrawl.model.pages import Pages
from recrawl.reproduce._draw import poisson_trace
from recrawl.reproduce.figure import Claim, Figure, Params, Row, Task, bounded, column, mean_error
from recrawl.reproduce.pictures import draw_heat
from recrawl.schedule.rates import proportional_rates
from recrawl.simulate.policies import planned
from recrawl.simulate.run import Contender, simulate
from recrawl.solver.solve import solve

_LINES = {
    "EDF on the exact solution": "#228833", "even-spacing optimum": "#cc3311", "utility-proportional": "#4477aa",
    "change-proportional": "#ee7733", "uniform": "#bbbbbb",
}  # fmt: skip


def utilities(kind: str, n: int, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.float64]]:
    """U[0, 1], or Zipf with exponent 2 on 1 … 10000."""
    if kind == "uniform":
        return rng.random(n)
    share = 1.0 / np.arange(1, 10_001) ** 2
    return rng.choice(np.arange(1.0, 10_001), n, p=share / share.sum())


def _tasks(params: Params) -> list[Task]:
    return [
        Task({"utility": kind, "share": share, "rep": rep}, params["horizon"] * share * 1e-3 + 0.2)
        for kind in ("uniform", "zipf")
        for share in params["shares"]
        for rep in range(params["reps"])
    ]


def _freshness(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """Freshness at a budget of ``share`` times all changes: EDF simulated after a warm-up, the rest by formula."""
    pages = Pages(rng.random(params["pages"]), utilities(key["utility"], params["pages"], rng))
    budget = key["share"] * float(pages.change_rate.sum())
    trace = poisson_trace(pages, params["horizon"], rng)
    run = simulate(Contender("EDF", planned("deadline", "random")), trace, budget, count_from=params["horizon"] / 3)
    exact = solve(pages, budget, spacing="random").crawl_rate
    rates = {
        "even-spacing optimum": solve(pages, budget).crawl_rate,
        "utility-proportional": proportional_rates(pages.importance, budget),
        "change-proportional": proportional_rates(pages.change_rate, budget),
        "uniform": np.full(len(pages), budget / len(pages)),
        "exact solution, evenly spaced": exact,
    }
    weight = pages.importance / pages.importance.sum()
    row: Row = {name: float(weight @ page_freshness(pages, rate)) for name, rate in rates.items()}
    return row | {"EDF on the exact solution": run.freshness}


def _judge1(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    data: Row = {"shares": params["shares"]}
    claims = []
    for kind in ("uniform", "zipf"):
        ratios, lines = [], {}
        for share in params["shares"]:
            chosen = {name: column(rows, name, utility=kind, share=share) for name in rows[0] if isinstance(rows[0][name], float) and name != "share"}
            best = chosen["even-spacing optimum"]
            ratios.append((share, *mean_error(chosen["EDF on the exact solution"] / best), float(np.mean(chosen["exact solution, evenly spaced"] / best))))
            lines[f"{share:g}"] = {name: mean_error(values) for name, values in chosen.items()}
        data[kind] = {name: {"mean": [lines[s][name][0] for s in lines], "error": [lines[s][name][1] for s in lines]} for name in _LINES}
        data[kind]["ratio"] = ratios
        share, least, error, _ = min(ratios, key=lambda entry: entry[1])
        claims.append(bounded(f"least_{kind}", f"EDF at least 98% of the optimum at all budgets, {kind} utilities (least, at {share:g}·ΣΔ)", least, error, least=0.98, paper=0.99))
        ample = [entry for entry in ratios if entry[0] >= 0.4] or ratios
        share, least, error, _ = min(ample, key=lambda entry: entry[1])
        claims.append(bounded(f"ample_{kind}", f"at least 99% from 0.4·ΣΔ, {kind} (least, at {share:g}·ΣΔ)", least, error, least=0.99, paper=0.99))
        formula = min(entry[3] for entry in ratios)
        claims.append(bounded(f"formula_{kind}", f"the same by formula, crawls exactly even, {kind} (least)", formula, least=0.98))
        below = min(data[kind]["EDF on the exact solution"]["mean"][i] - data[kind][name]["mean"][i] for name in list(_LINES)[2:] for i in range(len(ratios)))
        claims.append(bounded(f"rules_{kind}", f"utility-, change-proportional and uniform below, {kind} (smallest distance)", below, least=0.0))
    return claims, data


def _draw1(canvas: Any, data: Row) -> None:
    for axes, kind in zip(canvas.subplots(1, 2, sharey=True), ("uniform", "zipf"), strict=True):
        for name, colour in _LINES.items():
            style = "--" if name == "even-spacing optimum" else "o-"
            axes.errorbar(data["shares"], data[kind][name]["mean"], [2 * e for e in data[kind][name]["error"]], fmt=style, ms=4, color=colour, label=name)
        axes.set(xscale="log", xlabel="budget / all changes", ylabel="freshness", title=f"{kind} utilities", ylim=(0, 1))
        axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _plane(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """Optimal rates (problem 2) of pages spread over the (Δ, μ) plane."""
    side = (np.arange(params["side"]) + 0.5) / params["side"]
    change_rate, importance = (grid.ravel() for grid in np.meshgrid(side, side))
    plan = solve(Pages(change_rate, importance), 0.25 * len(change_rate), spacing="random")
    crawled = np.asarray(plan.crawl_rate) > 0
    return {
        "side": side,
        "crawl_rate": np.reshape(plan.crawl_rate, (params["side"], -1)),
        "threshold": plan.threshold,
        "misplaced": int(np.count_nonzero(crawled != (importance > plan.threshold * change_rate))),
        "gap": plan.gap,
    }


def _judge2(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    text = "pages are crawled exactly where importance > threshold × change rate (pages on the wrong side)"
    claims = [bounded("misplaced", text, rows[0]["misplaced"], most=0.0)]
    return [*claims, bounded("gap", "bound on the distance from the optimum", rows[0]["gap"], most=1e-9)], rows[0]


def _draw2(canvas: Any, data: Row) -> None:
    axes = canvas.subplots()
    draw_heat(canvas, axes, data["side"], data["side"], np.array(data["crawl_rate"]), "crawls per time")
    ends = np.array([0.0, 1.0])
    axes.plot(ends, data["threshold"] * ends, color="#cc3311", label="importance = threshold × change rate")
    axes.set(xlabel="change rate", ylabel="importance", xlim=(0, 1), ylim=(0, 1), title="Optimal crawl rate (budget: 0.25 per page)")
    axes.legend(loc="lower right", labelcolor="white")


_SETTINGS1: dict[str, Params] = {
    "tiny": {"pages": 30, "horizon": 30.0, "shares": [0.1, 1.0], "reps": 2},
    "quick": {"pages": 1000, "horizon": 300.0, "shares": [0.05, 0.1, 0.2, 0.4, 1.0, 2.0, 4.0], "reps": 4},
    "full": {"pages": 1000, "horizon": 1000.0, "shares": [0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 4.0], "reps": 20},
}
FIGURES = [
    Figure("azar2018/fig1", "The deadline schedule beside the optimum", _SETTINGS1, _tasks, _freshness, _judge1, _draw1, size=(10.0, 4.6)),
    Figure("azar2018/fig2", "Which pages are crawled", {"tiny": {"side": 20}, "quick": {"side": 100}, "full": {"side": 200}}, lambda params: [Task({"part": 0}, 1.0)], _plane, _judge2, _draw2, size=(6.6, 5.2)),
]  # fmt: skip
