"""The optima that solve knows, small populations for each, and a bound on any plan from public functions alone."""

from typing import NamedTuple

import numpy as np

from recrawl import Pages, Plan, solve
from recrawl.model import page_cost


class Case(NamedTuple):
    """Objective and spacing, what signals the pages have, and the name of the twin's kind (None: no plain twin)."""

    objective: str
    spacing: str
    signals: str = "none"  # none, complete (on half the pages), noisy, proof, lattice (recall 1), mixed
    kind: str | None = None

    @property
    def options(self) -> dict[str, str]:
        return {"objective": self.objective, "spacing": self.spacing}

    def __str__(self) -> str:
        return f"{self.objective}-{self.spacing}-{self.signals}"


PLAIN = [
    Case("freshness", "even", "none", "even"),
    Case("freshness", "random", "none", "random"),
    Case("freshness", "steps", "none", "steps"),
    Case("harmonic", "even", "none", "harmonic-even"),
    Case("harmonic", "random", "none", "harmonic-random"),
    Case("age", "even", "none", "age-even"),
    Case("age", "random", "none", "age-random"),
    Case("harmonic", "random", "complete", "harmonic-random"),
    Case("freshness", "random", "complete", "binary-complete-random"),
]
NOISY = [Case("freshness", "even", signals) for signals in ("noisy", "proof", "lattice", "mixed")]
OTHER = [
    Case("freshness", "even", "complete"),
    Case("harmonic", "even", "complete"),
    Case("freshness", "even", "uncertain"),
    Case("freshness", "even", "sources"),
]
ALL = [*PLAIN, *NOISY, *OTHER]


def draw(case: Case, n: int, seed: int = 0) -> Pages:
    """Pages whose rates and importance span two decades each."""
    rng = np.random.default_rng([seed, n])
    change_rate = 10 ** rng.uniform(-1.5, 0.5, n)
    if case.spacing == "steps":
        change_rate = rng.uniform(0.02, 0.98, n)
    importance = 10 ** rng.uniform(-1, 1, n)
    false_rate = change_rate * 10 ** rng.uniform(-1, 1, n)
    half = np.arange(n) % 2 == 0
    columns = {
        "none": {},
        "complete": {"recall": np.where(half, 1.0, 0.0)},
        "noisy": {"recall": rng.uniform(0.05, 0.95, n), "false_rate": false_rate},
        "proof": {"recall": rng.uniform(0.05, 0.95, n)},
        "lattice": {"recall": 1.0, "false_rate": false_rate},
        "mixed": {
            "recall": rng.choice([0.0, 0.3, 0.9, 1 - 1e-16, 1.0], n),
            "false_rate": false_rate * rng.choice([0.0, 1e-9, 1.0, 1e6], n),
        },
        "uncertain": {"evidence": rng.choice([0.5, 1.0, 3.0, 50.0, np.inf], n)},
        "sources": {"recall": rng.uniform(0.05, 0.6, (n, 2)), "false_rate": 0.3 * change_rate[:, None] * np.ones(2)},
    }[case.signals]
    return Pages(change_rate, importance, **columns)


def complete(pages: Pages) -> list[bool]:
    """Pages whose every change is signalled and nothing else is."""
    return ((pages.recall == 1) & (pages.false_rate == 0)).tolist()


def total_gain(case: Case, pages: Pages, rate: np.ndarray) -> float:
    """What solve maximises: Σ importance·freshness, or minus the cost."""
    cost = page_cost(pages, rate, case.objective, spacing=case.spacing)
    return float(pages.importance @ (1 - cost if case.objective == "freshness" else -cost))


def public_gap(case: Case, pages: Pages, rate: np.ndarray, price: float, budget: float) -> float:
    """How far a plan can be from the optimum, by weak duality: any price bounds the optimum from above.

    max Σ gain ≤ Σ max_r (gain(r) − price·cost·r) + price·budget, and `solve(price=…)` finds those rates.
    """
    best: Plan = solve(pages, price=price, **case.options)
    bound = total_gain(case, pages, best.crawl_rate) + price * (budget - best.spent)
    reached = total_gain(case, pages, rate)
    return (bound - reached) / abs(reached)
