"""Plot of signals: precision and recall of each source on each host, with intervals, and when it counted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from recrawl._system.files import whole_file
from recrawl.cli.views.plots.plot_style import PANELS
from recrawl.errors import ParameterError

_TITLES = {"precision": "signals with a change behind", "recall": "changes that are signalled"}
_MOST = 100  # rows
_UNITS = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}  # in seconds; the first that fits is used


def draw_signals(hosts: Sequence[dict[str, Any]], path: Path, now: float) -> None:
    """Draw rows of ``signals_report.figures`` into a file; sources that do not count are hollow.

    A third panel shows when signals counted, if that is known of a row.
    """
    shown = [one for one in hosts if one["precision"] is not None][:_MOST]
    if not shown:
        raise ParameterError("no signal was followed by a crawl: there is nothing to draw")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    names = sorted({one["source"] for one in shown})
    with mpl.rc_context(PANELS):
        figure = Figure(figsize=(11, 1.6 + 0.28 * len(shown)), dpi=120, layout="constrained")
        timed = any(one["turns"] for one in shown)
        panels = figure.subplots(1, 3 if timed else 2, sharey=True)
        if timed:
            _draw_trust(panels[2], shown, names, now)
        for axes, (kind, title) in zip(panels[:2], _TITLES.items(), strict=True):
            for name in names:
                _draw_source(axes, [(k, one) for k, one in enumerate(shown) if one["source"] == name], kind, names)
            axes.set(title=f"{kind}:\n{title}", xlim=(-0.02, 1.02))
            axes.grid(alpha=0.3)
        panels[0].set_yticks(range(len(shown)), [f"{one['source']}  {one['host']}" for one in shown])
        panels[0].set_ylim(len(shown) - 0.5, -0.5)
        panels[1].set_xlabel("90% intervals; hollow: not counted")
        with whole_file(path) as partial:
            figure.savefig(partial)


def _draw_source(axes: Any, rows: Sequence[tuple[int, dict[str, Any]]], kind: str, names: Sequence[str]) -> None:
    """The points and intervals of one source."""
    for k, one in rows:
        share, color = one[kind], f"C{names.index(one['source']) % 10}"
        if share is None:
            continue
        ends = [[share["mean"] - share["low"]], [share["high"] - share["mean"]]]
        face = color if one["counts"] else "white"
        axes.errorbar([share["mean"]], [k], xerr=ends, fmt="o", color=color, mfc=face, capsize=3)


def _draw_trust(axes: Any, shown: Sequence[dict[str, Any]], names: Sequence[str], now: float) -> None:
    """A bar for each time in which the signals of a row counted."""
    longest = max(now - turn["at"] for one in shown for turn in one["turns"])
    unit = next((name for name, seconds in _UNITS.items() if longest >= 2.0 * seconds), "seconds")
    for k, one in enumerate(shown):
        for turn, following in zip_longest(one["turns"], one["turns"][1:]):
            if turn["counts"]:
                end = now if following is None else following["at"]
                ago = [(at - now) / _UNITS[unit] for at in (turn["at"], end)]
                axes.plot(ago, [k, k], color=f"C{names.index(one['source']) % 10}", lw=5, solid_capstyle="butt")
    axes.set(title="trust:\nwhen its signals counted", xlabel=f"{unit} before now")
    axes.grid(alpha=0.3)
