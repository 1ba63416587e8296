"""The picture of a demo: how fresh copies were over time, and where the requests went."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from recrawl._system.files import whole_file
from recrawl.cli.views.plots.plot_style import PANELS
from recrawl.demo.verdict import SecondHalf, Verdict

_LINES: dict[str, dict[str, Any]] = {
    "uniform": {"color": "0.55", "lw": 1.8, "ls": "--"},
    "nutch": {"color": "steelblue", "lw": 1.8},
}


def draw_verdict(verdict: Verdict, path: Path) -> None:
    """Draw both panels into a file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(PANELS):
        figure = Figure(figsize=(12, 4.8), dpi=130, layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1.15, 1])
        _draw_time(left, verdict)
        _draw_requests(figure, right, verdict)
        with whole_file(path) as partial:
            figure.savefig(partial)


def _draw_time(axes: Any, verdict: Verdict) -> None:
    width = verdict.seconds / max(len(verdict.truth.window_freshness), 1)

    def line(name: str, values: Any, mean: float, **style: Any) -> None:
        axes.plot(width * (np.arange(len(values)) + 0.5), values, label=f"{name}: {mean:.1%}", **style)

    for rival in verdict.rivals:
        line(rival.name, rival.run.window_freshness, rival.run.freshness, **_LINES[rival.name])
    without = verdict.without_signals
    if without is not None:
        line("without signals, live", without.run.window_freshness, without.run.freshness, color="darkorange", lw=1.8)
    line("recrawl, live", verdict.truth.window_freshness, verdict.truth.freshness, color="crimson", lw=2.6)
    start = verdict.trace.start
    axes.plot(
        [sample.at - start for sample in verdict.samples],
        [sample.freshness for sample in verdict.samples],
        color="black",
        lw=1.0,
        ls=":",
        label="what its engine expected",
    )
    if verdict.half is not None:
        _draw_forecast(axes, verdict.half, verdict)
    axes.set(
        xlabel="seconds (each stands for an hour)",
        ylabel="share of copies that are fresh, by importance",
        title=f"{len(verdict.trace)} pages, {verdict.budget:g} requests a second",
        xlim=(0, verdict.seconds),
    )
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.legend(loc="best", frameon=True, framealpha=0.8, edgecolor="none")  # lines may run behind it
    axes.grid(alpha=0.3)


def _draw_forecast(axes: Any, half: SecondHalf, verdict: Verdict) -> None:
    """The forecast of the second half, made when it began, with its interval."""
    forecast, when = half.forecast, [half.at - verdict.trace.start, verdict.seconds]
    axes.plot(when, [forecast.freshness] * 2, color="black", lw=1.0, ls="-.")
    label = f"forecast at half time: {forecast.freshness:.1%}; true: {half.freshness:.1%}"
    axes.fill_between(when, forecast.low, forecast.high, color="black", alpha=0.08, lw=0, label=label)


def _draw_requests(figure: Any, axes: Any, verdict: Verdict) -> None:
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import MaxNLocator

    trace, crawls = verdict.trace, verdict.truth.crawls
    rng = np.random.default_rng(0)
    jitter = rng.uniform(-0.25, 0.25, (2, len(trace)))  # many pages have the same counts
    importance = np.maximum(trace.importance, 1e-9)
    low, high = np.quantile(importance, [0.02, 0.98])
    dots = axes.scatter(
        np.maximum(verdict.changes + jitter[0], 0.0),
        np.maximum(crawls + jitter[1], 0.0),
        c=importance,
        norm=LogNorm(low, max(high, low * 1.01)),
        cmap="viridis",
        s=16,
        lw=0,
    )
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0) if low <= tick <= high]
    bar = figure.colorbar(dots, ax=axes, label="importance", extend="both", ticks=ticks)
    bar.ax.minorticks_off()
    bar.ax.set_yticklabels([f"{tick:g}" for tick in ticks])
    axes.set(
        xlabel=f"changes of a page in {verdict.seconds:g} s",
        ylabel="requests for it",
        title="Where the requests went",
        xscale="symlog",
    )
    axes.xaxis.set_major_formatter(lambda count, _: f"{count:g}")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
