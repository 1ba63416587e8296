"""Busa-Fekete et al., WWW 2025, Appendix E: precision and recall estimated from crawls (figures 10, 11)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.estimate.observations import Observations
from recrawl.estimate.signals.quality import estimate_signal_quality
from recrawl.reproduce.figure import Claim, Figure, Params, Row, Task, bounded, mean_error

Array = NDArray[np.float64]

_SETTINGS: dict[str, Params] = {
    "tiny": {"horizon": 3000.0, "pages": 10, "reps": 2},
    "quick": {"horizon": 1e5, "pages": 20, "reps": 5},
    "full": {"horizon": 1e5, "pages": 20, "reps": 50},
}


def signalled_pages(n: int, horizon: float, rng: np.random.Generator) -> tuple[dict[str, Array], Observations]:
    """Precision, recall ~ U[.2, .95], mean change interval ~ U[2, 20], crawl rate ¼ to 4 times the change rate."""
    true = {"precision": rng.uniform(0.2, 0.95, n), "recall": rng.uniform(0.2, 0.95, n)}
    rate = 1 / rng.uniform(2, 20, n)
    crawl_rate = rate * 2.0 ** rng.uniform(-2, 2, n)
    true |= {"change_rate": rate, "false_rate": true["recall"] * rate * (1 / true["precision"] - 1)}
    true["ratio"] = crawl_rate / rate
    gaps = [np.diff(np.sort(rng.uniform(0, horizon, rng.poisson(c * horizon))), prepend=0.0) for c in crawl_rate]
    interval = np.concatenate(gaps)
    page = np.repeat(np.arange(n), [len(g) for g in gaps])
    hits = rng.poisson((true["recall"] * rate)[page] * interval)
    missed = rng.poisson(((1 - true["recall"]) * rate)[page] * interval)
    signals = hits + rng.poisson(true["false_rate"][page] * interval)
    return true, Observations.from_pages(page, interval, hits + missed > 0, signals, n_pages=n)


def _tasks(params: Params) -> list[Task]:
    return [Task({"rep": rep}, params["pages"] * params["horizon"] * 1e-7) for rep in range(params["reps"])]


def _worker(method: Literal["naive", "mle"]) -> Callable[[Params, Row, np.random.Generator], Row]:
    def work(params: Params, key: Row, rng: np.random.Generator) -> Row:
        true, seen = signalled_pages(params["pages"], params["horizon"], rng)
        found = estimate_signal_quality(seen, method)
        row: Row = {f"true_{name}": true[name] for name in ("precision", "recall")}
        return row | {name: getattr(found, name)[:, 0] for name in ("precision", "recall")} | {"ratio": true["ratio"]}

    return work


def _joined(rows: list[Row]) -> dict[str, Array]:
    return {name: np.concatenate([np.asarray(row[name]) for row in rows]) for name in rows[0] if name != "rep"}


def _judge10(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    pages = _joined(rows)
    claims = []
    for name in ("precision", "recall"):
        bias, error = mean_error(pages[name] - pages[f"true_{name}"])
        text = f"the naive estimator of {name} is biased (mean error, about 0.2)"
        claims.append(bounded(f"{name}_bias", text, bias, error, least=0.1, paper="clearly biased"))
    return claims, {name: column.round(5) for name, column in pages.items()}


def _judge11(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    pages = _joined(rows)
    claims = []
    for name in ("precision", "recall"):
        miss = pages[name] - pages[f"true_{name}"]
        bias, error = mean_error(miss)
        text = f"the MLE of {name} is unbiased (mean error within 0.002)"
        most = max(0.002, 3 * error)
        claims.append(bounded(f"{name}_error", text, abs(bias), error, most=most, paper="error of the order of 1e-4"))
        low, high = np.quantile(np.abs(miss), [0.05, 0.95])
        text = f"{name}: single runs miss by {low:.1e} (5%) to {high:.1e} (95%); the 95% figure"
        claims.append(bounded(f"{name}_single", text, float(high), most=0.04, paper="4e-4 to 4e-2"))
    return claims, {name: column.round(5) for name, column in pages.items()}


def _draw(canvas: Any, data: Row) -> None:
    for axes, name in zip(canvas.subplots(1, 2), ("precision", "recall"), strict=True):
        colour = np.log2(data["ratio"])
        dots = axes.scatter(data[f"true_{name}"], data[name], s=10, c=colour, cmap="viridis", lw=0)
        axes.plot([0, 1], [0, 1], color="#999999", lw=0.8, zorder=0)
        axes.set(title=name, xlabel="true", ylabel="estimated", xlim=(0, 1), ylim=(0, 1))
    canvas.colorbar(dots, ax=axes, label="log2 (crawl rate / change rate)")


_naive, _mle = _worker("naive"), _worker("mle")
_STREAM, _SIZE = "appendix-e", (10.0, 4.6)
FIGURES = [
    Figure(
        "busafekete2025/fig10",
        "The naive estimator of signal quality",
        _SETTINGS,
        _tasks,
        _naive,
        _judge10,
        _draw,
        _STREAM,
        _SIZE,
    ),
    Figure(
        "busafekete2025/fig11", "The MLE of signal quality", _SETTINGS, _tasks, _mle, _judge11, _draw, _STREAM, _SIZE
    ),
]
