"""Plot of a comparison: staleness against requests, one panel per world or trace, one line per policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recrawl._system.files import whole_file
from recrawl.cli.views.plots.plot_style import PLAIN
from recrawl.cli.views.simulate_report import source_name
from recrawl.model.budget import format_amount

Rows = Sequence[dict[str, Any]]
_OURS: dict[str, Any] = {
    "learned": {"color": "crimson", "lw": 3, "zorder": 5},
    "learned:none": {"color": "crimson", "lw": 2, "ls": "--", "zorder": 5},
    "known": {"color": "black", "lw": 1.5},
    "clairvoyant": {"color": "black", "lw": 1.5, "ls": ":"},
    "uniform": {"color": "0.55", "lw": 1.5, "ls": "--"},
}
_MARKS = "osv^D<>PX*h"


def draw_comparison(rows: Rows, path: Path) -> None:
    """Draw all panels into a file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    sources = list(dict.fromkeys(source_name(row) for row in rows))
    across = min(len(sources), 3)
    down = -(-len(sources) // across)
    with mpl.rc_context(PLAIN):
        figure = Figure(figsize=(5.2 * across + 2, 4.4 * down), dpi=120, layout="constrained")
        panels = figure.subplots(down, across, squeeze=False).flatten()
        for panel, source in zip(panels, sources, strict=False):
            draw_panel(panel, [row for row in rows if source_name(row) == source], title=source)
        for panel in panels[len(sources) :]:
            panel.set_axis_off()
        lines = {
            label: line for panel in panels for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        figure.legend(lines.values(), lines.keys(), loc="outside right center", frameon=False)
        with whole_file(path) as partial:
            figure.savefig(partial)


def draw_panel(axes: Any, rows: Rows, *, title: str, figure: str = "staleness") -> None:
    """Staleness against requests per page and day, both logarithmic."""
    from matplotlib.ticker import NullLocator

    for k, name in enumerate(dict.fromkeys(row["policy"] for row in rows)):
        these = sorted((row for row in rows if row["policy"] == name), key=_allowed)
        line = {"lw": 1.2, "color": f"C{k % 10}", **_OURS.get(name, {})}
        known = all(row["stderr"][figure] is not None for row in these)
        error = [row["stderr"][figure] for row in these] if known else None
        mark = "o" if name in _OURS else _MARKS[k % len(_MARKS)]
        x, y = [_allowed(row) for row in these], [row[figure] for row in these]
        axes.errorbar(x, y, error, marker=mark, ms=5, capsize=2, label=name, **line)
    axes.set(
        xscale="log",
        yscale="log",
        title=title,
        xlabel="requests allowed per page and day",
        ylabel="share of time stale",
    )
    budgets = sorted({float(f"{_allowed(row):.2g}") for row in rows})
    if len(budgets) <= 6:
        axes.set_xticks(budgets)
        axes.xaxis.set_minor_locator(NullLocator())
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda amount, _: format_amount(amount))
    axes.yaxis.set_minor_formatter(lambda amount, _: format_amount(amount) if f"{amount:e}"[0] in "25" else "")
    axes.grid(alpha=0.3)


def _allowed(row: dict[str, Any]) -> float:
    return float(row["per_page_day"])
