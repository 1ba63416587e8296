"""The paper's bandits, ready to run: strategies as arms with known pages, budgets and rates."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import numpy as np

from recrawl.schedule.bandits.bandit import Bandit, BanditOptions
from recrawl.schedule.bandits.strategies import arms_of
from recrawl.schedule.rates.policy import RatePolicy


class KabOptions(BanditOptions, total=False):
    """Options of a bandit, and what it is rewarded for."""

    reward: str


def kab(
    arms: str | list[str] = "kab5",
    *,
    budget: float,
    step: float,
    rule: str = "exp3",
    execution: Literal["deadline", "poisson"] = "poisson",
    more: dict[str, Any] | None = None,
    **options: Unpack[KabOptions],
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
    given: dict[str, Any] = {**options}
    rng = np.random.default_rng(0) if given.get("rng") is None else given["rng"]
    settings: dict[str, Any] = {"execution": execution, "ceiling": 1.0 / step}
    settings |= {name: value for name, value in given.items() if name in ("start", "lease")}
    policies: dict[str, Any] = {
        name: RatePolicy(budget=budget, rates=name, rng=own, **settings)
        for name, own in zip(names, rng.spawn(len(names)), strict=True)
    }
    return Bandit({**policies, **(more or {})}, step=step, rule=rule, **{**given, "rng": rng})
