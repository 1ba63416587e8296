"""Drawing functions that several figures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

COLOURS = {
    "BASELINE": "#cc3311", "GREEDY": "#4477aa", "LDS": "#ccbb44", "CIS": "#ee7733", "NCIS": "#228833",
    "APPROX-1": "#66ccee", "APPROX-2": "#aa3377", "CIS+": "#ee7733",
    "NCIS, signals late": "#ee7733", "NCIS-D": "#aa3377", "NCIS, delay in the model": "#4477aa",
    "NCIS, late but dated": "#66ccee",
}  # fmt: skip


def draw_lines(axes: Any, x: Sequence[float], lines: dict[str, dict[str, list[float]]]) -> None:
    """One line with error bars (2 standard errors) per name, over x values side by side."""
    at = list(range(len(x)))
    for name, line in lines.items():
        error = [2 * e for e in line["error"]]
        style = "--" if name == "BASELINE" else "-"
        axes.errorbar(at, line["mean"], error, fmt=f"o{style}", ms=4, capsize=3, label=name, color=COLOURS.get(name))
    axes.set_xticks(at, [f"{value:g}" for value in x])
    axes.grid(alpha=0.3)
    axes.legend()


def draw_heat(canvas: Any, axes: Any, x: Any, y: Any, z: Any, label: str) -> Any:
    """A coloured map with its bar."""
    mesh = axes.pcolormesh(x, y, z, cmap="viridis", shading="gouraud")
    canvas.colorbar(mesh, ax=axes, label=label)
    return mesh
