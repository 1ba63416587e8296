"""Azar et al., PNAS 2018: the deadline schedule of the exact optimum, and which pages are crawled (figures 1, 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.model.freshness import page_freshness
from recrawl.model.pages import Pages
from recrawl.reproduce.figure import Claim, Figure, Params, Row, Task, bounded, column, mean_error
from recrawl.reproduce.pictures import draw_heat
from recrawl.schedule.rates.rules import proportional_rates
from recrawl.simulate.run.policies import planned
from recrawl.simulate.run.run import Contender, simulate
from recrawl.simulate.worlds.worlds import World
from recrawl.solver.solving import solve

_LINES = {
    "EDF on the exact solution": "#228833", "even-spacing optimum": "#cc3311", "utility-proportional": "#4477aa",
    "change-proportional": "#ee7733", "uniform": "#bbbbbb",
}  # fmt: skip
_EDF, _EVEN = "EDF on the exact solution", "exact solution, evenly spaced"
_RULES = ("utility-proportional", "change-proportional", "uniform")
_KINDS = ("uniform", "zipf")


def utilities(kind: str, n: int, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.float64]]:
    """U[0, 1], or Zipf with exponent 2 on 1 … 10000."""
    if kind == "uniform":
        return rng.random(n)
    share = 1.0 / np.arange(1, 10_001) ** 2
    return rng.choice(np.arange(1.0, 10_001), n, p=share / share.sum())


def _tasks(params: Params) -> list[Task]:
    seconds = params["horizon"] * (sum(params["shares"]) + 1.0) * 6e-4
    return [Task({"utility": kind, "rep": rep}, seconds) for kind in _KINDS for rep in range(params["reps"])]


def _freshness(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """Freshness at budgets of some shares of all changes: EDF simulated after a warm-up, the rest by formula."""
    pages = Pages(rng.random(params["pages"]), utilities(key["utility"], params["pages"], rng))
    trace = World("poisson", pages).draw(params["horizon"], rng)
    weight = pages.importance / pages.importance.sum()
    row: Row = {name: [] for name in (*_LINES, _EVEN)}
    for share in params["shares"]:
        budget = share * float(pages.change_rate.sum())
        rates = {
            "even-spacing optimum": solve(pages, budget).crawl_rate,
            "utility-proportional": proportional_rates(pages.importance, budget),
            "change-proportional": proportional_rates(pages.change_rate, budget),
            "uniform": np.full(len(pages), budget / len(pages)),
            _EVEN: solve(pages, budget, spacing="random").crawl_rate,
        }
        for name, rate in rates.items():
            row[name].append(float(weight @ page_freshness(pages, rate)))
        run = simulate(Contender("EDF", planned("deadline", "random")), trace, budget, count_from=trace.end / 3)
        row[_EDF].append(run.freshness)
    return row


def _judge1(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    data: Row = {"shares": params["shares"]}
    claims = []
    for kind in _KINDS:
        lines = {name: column(rows, name, utility=kind) for name in (*_LINES, _EVEN)}
        pairs = {name: [mean_error(values) for values in line.T] for name, line in lines.items()}
        data[kind] = {
            name: {"mean": [p[0] for p in line], "error": [p[1] for p in line]} for name, line in pairs.items()
        }
        claims += _claims(params["shares"], lines, kind)
    return claims, data


def _claims(shares: list[float], lines: dict[str, Any], kind: str) -> list[Claim]:
    best, edf = lines["even-spacing optimum"], lines[_EDF]
    ratios = [(*mean_error(ratio), share) for ratio, share in zip((edf / best).T, shares, strict=True)]
    least, error, share = min(ratios)
    text = f"{kind} utilities: EDF at least 98% of the optimum at all budgets (least, at {share:g}·ΣΔ)"
    claims = [bounded(f"least_{kind}", text, least, error, least=0.98, paper=0.99)]
    least, error, share = min([ratio for ratio in ratios if ratio[2] >= 0.4] or ratios)
    text = f"{kind} utilities: at least 99% from 0.4·ΣΔ (least, at {share:g}·ΣΔ)"
    claims.append(bounded(f"ample_{kind}", text, least, error, least=0.99, paper=0.99))
    formula = float((lines[_EVEN] / best).mean(axis=0).min())
    text = f"{kind} utilities: the same rates spaced exactly evenly, by formula (least)"
    claims.append(bounded(f"formula_{kind}", text, formula, least=0.98))
    below = min(float((edf - lines[rule]).mean(axis=0).min()) for rule in _RULES)
    text = f"{kind} utilities: utility-, change-proportional and uniform below (smallest distance)"
    return [*claims, bounded(f"rules_{kind}", text, below, least=0.0)]


def _draw1(canvas: Any, data: Row) -> None:
    for axes, kind in zip(canvas.subplots(1, 2, sharey=True), _KINDS, strict=True):
        for name, colour in _LINES.items():
            line = data[kind][name]
            style = "--" if name == "even-spacing optimum" else "o-"
            error = [2 * e for e in line["error"]]
            axes.errorbar(data["shares"], line["mean"], error, fmt=style, ms=4, capsize=3, color=colour, label=name)
        axes.set(xscale="log", xlabel="budget / all changes", ylabel="freshness", ylim=(0, 1))
        axes.set_title(f"{kind} utilities")
        axes.grid(alpha=0.3)
    canvas.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _once(params: Params) -> list[Task]:
    return [Task({"part": 0})]


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
    axes.set(
        xlabel="change rate",
        ylabel="importance",
        xlim=(0, 1),
        ylim=(0, 1),
        title="Optimal crawl rate (budget: 0.25 per page)",
    )
    axes.legend(loc="lower right", labelcolor="white")


_SETTINGS1: dict[str, Params] = {
    "tiny": {"pages": 30, "horizon": 30.0, "shares": [0.1, 1.0], "reps": 2},
    "quick": {"pages": 1000, "horizon": 300.0, "shares": [0.05, 0.1, 0.2, 0.4, 1.0, 2.0, 4.0], "reps": 4},
    "full": {"pages": 1000, "horizon": 1000.0, "shares": [0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 4.0], "reps": 20},
}
_SETTINGS2: dict[str, Params] = {"tiny": {"side": 20}, "quick": {"side": 100}, "full": {"side": 200}}
FIGURES = [
    Figure(
        "azar2018/fig1", "The deadline schedule beside the optimum", _SETTINGS1, _tasks, _freshness, _judge1, _draw1,
        size=(10.0, 5.0),
    ),
    Figure("azar2018/fig2", "Which pages are crawled", _SETTINGS2, _once, _plane, _judge2, _draw2, size=(6.6, 5.2)),
]  # fmt: skip
