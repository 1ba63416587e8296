"""Kolobov et al., NeurIPS 2019: harmonic and binary costs, complete signals, learning (figures 1, 2, 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.model.kinds import Objective
from recrawl.reproduce.figure import Claim, Figure, Params, Row, Task, bounded, column, mean_error
from recrawl.simulate.learning.learning import learn
from recrawl.simulate.learning.planners import PLANNERS, is_complete
from recrawl.simulate.worlds.population import bing_like

_SHARE = 0.2  # crawls per page and day
_COSTS: dict[str, Objective] = {"harmonic": "harmonic", "binary": "freshness"}
_KNOWN = ("LC", "LCA", "BLC-eps", "BLC", "CC", "UC")
_COMPLETE = ("LC", "LC-IO", "BLC-eps", "BLC")
_LEARNERS = {"LLC": "LC", "LLCA": "LCA", "BLLC-eps": "BLC-eps"}
_COLOURS = {"LLC": "#228833", "LLCA": "#4477aa", "BLLC-eps": "#ee7733"}


def _tasks(params: Params) -> list[Task]:
    return [Task({"rep": rep}, params["pages"] * params.get("weight", 2e-6)) for rep in range(params["reps"])]


def _known(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """Both costs per page of every planner that knows the rates."""
    pages = bing_like(params["pages"], rng)
    if params["complete_only"]:
        pages = pages[is_complete(pages)]
    row: Row = {}
    for name in _COMPLETE if params["complete_only"] else _KNOWN:
        planner = PLANNERS[name]
        rate = planner.rates(planner.sees(pages), _SHARE * len(pages))
        row |= {f"{name} {cost}": planner.cost(pages, rate, objective) for cost, objective in _COSTS.items()}
        row[f"{name} starved"] = float(np.mean(rate == 0))
    return row


def _bars(rows: list[Row], names: tuple[str, ...]) -> Row:
    bars: Row = {"names": list(names)}
    for cost in _COSTS:
        pairs = [_mean(rows, f"{name} {cost}") for name in names]
        bars[cost] = {"mean": [pair[0] for pair in pairs], "error": [pair[1] for pair in pairs]}
    return bars


def _mean(rows: list[Row], name: str) -> tuple[float, float]:
    values = [row[name] for row in rows]
    return (np.inf, 0.0) if None in values else mean_error(values)


def _saving(rows: list[Row], one: str, other: str) -> tuple[float, float]:
    """Share by which one cost lies below another."""
    return mean_error(1 - column(rows, one) / column(rows, other))


def _judge1(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    saving = _saving(rows, "LC harmonic", "BLC-eps harmonic")
    starved = float(column(rows, "BLC starved").min())
    worst = min(_mean(rows, f"{name} harmonic")[0] for name in ("CC", "UC")) / _mean(rows, "LC harmonic")[0]
    lowest = all(
        row["LC harmonic"] <= row[f"{name} harmonic"] for row in rows for name in ("LCA", "BLC-eps", "CC", "UC")
    )
    note = "the population is a stand-in"
    claims = [
        bounded("lowest", "LC has the lowest harmonic cost on every population (1: yes)", float(lowest), least=1.0),
        bounded("saving", "LC below BLC-eps in harmonic cost by", *saving, least=0.25, paper=0.35, note=note),
        bounded(
            "blc_infinite",
            "BLC starves pages, so its harmonic cost is infinite (1: yes)",
            float(starved > 0),
            least=1.0,
            paper="infinite",
        ),
        bounded("worst_ratio", "CC and UC far worse than LC in harmonic cost (smallest ratio)", worst, least=1.5),
        bounded(
            "binary",
            "BLC-eps does not beat LC in binary cost (LC below by)",
            *_saving(rows, "LC binary", "BLC-eps binary"),
            least=0.0,
        ),
    ]
    published = {"CC": (2144.0, 963.0), "UC": (1268.0, 628.0)}
    for name, figures in published.items():
        for cost, paper in zip(_COSTS, figures, strict=True):
            ours, error = _mean(rows, f"{name} {cost}")
            claims.append(
                bounded(
                    f"{name}_{cost}",
                    f"{cost} cost per page of {name}",
                    ours,
                    error,
                    least=0.9 * paper,
                    most=1.1 * paper,
                    paper=paper,
                )
            )
    return claims, _bars(rows, _KNOWN[:4])


def _judge2(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    claims = []
    for cost in _COSTS:
        best = [min(row[f"{name} {cost}"] or np.inf for name in _COMPLETE[1:]) for row in rows]
        saved = 1 - column(rows, f"LC {cost}") / np.array(best)
        mean, error = mean_error(saved)
        text = f"using the signals lowers the {cost} cost below the best that ignores them by"
        claims.append(bounded(f"saving_{cost}", text, mean, error, least=0.3, paper=0.5))
        half = float(np.mean(saved >= 0.5))
        note = "the population is a stand-in: the complete pages' rates are drawn like all others"
        claims.append(
            bounded(
                f"half_{cost}",
                f"by half or more on most populations ({cost}, share of them)",
                half,
                least=0.5,
                note=note,
            )
        )
    return claims, _bars(rows, _COMPLETE)


def _learning(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """Both costs, day by day, of planners that learn the rates, and when they know them."""
    pages = bing_like(params["pages"], rng)
    budget = _SHARE * len(pages)
    row: Row = {}
    for name, known in _LEARNERS.items():
        planner = PLANNERS[known]
        rate = planner.rates(planner.sees(pages), budget)
        paths: dict[str, list[float]] = {cost: [] for cost in _COSTS}
        for rates in learn(pages, budget, planner, rng, epochs=params["days"]):
            for cost, objective in _COSTS.items():
                paths[cost].append(planner.cost(pages, rates, objective))
        for cost, objective in _COSTS.items():
            row |= {f"{name} {cost}": paths[cost], f"{name} {cost} known": planner.cost(pages, rate, objective)}
    return row


def _judge3(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    data: Row = {}
    for name in _LEARNERS:
        for cost in _COSTS:
            paths = np.array([row[f"{name} {cost}"] for row in rows])
            error = paths.std(axis=0, ddof=1) / np.sqrt(len(paths)) if len(paths) > 1 else np.zeros(paths.shape[1])
            known = mean_error(column(rows, f"{name} {cost} known"))[0]
            data[f"{name} {cost}"] = {"mean": paths.mean(axis=0), "error": error, "known": known}
    claims, days = [], {}
    for name in _LEARNERS:
        own = "binary" if name == "BLLC-eps" else "harmonic"
        curve, ends = data[f"{name} {own}"], {cost: data[f"{name} {cost}"] for cost in _COSTS}
        away = np.abs(curve["mean"] - curve["known"])
        near = away <= 0.05 * curve["known"]
        days[name] = int(np.argmax(near)) + 1 if near.any() else len(near) + 1
        text = f"{name} converges to its known-rate {own} cost (last day's distance over the first's)"
        claims.append(bounded(f"remaining_{name}", text, float(away[-1] / max(away[0], 1e-300)), most=0.5))
        text = f"{name}: last day's harmonic cost over that with known rates"
        claims.append(
            bounded(f"end_{name}", text, float(ends["harmonic"]["mean"][-1] / ends["harmonic"]["known"]), most=1.05)
        )
    first = min(days, key=lambda name: days[name])
    text = "LLCA is fastest: days until within 5% of that cost (LLC {LLC}, BLLC-eps {BLLC-eps})".format(**days)
    claims.append(Claim("fastest", text, float(days["LLCA"]), paper="fastest", holds=days["LLCA"] <= days[first]))
    worse = data["LLCA harmonic"]["known"] / data["LLC harmonic"]["known"]
    claims.append(bounded("asymptote", "and its asymptote is worse than LLC's (ratio)", worse, least=1.0))
    return claims, data


def _draw_bars(canvas: Any, data: Row) -> None:
    for axes, cost in zip(canvas.subplots(1, 2), _COSTS, strict=True):
        mean = data[cost]["mean"]
        for at, (name, height) in enumerate(zip(data["names"], mean, strict=True)):
            if height is None:
                axes.text(
                    at, 0.02, "infinite", rotation=90, ha="center", va="bottom", transform=axes.get_xaxis_transform()
                )
                continue
            axes.bar(
                at,
                height,
                yerr=2 * data[cost]["error"][at],
                capsize=4,
                color="#4477aa" if name.startswith("LC") else "#bbbbbb",
            )
            axes.text(at, height + 2 * data[cost]["error"][at], f"{height:.0f}", ha="center", va="bottom", fontsize=9)
        axes.set_xticks(range(len(data["names"])), data["names"])
        axes.set(ylabel=f"{cost} cost per page", title=f"{cost} cost")


def _draw3(canvas: Any, data: Row) -> None:
    for axes, cost in zip(canvas.subplots(1, 2), _COSTS, strict=True):
        for name, colour in _COLOURS.items():
            curve = data[f"{name} {cost}"]
            mean, error = np.array(curve["mean"]), np.array(curve["error"])
            days = np.arange(1, len(mean) + 1)
            axes.plot(days, mean, color=colour, label=name)
            axes.fill_between(days, mean - 2 * error, mean + 2 * error, color=colour, alpha=0.2, lw=0)
            axes.axhline(curve["known"], color=colour, ls="--", lw=1)
        axes.set(xlabel="day", ylabel=f"{cost} cost per page")
        axes.grid(alpha=0.3)
    handles = axes.get_legend_handles_labels()
    canvas.legend(*handles, loc="outside lower center", ncols=3, title="dashed: rates known; bands: 2 standard errors")


def _settings(complete_only: bool) -> dict[str, Params]:
    every = {"complete_only": complete_only}
    return {
        "tiny": {**every, "pages": 500, "reps": 2},
        "quick": {**every, "pages": 100_000, "reps": 5},
        "full": {**every, "pages": 1_000_000, "reps": 20},
    }


_SETTINGS3: dict[str, Params] = {
    "tiny": {"pages": 300, "days": 3, "reps": 2, "weight": 1e-4},
    "quick": {"pages": 20_000, "days": 21, "reps": 4, "weight": 1e-4},
    "full": {"pages": 100_000, "days": 21, "reps": 20, "weight": 1e-4},
}
_SIZE = (10.0, 4.6)
FIGURES = [
    Figure(
        "kolobov2019/fig1",
        "Harmonic and binary cost, rates known",
        _settings(False),
        _tasks,
        _known,
        _judge1,
        _draw_bars,
        size=_SIZE,
    ),
    Figure(
        "kolobov2019/fig2",
        "What complete signals are worth",
        _settings(True),
        _tasks,
        _known,
        _judge2,
        _draw_bars,
        size=_SIZE,
    ),
    Figure("kolobov2019/fig3", "Learning the rates", _SETTINGS3, _tasks, _learning, _judge3, _draw3, size=_SIZE),
]
