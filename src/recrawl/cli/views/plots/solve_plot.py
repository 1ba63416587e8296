"""Plot of a solved plan: rates over (change rate, importance), and freshness over budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from recrawl import Pages, Plan
from recrawl._system.files import whole_file
from recrawl.cli.shared.options.solve_request import Request
from recrawl.cli.views.plots.plot_style import PANELS
from recrawl.cli.views.solve_report import uniform_freshness
from recrawl.errors import ParameterError
from recrawl.model.budget import format_amount, format_rate
from recrawl.model.kinds import Spacing

_MOST_POINTS = 20_000
_MOST_SOLVED = 5_000
_FACTORS = np.geomspace(1 / 20, 20, 21)
_NOTE: Any = {"textcoords": "offset points", "ha": "right", "color": "crimson"}


def draw_solution(pages: Pages, plan: Plan, request: Request, path: Path) -> None:
    """Draw both panels into a file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(PANELS):
        figure = Figure(figsize=(12, 5), dpi=130, layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_rates(figure, left, pages, plan, request)
        _draw_budgets(right, pages, plan, request)
        with whole_file(path) as partial:
            figure.savefig(partial)


def _draw_rates(figure: Any, axes: Any, pages: Pages, plan: Plan, request: Request) -> None:
    from matplotlib.colors import LogNorm

    rate = np.asarray(plan.crawl_rate)
    shown = np.flatnonzero((pages.change_rate > 0) & (pages.importance > 0))
    shown = shown[systematic(len(shown), _MOST_POINTS)]
    crawled, idle = shown[rate[shown] > 0], shown[rate[shown] == 0]
    size = float(np.clip(20_000 / max(len(shown), 1), 3, 28))
    axes.set(xscale="log", yscale="log")
    if len(idle):
        axes.scatter(pages.change_rate[idle], pages.importance[idle], s=size, c="0.75", lw=0, label="never crawled")
    if len(crawled):
        low, high = np.quantile(rate[crawled], [0.01, 0.99])
        dots = axes.scatter(
            pages.change_rate[crawled],
            pages.importance[crawled],
            s=size,
            c=rate[crawled],
            norm=LogNorm(low, max(high, low * 1.01)),
            cmap="viridis",
            lw=0,
        )
        figure.colorbar(dots, ax=axes, label=f"crawls per {request.unit}", extend="both")
    if len(shown) and _has_line(pages, plan, request):
        _draw_line(axes, pages.change_rate[shown], plan.threshold)
    some = f" ({len(shown)} of {len(pages)} pages)" if len(shown) < len(pages) else ""
    axes.set(xlabel=f"changes per {request.unit}", ylabel="importance", title=f"Crawl rate of each page{some}")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, markerscale=(28 / size) ** 0.5)


def _has_line(pages: Pages, plan: Plan, request: Request) -> bool:
    plain = request.floor is None and not request.host_limit and bool(np.isinf(pages.evidence).all())
    same_cost = bool((pages.cost == 1).all())
    return request.objective == "freshness" and plain and same_cost and plan.threshold > 0


def _draw_line(axes: Any, change_rate: NDArray[np.float64], threshold: float) -> None:
    limits = axes.get_ylim()
    ends = np.array([change_rate.min(), change_rate.max()])
    axes.plot(ends, threshold * ends, color="crimson", lw=1.3, label="importance = threshold × change rate")
    axes.set_ylim(limits)


def _draw_budgets(axes: Any, pages: Pages, plan: Plan, request: Request) -> None:
    rows = np.sort(np.argsort(pages.importance, kind="stable")[systematic(len(pages), _MOST_SOLVED)])
    sample = pages[rows] if len(rows) < len(pages) else pages
    share = len(sample) / len(pages)
    spent = float(plan.budget if plan.budget is not None else plan.spent)
    budgets = spent * _FACTORS
    limits = _sampled_limits(request, sample, share)
    best = [_freshness_at(sample, request, budget * share, limits) for budget in budgets]
    bounds: Any = {"ceiling": request.bounds()[1], "limits": limits}
    uniform = [
        uniform_freshness(sample, budget * share, cast(Spacing, request.spacing), **bounds) for budget in budgets
    ]
    axes.plot(budgets, best, color="tab:blue", lw=2, label="best rates")
    axes.plot(budgets, uniform, color="0.5", lw=1.5, ls="--", label="equal rates")
    axes.plot([spent], [plan.freshness], "o", color="crimson", ms=8, zorder=3)
    here = f"{format_rate(spent, per=request.unit, unit=request.unit)}: {plan.freshness:.3f}"
    axes.annotate(here, (spent, plan.freshness), xytext=(-10, 8), **_NOTE)
    some = f"\n(curves: a sample of {len(sample)} of {len(pages)} pages)" if len(sample) < len(pages) else ""
    axes.set(xscale="log", ylim=(0, 1.02), title="Freshness over budget", ylabel="freshness")
    axes.set_xlabel(f"budget, crawls per {request.unit}{some}")
    axes.xaxis.set_major_formatter(lambda amount, _: format_amount(amount))
    axes.grid(alpha=0.3)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13 if not some else -0.18), ncols=2)


def _sampled_limits(request: Request, sample: Pages, share: float) -> dict[str, float] | None:
    limits = request.limits()
    if limits is None:
        return None
    present = set(np.unique(sample.host).tolist()) if sample.host is not None else set()
    return {host: limit * share for host, limit in limits.items() if host in present} or None


def _freshness_at(sample: Pages, request: Request, budget: float, limits: dict[str, float] | None) -> float:
    try:
        return float(request.solve_at(sample, {"budget": budget}, limits).freshness)
    except ParameterError:
        return float("nan")


def systematic(n: int, most: int) -> NDArray[np.intp]:
    """At most ``most`` indices of n, evenly spread.

    >>> systematic(10, 5).tolist()
    [1, 3, 5, 7, 9]
    """
    if n <= most:
        return np.arange(n)
    return ((np.arange(most) + 0.5) * (n / most)).astype(np.intp)
