"""How plots of commands look: settings of matplotlib."""

from __future__ import annotations

from typing import Any

PLAIN: Any = {"axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "recrawl"}
PANELS: Any = {
    **PLAIN,
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "legend.fontsize": 10,
}
