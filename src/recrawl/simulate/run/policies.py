"""Policies by name, ready to be simulated: greedy ones, rate policies, rivals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from recrawl.engine import Engine
from recrawl.engine.policies.names import POLICIES as LIVE_POLICIES
from recrawl.errors import unknown
from recrawl.model.kinds import OBJECTIVES
from recrawl.model.pages import Pages
from recrawl.schedule.bandits.bandit import Bandit
from recrawl.schedule.bandits.presets import kab
from recrawl.schedule.exact.scheduler import POLICIES, Scheduler
from recrawl.schedule.policy import Ids
from recrawl.schedule.rates.policy import RatePolicy
from recrawl.schedule.rates.rules import RULES
from recrawl.simulate.rivals.registry import rival, rival_names
from recrawl.simulate.run.clairvoyant import Clairvoyant
from recrawl.simulate.run.run import Contender
from recrawl.simulate.run.trailing import Trailing
from recrawl.simulate.trace import Trace
from recrawl.solver.plan import Plan
from recrawl.solver.solving import solve


def contender(name: str) -> Contender:
    """The policy of a name; ``names()`` lists them.

    >>> contender("signals").name
    'signals'
    """
    if name in POLICIES:
        return Contender(name, greedy(name))
    if name in _RATES:
        return Contender(name, by_rule(name))
    if name in _BANDITS:
        return Contender(name, by_bandit(name))
    if name.partition(":")[0] == "learned":
        return Contender(name, learning(**choices_of(name)), admit_unknown)
    if name == "known":
        return Contender(name, knowing)
    if name in _TRAILING:
        return Contender(name, trailing(_TRAILING[name]), lambda policy, trace, rows, now: policy.add(rows, now))
    if name == "clairvoyant":
        return Contender(name, seeing, lambda policy, trace, rows, now: rows)
    if name in _PLANNED:
        return Contender(name, planned(_PLANNED[name]))
    if name.partition(":")[0] in rival_names():
        return rival(name)
    raise unknown("policy", name, names())


_RATES = [rule for rule in RULES if rule not in ("fixed", "impression-weighted")]  # traces have no impressions
_BANDITS = ("kab2", "kab3")  # the others need impressions
_EFFECTS = ("siblings", "none")  # what may follow "learned:", beside objectives
_TRAILING = {"trailing": False, "trailing:crawled": True}  # whether changes count from the crawl that follows them
_BY_KNOWLEDGE = ("learned", *_TRAILING, "known", "clairvoyant")  # nothing, past rates, all rates, all changes


def names() -> list[str]:
    """The names of all policies."""
    return [*POLICIES, *_RATES, *_BANDITS, *_PLANNED, *_BY_KNOWLEDGE, *rival_names()]


def greedy(policy: str, **settings: Any) -> Callable[[Trace, float, np.random.Generator], Scheduler]:
    """The greedy choice among pages whose parameters are known."""

    def make(trace: Trace, budget: float, rng: np.random.Generator) -> Scheduler:
        lease = 1e-3 / budget  # crawls take no time here
        return Scheduler(budget=budget, policy=policy, start=trace.start, lease=lease, **settings)

    return make


def effects_of(name: str) -> dict[str, bool]:
    """What ``learned:siblings`` or ``learned:none`` says of the effects of the engine; empty without a colon.

    >>> effects_of("learned:none")
    {'siblings': False}
    """
    _, chosen, named = name.partition(":")
    if not chosen:
        return {}
    if named not in _EFFECTS:
        raise unknown("effect", named, list(_EFFECTS))
    return {"siblings": named == "siblings"}


def choices_of(name: str) -> dict[str, Any]:
    """The settings of the engine that ``learned:…`` names: an objective, a policy, and effects.

    >>> choices_of("learned:poisson+harmonic"), choices_of("learned")
    ({'policy': 'poisson', 'objective': 'harmonic'}, {})
    """
    policy, _, named = name.partition(":")
    chosen: dict[str, Any] = {}
    effects = []
    for word in (word for word in named.split("+") if word):
        if word in OBJECTIVES:
            chosen["objective"] = word
        elif word in LIVE_POLICIES:
            chosen["policy"] = word
        else:
            effects.append(word)
    return chosen | effects_of(f"{policy}:{'+'.join(effects)}" if effects else policy)


def learning(**settings: Any) -> Callable[[Trace, float, np.random.Generator], Engine]:
    """The engine as it would run live, which knows nothing but URLs and importance.

    It makes every crawl of its budget, however unlikely a change is: policies are compared at equal numbers of crawls.
    """

    def make(trace: Trace, budget: float, rng: np.random.Generator) -> Engine:
        sources = 0 if trace.signals is None else int(trace.signals.source.max(initial=0)) + 1
        given = {"sources": sources, "day": trace.day, "lease": 1e-3 / budget, "canonical_urls": False}
        given |= {"min_change_probability": 0.0}
        return Engine(budget, start=trace.start, **{**given, **settings})

    return make


def admit_unknown(policy: Any, trace: Trace, rows: Ids, now: float) -> Ids:
    """Add pages by URL and importance alone."""
    urls = [f"page:{i}" for i in rows.tolist()] if trace.url is None else trace.url[rows].tolist()
    ids: Ids = policy.add(urls, now, fetched_at=now, importance=trace.importance[rows])
    return ids


def knowing(trace: Trace, budget: float, rng: np.random.Generator) -> Scheduler:
    """The greedy choice that knows the true mean rates, and the quality of signals where it is known."""
    informed = trace.pages is not None and trace.signals is not None
    return greedy("signals" if informed else "no-signals")(trace, budget, rng)


def trailing(crawled: bool) -> Callable[[Trace, float, np.random.Generator], Trailing]:
    """The greedy choice that knows the true rates of the year up to now, or up to each page's last crawl."""

    def make(trace: Trace, budget: float, rng: np.random.Generator) -> Trailing:
        return Trailing(trace, budget, crawled=crawled)

    return make


def seeing(trace: Trace, budget: float, rng: np.random.Generator) -> Clairvoyant:
    """The greedy choice that knows the future."""
    return Clairvoyant(trace)


def by_rule(rule: str) -> Callable[[Trace, float, np.random.Generator], RatePolicy]:
    """Crawl rates by a rule, as deadlines."""

    def make(trace: Trace, budget: float, rng: np.random.Generator) -> RatePolicy:
        ceiling = max(1.0, float(trace.true_pages.change_rate.max(initial=0.0))) if rule == "lambda" else None
        return RatePolicy(budget=budget, rates=rule, start=trace.start, ceiling=ceiling)

    return make


def by_bandit(name: str) -> Callable[[Trace, float, np.random.Generator], Bandit]:
    """A bandit over strategies, in twelve steps a day."""

    def make(trace: Trace, budget: float, rng: np.random.Generator) -> Bandit:
        return kab(name, budget=budget, step=trace.day / 12, start=trace.start, lease=1e-3 / budget, rng=rng)

    return make


_PLANNED: dict[str, Literal["deadline", "poisson"]] = {"deadline": "deadline", "poisson": "poisson"}


def planned(
    execution: Literal["deadline", "poisson"], spacing: Literal["even", "random"] | None = None
) -> Callable[[Trace, float, np.random.Generator], RatePolicy]:
    """The optimal rates for given parameters, run by deadline (evenly spaced) or as draws (random)."""

    def make(trace: Trace, budget: float, rng: np.random.Generator) -> RatePolicy:
        true_pages = trace.true_pages.replace(recall=0.0, false_rate=0.0)
        plan = solve(true_pages, budget, spacing=spacing or ("even" if execution == "deadline" else "random"))
        return PlannedPolicy(plan, budget, execution, trace.start, rng)

    return make


class PlannedPolicy(RatePolicy):
    """A rate policy whose pages come one after the other with the rates of a plan made for all of them."""

    def __init__(
        self, plan: Plan, budget: float, execution: Literal["deadline", "poisson"], start: float, rng: Any
    ) -> None:
        super().__init__(budget=budget, rates=np.zeros(0), execution=execution, start=start, rng=rng)
        self._plan = np.asarray(plan.crawl_rate)

    def add(self, pages: Pages, now: float, *, fetched_at: ArrayLike | None = None, **columns: Any) -> Ids:
        """Add the next pages of the plan."""
        first = len(self._table)
        return super().add(pages, now, fetched_at=fetched_at, crawl_rate=self._plan[first : first + len(pages)])
