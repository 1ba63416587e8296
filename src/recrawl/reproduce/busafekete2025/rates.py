"""Busa-Fekete et al., WWW 2025: how often each page is crawled, beside the optimal rates (figures 7, 12, 13, 14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.reproduce.busafekete2025.figures import POLICIES
from recrawl.reproduce.figure import Claim, Figure, Params, Row, Task, bounded
from recrawl.simulate.run.policies import contender
from recrawl.simulate.run.run import simulate
from recrawl.simulate.worlds.population import uniform_pages
from recrawl.simulate.worlds.worlds import World
from recrawl.solver.solving import solve

Array = NDArray[np.float64]

_MANY, _FEW = 0.9, 0.1  # recall of pages with many and with few signals


def _settings(sizes: list[int], lines: list[str], quality: str) -> dict[str, Params]:
    every = {"lines": lines, "quality": quality, "budget": 100.0, "sizes": sizes}
    return {
        "tiny": {**every, "budget": 10.0, "sizes": [10, 30], "horizon": 12.0, "reps": 2},
        "quick": {**every, "horizon": 300.0, "reps": 3},
        "full": {**every, "horizon": 1000.0, "reps": 10},
    }


def _tasks(params: Params) -> list[Task]:
    seconds = len(params["lines"]) * params["horizon"] * params["budget"] / 60_000
    return [Task({"m": m, "rep": rep}, seconds) for m in params["sizes"] for rep in range(params["reps"])]


def _rates(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """Crawls per time of every page by each policy, and the optimal rates without and with signals."""
    pages = uniform_pages(key["m"], rng, params["quality"])
    trace = World("poisson", pages).draw(params["horizon"], rng)
    silent = replace(trace, signals=None)
    row: Row = {"optimal": solve(pages.replace(recall=0.0, false_rate=0.0), params["budget"]).crawl_rate}
    row |= {"optimal_signals": solve(pages, params["budget"]).crawl_rate, "change_rate": pages.change_rate}
    row |= {"recall": pages.recall, "false_rate": pages.false_rate}
    for line in params["lines"]:
        seen = silent if line in ("GREEDY", "LDS") else trace
        row[line] = simulate(contender(POLICIES[line]), seen, params["budget"]).crawls / params["horizon"]
    return row


def _joined(rows: list[Row], m: int) -> dict[str, Array]:
    """The pages of all instances of a size, as columns."""
    chosen = [row for row in rows if row["m"] == m]
    return {k: np.concatenate([np.atleast_1d(row[k]) for row in chosen]) for k in chosen[0] if k not in ("m", "rep")}


def _data(params: Params, rows: list[Row], colour: str) -> Row:
    panels = []
    for m in params["sizes"]:
        pages = _joined(rows, m)
        columns = {name: pages[name].round(5) for name in ("optimal", colour, *params["lines"]) if name in pages}
        panels.append({"m": m, "colour": colour, "lines": params["lines"], **columns})
    return {"panels": panels}


def _judge7(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    worst, spread = 0.0, []
    for m in params["sizes"]:
        pages = _joined(rows, m)
        worst = max(worst, float(np.abs(pages["LDS"] - pages["optimal"]).max()) * params["horizon"])
        spread.append(float(np.corrcoef(pages["GREEDY"], pages["optimal"])[0, 1]))
    claims = [
        bounded("lds_deviation", "LDS lies on the diagonal (farthest page, in crawls)", worst, most=1.0 + 1e-6),
        Claim("greedy_correlation", "GREEDY's rates beside the optimal ones (least correlation)", min(spread)),
    ]
    return claims, _data(params, rows, "change_rate")


def _ratio(pages: dict[str, Array], line: str, chosen: NDArray[np.bool_], to: str = "optimal") -> float:
    """Crawls of some pages by a policy, divided by those at the optimal rates."""
    return float(pages[line][chosen].sum() / max(pages[to][chosen].sum(), 1e-12))


def _judge12(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    first, last = (_joined(rows, m) for m in (params["sizes"][0], params["sizes"][-1]))
    names = [f"m = {m}" for m in (params["sizes"][0], params["sizes"][-1])]
    many = _ratio(first, "CIS", first["recall"] > _MANY)
    few = _ratio(first, "CIS", first["recall"] < _FEW)
    tight = _ratio(last, "CIS", last["recall"] < _FEW)
    claims = [
        bounded(
            "many_signals", f"{names[0]}: CIS crawls pages with many signals less than BASELINE (ratio)", many, most=1.0
        ),
        bounded("few_signals", f"{names[0]}: and pages with few signals more (ratio)", few, least=1.0),
        bounded(
            "few_signals_tight",
            f"{names[1]}: pages with few signals stay near BASELINE (ratio)",
            tight,
            least=0.8,
            most=1.2,
        ),
    ]
    return claims, _data(params, rows, "recall")


def _judge13(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    m = params["sizes"][-1]
    pages = _joined(rows, m)
    signalled = pages["recall"] > _MANY
    fast = _ratio(pages, "CIS", signalled & (pages["change_rate"] > 0.5))
    slow = _ratio(pages, "CIS", signalled & (pages["change_rate"] <= 0.5))
    claims = [
        bounded(
            "fast_boost",
            f"m = {m}: CIS crawls fast pages with many signals more than BASELINE (ratio)",
            fast,
            least=1.0,
        ),
        bounded("slow_cut", f"m = {m}: and slow ones less (ratio)", slow, most=1.0),
    ]
    return claims, _data(params, rows, "change_rate")


def _judge14(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    """Excess: the share of the budget spent above the pages' optimal rates with signals."""
    excess: dict[str, list[float]] = {"CIS": [], "NCIS": []}
    for m in params["sizes"]:
        pages = _joined(rows, m)
        for line, found in excess.items():
            found.append(float(np.maximum(pages[line] - pages["optimal_signals"], 0).sum() / pages[line].sum()))
    more = min(cis - ncis for cis, ncis in zip(excess["CIS"], excess["NCIS"], strict=True))
    where = f"at m = {params['sizes'][-1]}"
    claims = [
        bounded(
            "cis_excess",
            "CIS wastes more of the budget beyond the optimal rates than NCIS (least difference)",
            more,
            least=0.0,
        ),
        Claim("cis_share", f"share of CIS's crawls beyond the optimal rates {where}", excess["CIS"][-1]),
        bounded(
            "ncis_share",
            f"NCIS does not over-crawl (share beyond the optimal rates {where})",
            excess["NCIS"][-1],
            most=0.1,
        ),
    ]
    return claims, _data(params, rows, "recall")


def _draw(canvas: Any, data: Row) -> None:
    panels = data["panels"]
    grid = canvas.subplots(len(panels), len(panels[0]["lines"]), squeeze=False)
    for line, panel in zip(grid, panels, strict=True):
        for axes, name in zip(line, panel["lines"], strict=True):
            colour = panel.get(panel["colour"])
            dots = axes.scatter(panel["optimal"], panel[name], s=6, c=colour, cmap="coolwarm", vmin=0, vmax=1, lw=0)
            top = max(max(panel["optimal"]), float(np.quantile(panel[name], 0.995)))
            axes.plot([0, top], [0, top], color="#999999", lw=0.8, zorder=0)
            axes.set(
                title=f"{name}, m = {panel['m']}",
                xlabel="rate of BASELINE",
                ylabel="crawls per time",
                ylim=(0, top * 1.05),
            )
        canvas.colorbar(dots, ax=list(line), label=panel["colour"].replace("_", " "))


def _figure(id: str, title: str, setting: dict[str, Params], judge: Callable[..., Any], stream: str = "") -> Figure:
    width = 4.2 * len(setting["full"]["lines"])
    return Figure(f"busafekete2025/{id}", title, setting, _tasks, _rates, judge, _draw, stream, (width, 7.5))


_TRUE = _settings([100, 300], ["GREEDY", "CIS"], "proof")
FIGURES = [
    _figure("fig7", "Crawl rates without signals", _settings([100, 500], ["GREEDY", "LDS"], "none"), _judge7),
    _figure("fig12", "Crawl rates with true signals, by recall", _TRUE, _judge12, "fig12"),
    _figure("fig13", "Crawl rates with true signals, by change rate", _TRUE, _judge13, "fig12"),
    _figure(
        "fig14", "Crawl rates with noisy signals", _settings([100, 300], ["GREEDY", "CIS", "NCIS"], "noisy"), _judge14
    ),
]
