"""Plan: what a solver answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl._html import bars, table


@dataclass(frozen=True)
class Plan:
    """Crawl rates that are optimal for a budget, a price or a target, and how well they do.

    ``gap`` bounds, by duality, how far the objective can lie below its optimum, relative to its size; it is computed
    from the final rates, not from how they were found.
    """

    crawl_rate: NDArray[np.float64]  # crawls per time, one per page
    threshold: float  # the crawl value (importance × time per unit of cost) at which the budget is just spent
    freshness: float  # importance-weighted share of time that copies are fresh, 0 … 1
    objective: float  # the objective per unit of importance: freshness, mean harmonic penalty or mean age
    budget: float | None  # what was given, if it was a budget
    spent: float  # Σ cost · crawl_rate
    gap: float
    iterations: int  # passes over the pages
    host_price: dict[Any, float] = field(default_factory=dict)  # crawl value at which a host's own limit is just spent

    @property
    def unused(self) -> float:
        """Budget that no page can use (0 unless every page is at the rate beyond which it gains nothing)."""
        return 0.0 if self.budget is None or self.threshold > 0 else max(self.budget - self.spent, 0.0)

    @property
    def n_never(self) -> int:
        """How many pages are never crawled."""
        return int(np.count_nonzero(self.crawl_rate == 0))

    def __repr__(self) -> str:
        return (
            f"<Plan: {len(self.crawl_rate)} pages, freshness {self.freshness:.4f}, spent {self.spent:.6g}, "
            f"threshold {self.threshold:.4g}, gap {self.gap:.1e}>"
        )

    def _repr_html_(self) -> str:
        """A table of figures and the distribution of the crawl rates, for notebooks."""
        rows = [
            ("pages", f"{len(self.crawl_rate)}, of which {self.n_never} are never crawled"),
            ("freshness", f"{self.freshness:.4f}"),
            ("spent", f"{self.spent:.6g}" + ("" if self.budget is None else f" of {self.budget:.6g} crawls per time")),
            ("threshold", f"{self.threshold:.4g}"),
            ("gap", f"{self.gap:.1e}"),
        ]
        return table("Plan", rows) + bars(self._rate_bars())

    def _rate_bars(self) -> list[tuple[str, float, str]]:
        """How many pages are crawled how often, in at most eight classes."""
        rate = self.crawl_rate[self.crawl_rate > 0]
        never = [("never crawled", float(self.n_never), str(self.n_never))] if self.n_never else []
        if len(rate) == 0:
            return never
        edges = np.unique(np.quantile(np.log(rate), [0.0, 1.0]))
        edges = np.exp(np.linspace(edges[0], edges[-1], 9 if len(edges) > 1 else 2))
        count, _ = np.histogram(rate, np.concatenate([edges[:-1] * (1 - 1e-9), [edges[-1] * (1 + 1e-9)]]))
        named = zip(edges[:-1], edges[1:], count.tolist(), strict=True)
        return never + [(f"every {1 / high:.3g} to {1 / low:.3g}", float(n), str(n)) for low, high, n in named]
