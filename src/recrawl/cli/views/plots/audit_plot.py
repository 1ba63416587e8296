"""Plot of audits: the freshness of each sample with its interval, beside the forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from recrawl._system.files import whole_file
from recrawl.cli.views.plots.plot_style import PLAIN
from recrawl.errors import ParameterError
from recrawl.estimate.audit import Audit


def draw_audits(audits: Sequence[Audit], path: Path) -> None:
    """Draw all audits into a file."""
    if not audits:
        raise ParameterError("no audit was made yet: there is nothing to draw")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(PLAIN):
        figure = Figure(figsize=(8, 4.5), dpi=120, layout="constrained")
        axes = figure.subplots()
        when: Any = [datetime.fromtimestamp(one.ended_at) for one in audits]
        ends = [one.interval for one in audits]
        below = [one.freshness - low for one, (low, _) in zip(audits, ends, strict=True)]
        above = [high - one.freshness for one, (_, high) in zip(audits, ends, strict=True)]
        share = [one.freshness for one in audits]
        axes.errorbar(
            when, share, [below, above], fmt="o", color="black", capsize=3, label=f"audited, {audits[-1].level:.0%}"
        )
        axes.plot(when, [one.forecast for one in audits], "D", color="crimson", ms=5, label="forecast")
        axes.set(ylabel="freshness, by importance", ylim=(min(low for low, _ in ends) - 0.05, 1.02))
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
        figure.autofmt_xdate()
        with whole_file(path) as partial:
            figure.savefig(partial)
