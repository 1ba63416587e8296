"""Busa-Fekete et al., WWW 2025: a Bing-like population with misjudged signals (figure 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.model.pages import Pages
from recrawl.reproduce.figure import Claim, Figure, Params, Row, Task, bounded, column, mean_error
from recrawl.reproduce.pictures import draw_lines
from recrawl.simulate.run.policies import contender
from recrawl.simulate.run.run import Contender, simulate
from recrawl.simulate.trace import Trace
from recrawl.simulate.worlds.population import bing_signals
from recrawl.simulate.worlds.worlds import World

_MOST_FALSE = 4.0  # false signals per day: what a sitemap read every six hours can give
_NOISE = (0.0, 0.1, 0.2)
_LINES5 = {"GREEDY": "no-signals", "CIS+": "trusting-plus", "NCIS": "signals"}


def corrupted_world(n: int, rng: np.random.Generator) -> tuple[Pages, dict[float, Pages]]:
    """Bing-like pages with their true signal quality, and with noise p added to precision and recall.

    A precision near 0 stands for endless false signals (1/precision has no mean here), so there are at most four a day.
    """
    pages = bing_signals(n, rng, least_precision=1e-9)
    pages = pages.replace(false_rate=np.minimum(pages.false_rate, _MOST_FALSE))
    noise = rng.random((2, n))
    believed = {
        p: Pages.from_quality(
            pages.change_rate,
            pages.importance,
            precision=np.maximum((1 - p) * pages.precision + p * noise[0], 1e-9),
            recall=(1 - p) * pages.recall + p * noise[1],
        )
        for p in _NOISE
    }
    return pages, believed


def _bing(params: Params, key: Row, rng: np.random.Generator) -> Row:
    pages, believed = corrupted_world(params["pages"], rng)
    trace = World("poisson", pages).draw(params["steps"], rng)
    row: Row = {"signals_per_page": len(trace.signals.at) / len(pages) if trace.signals else 0.0}
    for line, policy in _LINES5.items():
        for p, noisy in believed.items():
            if line == "GREEDY" and p > 0:
                row[f"{line} {p:g}"] = row[f"{line} 0"]  # it does not look at quality
                continue
            runs = Contender(line, contender(policy).make, _adds(noisy))
            row[f"{line} {p:g}"] = simulate(runs, trace, params["pages"] * 0.05).freshness
    return row


def _adds(noisy: Pages) -> Any:
    def admit(policy: Any, trace: Trace, rows: NDArray[np.int64], now: float) -> Any:
        return policy.add(noisy[rows], now, fetched_at=now)

    return admit


def _judge5(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    lines: dict[str, dict[str, list[float]]] = {}
    for line in _LINES5:
        pairs = [mean_error(column(rows, f"{line} {p:g}")) for p in _NOISE]
        lines[line] = {"mean": [pair[0] for pair in pairs], "error": [pair[1] for pair in pairs]}

    def less(one: str, other: str) -> tuple[float, float]:
        return mean_error(column(rows, one) - column(rows, other))

    note = "believing signals of poor pages more than they deserve costs NCIS; CIS+ leaves those pages alone"
    fall = mean_error(
        (column(rows, "CIS+ 0") - column(rows, "CIS+ 0.2")) - (column(rows, "NCIS 0") - column(rows, "NCIS 0.2"))
    )
    claims = [
        bounded("over_greedy", "NCIS at least GREEDY, quality known exactly", *less("NCIS 0", "GREEDY 0"), least=0.0)
    ]
    claims.append(
        bounded("over_cis_plus", "NCIS at least CIS+, quality known exactly", *less("NCIS 0", "CIS+ 0"), least=0.0)
    )
    for p in _NOISE[1:]:
        for other, key in (("GREEDY", "over_greedy"), ("CIS+", "over_cis_plus")):
            difference = less(f"NCIS {p:g}", f"{other} {p:g}")
            claims.append(
                bounded(f"{key}_{p:g}", f"NCIS at least {other}, noise {p:g}", *difference, least=0.0, note=note)
            )
    claims.append(bounded("robust", "CIS+ loses more than NCIS as noise grows to 0.2", *fall, least=0.0, note=note))
    return claims, {"noise": list(_NOISE), "lines": lines}


def _draw5(canvas: Any, data: Row) -> None:
    axes = canvas.subplots()
    draw_lines(axes, data["noise"], data["lines"])
    axes.set(xlabel="share of noise in precision and recall", ylabel="accuracy (freshness)")
    axes.set_title("Bing-like pages, 5% crawled per step")


def _tasks(params: Params) -> list[Task]:
    return [Task({"rep": rep}, params["seconds"]) for rep in range(params["reps"])]


_SETTINGS: dict[str, Params] = {
    "tiny": {"pages": 200, "steps": 5.0, "reps": 2, "seconds": 0.1},
    "quick": {"pages": 10_000, "steps": 40.0, "reps": 3, "seconds": 8.0},
    "full": {"pages": 100_000, "steps": 200.0, "reps": 10, "seconds": 150.0},
}
_TITLE = "Misjudged signals on a Bing-like population"
FIGURES = [Figure("busafekete2025/fig5", _TITLE, _SETTINGS, _tasks, _bing, _judge5, _draw5)]
