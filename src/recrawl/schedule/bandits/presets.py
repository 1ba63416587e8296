"""The paper's bandits, ready to run: strategies as arms with known pages, budgets and rates."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from recrawl.schedule.bandits.bandit import Bandit
from recrawl.schedule.bandits.strategies import arms_of
from recrawl.schedule.rates.policy import RatePolicy


def kab(
    arms: str | list[str] = "kab5",
    *,
    budget: float,
    step: float,
    rule: str = "exp3",
    exploration: float = 0.1,
    share: float = 0.003,
    reward: str = "changed",
    execution: Literal["deadline", "poisson"] = "poisson",
    start: float = 0.0,
    lease: float = 300.0,
    rng: np.random.Generator | None = None,
    more: dict[str, Any] | None = None,
) -> Bandit:
    """A bandit over strategies: ``kab2`` … ``kab5`` (Han et al. 2020), or any list of them; ``more`` are further arms.

    ``budget`` is crawls per time, ``step`` the time for which an arm is kept (the paper: two hours); no page gets more
    than one crawl a step. Change rates of pages are per time, at most one a step for ``lambda``.

    >>> from recrawl import Pages
    >>> bandit = kab("kab2", budget=5.0, step=1 / 12)
    >>> bandit.add(Pages([0.1, 0.9], importance=[3.0, 1.0]), 0.0).tolist(), bandit.rows()["name"]
    ([0, 1], ['click-weighted', 'change-weighted'])
    """
    names = arms_of(arms)
    rng = np.random.default_rng(0) if rng is None else rng
    settings: dict[str, Any] = {"execution": execution, "ceiling": 1.0 / step, "start": start, "lease": lease}
    policies: dict[str, Any] = {
        name: RatePolicy(budget=budget, rates=name, rng=own, **settings)
        for name, own in zip(names, rng.spawn(len(names)), strict=True)
    }
    learning: dict[str, Any] = {"rule": rule, "exploration": exploration, "share": share, "reward": reward}
    return Bandit({**policies, **(more or {})}, step=step, start=start, lease=lease, rng=rng, **learning)
