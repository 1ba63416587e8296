"""Plot of a plan: freshness against budget with the best and with equal rates, and the freshness of the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recrawl._system.files import whole_file
from recrawl.cli.views.plots.plot_style import PLAIN
from recrawl.model.budget import format_amount


def draw_plan(found: dict[str, Any], path: Path) -> None:
    """Draw the curves into a file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(PLAIN):
        figure = Figure(figsize=(8, 4.8), dpi=120, layout="constrained")
        axes = figure.subplots()
        curve, now = found["curve"], found["now"]
        x = [point["per_day"] for point in curve]
        axes.plot(x, [point["freshness"] for point in curve], color="crimson", lw=2.5, label="best schedule")
        low, high = ([point[end] for point in curve] for end in ("low", "high"))
        axes.fill_between(x, low, high, color="crimson", alpha=0.15, lw=0, label=f"{found['level']:.0%} interval")
        axes.plot(x, [point["alike"] for point in curve], color="0.5", ls="--", label="equal rates")
        error = [[now["freshness"] - now["low"]], [now["high"] - now["freshness"]]]
        axes.errorbar(
            [found["own_budget"]["per_day"]], [now["freshness"]], error, fmt="ko", capsize=4, label="the log so far"
        )
        if found["target"] is not None:
            axes.plot(found["target"]["per_day"], found["target"]["freshness"], "D", color="navy", label="target")
        axes.set(xscale="log", xlabel="crawls per day", ylabel="freshness, by importance")
        axes.xaxis.set_major_formatter(lambda amount, _: format_amount(amount))
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
        with whole_file(path) as partial:
            figure.savefig(partial)
