"""The figures of a solved plan, as a table and as a dictionary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from recrawl import Pages, Plan
from recrawl.cli.shared.options.solve_request import Request
from recrawl.model.budget import format_amount, format_rate
from recrawl.model.freshness import page_freshness
from recrawl.model.kinds import Spacing
from recrawl.solver.parts import PartsPlan

Limits = Mapping[str, float] | None
_OBJECTIVES = {
    "freshness": "freshness",
    "harmonic": "mean harmonic penalty of unseen changes",
    "age": "mean age of stale copies",
}


@dataclass(frozen=True)
class Figures:
    """Figures of a plan. Rates are per ``unit``; shares lie between 0 and 1."""

    pages: int
    unit: str
    objective: str
    spacing: str
    budget: float | None
    spent: float
    unused: float
    freshness: float
    uniform_freshness: float | None
    objective_value: float
    threshold: float
    never_crawled: int
    never_crawled_importance: float
    never_changing: int
    gap: float
    iterations: int

    @classmethod
    def of(cls, pages: Pages, plan: Plan, request: Request) -> Figures:
        """The figures of a plan for these pages."""
        idle = np.asarray(plan.crawl_rate) == 0
        budget = None if plan.budget is None else float(plan.budget)
        return cls(
            pages=len(pages),
            unit=request.unit,
            objective=request.objective,
            spacing=request.spacing,
            budget=budget,
            spent=float(plan.spent),
            unused=float(plan.unused),
            freshness=float(plan.freshness),
            uniform_freshness=_uniform(pages, budget or float(plan.spent), request),
            objective_value=float(plan.objective),
            threshold=float(plan.threshold),
            never_crawled=int(idle.sum()),
            never_crawled_importance=float(pages.importance[idle].sum() / pages.importance.sum()),
            never_changing=int((pages.change_rate == 0).sum()),
            gap=float(plan.gap),
            iterations=int(plan.iterations),
        )

    @classmethod
    def of_parts(cls, plan: PartsPlan, request: Request) -> Figures:
        """The figures of a plan for the parts of a table; freshness with equal rates is not computed."""
        return cls(
            pages=plan.n_pages,
            unit=request.unit,
            objective=request.objective,
            spacing=request.spacing,
            budget=plan.budget,
            spent=plan.spent,
            unused=plan.unused,
            freshness=plan.freshness,
            uniform_freshness=None,
            objective_value=plan.objective,
            threshold=plan.threshold,
            never_crawled=plan.n_never,
            never_crawled_importance=plan.never_importance,
            never_changing=plan.n_static,
            gap=plan.gap,
            iterations=plan.iterations,
        )

    def as_dict(self) -> dict[str, object]:
        """All figures by name; None for numbers that are not finite."""
        figures = asdict(self)
        return {name: _finite_or_none(value) for name, value in figures.items()}


def uniform_freshness(
    pages: Pages, budget: float, spacing: Spacing, *, ceiling: float | None = None, limits: Limits = None
) -> float:
    """Freshness when every page is crawled equally often, within the same limits, ignoring signals."""
    rate = np.full(len(pages), budget / float(pages.cost.sum()))
    for host, limit in (limits or {}).items():
        there = pages.host == host
        rate[there] = np.minimum(rate[there], limit / max(int(np.sum(there)), 1))
    most = np.inf if ceiling is None else ceiling
    rate = np.minimum(rate, min(most, 1.0) if spacing == "steps" else most)
    fresh = page_freshness(pages.replace(recall=0.0, false_rate=0.0), rate, spacing=spacing)
    return float((pages.importance * fresh).sum() / pages.importance.sum())


def _uniform(pages: Pages, budget: float, request: Request) -> float | None:
    if budget == 0:
        return None
    ceiling = request.bounds()[1]
    return uniform_freshness(pages, budget, cast(Spacing, request.spacing), ceiling=ceiling, limits=request.limits())


def print_figures(figures: Figures, *, title: str, files: list[Path]) -> None:
    """Print the summary table, the unused budget, and the files written."""
    console = Console()
    table = Table(show_header=False)
    table.add_column(style="bold")
    table.add_column()
    for name, value in _rows(figures):
        table.add_row(name, value)
    console.print(Text(title, style="italic"), soft_wrap=True)
    console.print(table)
    for sentence in _remarks(figures):
        console.print(sentence, soft_wrap=True)
    for file in files:
        console.print(f"written: {file}", markup=False, highlight=False, soft_wrap=True)


def _rows(figures: Figures) -> list[tuple[str, str]]:
    per = figures.unit
    rows = [("pages", f"{figures.pages}")]
    if figures.budget is not None:
        rows.append(("budget", format_rate(figures.budget, per=per, unit=per)))
    rows.append(("spent", format_rate(figures.spent, per=per, unit=per)))
    rows.append(("freshness", f"{figures.freshness:.4f}"))
    if figures.uniform_freshness is not None:
        rows.append(("freshness with equal rates", f"{figures.uniform_freshness:.4f}"))
    if figures.objective != "freshness":
        rows.append((_OBJECTIVES[figures.objective], f"{figures.objective_value:.6g}"))
    rows.append((f"threshold (importance × {per} per crawl)", f"{figures.threshold:.6g}"))
    share = f"{figures.never_crawled_importance:.2%} of importance"
    rows.append(("pages never crawled", f"{figures.never_crawled}, {share}"))
    if figures.never_changing:
        rows.append(("pages that never change", f"{figures.never_changing}"))
    rows.append(("gap to the optimum, at most", f"{figures.gap:.1e}"))
    return rows


def _remarks(figures: Figures) -> list[str]:
    if figures.budget is None or figures.unused <= 1e-9 * figures.budget:
        return []
    amount = format_amount(figures.unused)
    return [
        f"{amount}/{figures.unit} of the budget cannot be used: "
        "every page is at its ceiling, its host's limit, or crawled at each of its changes."
    ]


def _finite_or_none(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
