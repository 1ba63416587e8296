"""Runs of Han et al. 2020: every strategy and bandit at a budget, one value per counted day and draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.reproduce.figure import Params, Row, Task
from recrawl.reproduce.han2020.world import Calendar, World, prepared
from recrawl.reproduce.medians import Median, increase, median_interval
from recrawl.schedule.bandits.contextual import ContextualBandit
from recrawl.schedule.bandits.exp3 import Exp3
from recrawl.schedule.bandits.presets import kab
from recrawl.schedule.bandits.strategies import STRATEGIES, arms_of
from recrawl.schedule.exact.scheduler import Scheduler
from recrawl.simulate.shop.price_days import STEPS, Plans, PriceDay
from recrawl.simulate.shop.price_run import ByBandit, ByPolicy, ByStrategy, Decider, run_prices

Array = NDArray[np.float64]
METRICS = ("click", "offer")
WEIGHTED = ("change-weighted", "click-weighted", "impression-weighted", "lambda")
BUDGETS = tuple(k / 10 for k in range(1, 10))
STREAM = "han2020"
TIGHT = (*(k / 1000 for k in range(1, 10)), *(k / 100 for k in range(1, 10)))


def world_of(params: Params, key: Row, rng: np.random.Generator) -> World:
    """The world of a task: the same for all figures of the paper at the same setting, seed and repetition."""
    calendar = Calendar(params["trained"], params["warm_up"], params["judged"])
    name, seed = key.get("world", "shop"), int(rng.integers(2**31))
    return World(name, params["offers"], seed, params["rows"], calendar, params.get("shift_at"))


def tasks_of(params: Params, worlds: Sequence[str] = ("shop",), seconds: float = 1.0) -> list[Task]:
    """A task for each repetition of each world."""
    size = params["offers"] * params.get("draws", 1) / 1e4
    return [Task({"world": world, "rep": rep}, seconds * size) for world in worlds for rep in range(params["reps"])]


def decider(name: str, plans: Plans, rng: np.random.Generator, rule: str = "exp3") -> Decider:
    """A strategy, a bandit (kab2 … kab5; ``gained``: with its other reward) or greedy, with the rates of the plans."""
    if name in STRATEGIES:
        return ByStrategy(plans, name, rng)
    if name == "greedy":
        start, budget = float(plans.days[0].day), plans.share * plans.days[0].n
        return ByPolicy(Scheduler(policy="no-signals", start=start, lease=1e-6, budget=budget), plans)
    if name in ("kab5 and greedy", "kab5 by class"):
        return _as_policy(name, plans, rng)
    preset, _, other = name.partition(" ")
    arms = arms_of(preset)
    return ByBandit(plans, arms, Exp3(len(arms), rule), rng, gained=other == "gained")


def _as_policy(name: str, plans: Plans, rng: np.random.Generator) -> Decider:
    """Bandits as in a live crawl: KAB5 with greedy as a sixth arm, and one KAB5 for each of three classes.

    The classes are quiet, middling and popular offers by believed clicks; each gets of the budget what LambdaCrawl
    would spend on it on the first day.
    """
    start, budget = float(plans.days[0].day), plans.share * plans.days[0].n
    settings: dict[str, Any] = {"budget": budget, "step": 1 / STEPS, "start": start, "lease": 1e-6}
    if name == "kab5 and greedy":
        greedy = Scheduler(policy="no-signals", start=start, lease=1e-6, budget=budget)
        return ByPolicy(kab("kab5", rng=rng, more={"greedy": greedy}, **settings), plans, impressions=True)
    edges = np.quantile(plans.known(0).click, [1 / 3, 2 / 3])
    classes = np.array(["quiet", "middling", "popular"])

    def label(click: Array) -> NDArray[np.str_]:
        return classes[np.searchsorted(edges, click)]

    spent, first = plans.of("lambda", 0), label(plans.known(0).click)
    split = {each: float(spent[first == each].sum()) for each in classes.tolist()}
    parts = dict(zip(classes.tolist(), rng.spawn(3), strict=True))
    policy = ContextualBandit(lambda each: kab("kab5", rng=parts[each], **settings), split=split, budget=budget)
    return ByPolicy(policy, plans, impressions=True, label=label)


def run_all(
    days: list[PriceDay],
    params: Params,
    policies: dict[str, tuple[str, str]],
    budgets: Sequence[float],
    rng: np.random.Generator,
    *,
    copied: bool = False,
) -> Row:
    """Freshness of the judged days, a list per draw, by metric, policy (name, source of rates) and budget."""
    row: Row = {}
    for budget in budgets:
        plans = {source: Plans(days, budget, source) for source in {source for _, source in policies.values()}}
        for label, (name, source) in policies.items():
            found: dict[str, list[list[float]]] = {metric: [] for metric in METRICS}
            for own in rng.spawn(1 if name == "greedy" else params["draws"]):
                run = run_prices(days, decider(name, plans[source], own), copied=copied)
                found["click"].append(run.clicks_right[-params["judged"] :].round(5).tolist())
                found["offer"].append(run.offers_right[-params["judged"] :].round(5).tolist())
            for metric in METRICS:
                row[name_of(metric, label, budget)] = found[metric]
    return row


def name_of(metric: str, label: str, budget: float) -> str:
    """The name of a column."""
    return f"{metric} {label} {budget:g}"


def values(rows: list[Row], metric: str, label: str, budget: float, world: str = "shop") -> Array:
    """All values of a policy at a budget: (repetition · draw) × day."""
    lists = [row[name_of(metric, label, budget)] for row in rows if row["world"] == world]
    return np.array([day for each in lists for day in each], np.float64)


def medians(rows: list[Row], metric: str, labels: Sequence[str], budgets: Sequence[float]) -> dict[str, list[Median]]:
    """Medians over days, draws and repetitions."""
    return {label: [median_interval(values(rows, metric, label, b)) for b in budgets] for label in labels}


def compared(
    rows: list[Row], metric: str, label: str, other: str, budgets: Sequence[float], world: str = "shop"
) -> list[dict[str, Any]]:
    """Differences of two policies at each budget, paired by repetition, draw and day."""
    return [increase(values(rows, metric, label, b, world), values(rows, metric, other, b, world)) for b in budgets]


def policies_of(sources: Sequence[str], more: dict[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Uniform, the weighted strategies with rates of each source, and more."""
    weighted = {f"{name} ({source})": (name, source) for source in sources for name in WEIGHTED}
    return {"uniform": ("uniform", "models"), **weighted, **more}


def days_of(params: Params, key: Row, rng: np.random.Generator) -> list[PriceDay]:
    """The days of a task's world."""
    return prepared(world_of(params, key, rng))
