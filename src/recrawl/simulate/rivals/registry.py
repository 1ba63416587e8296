"""Rivals by the name of the system, ready to be simulated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from recrawl.errors import ParameterError
from recrawl.simulate.rivals import adaptive, feeds, intervals
from recrawl.simulate.rivals.policy import DuePolicy
from recrawl.simulate.rivals.rule import DAY, ORDERS, Cap, Rule
from recrawl.simulate.run.run import Contender
from recrawl.simulate.trace import Trace

_RULES: dict[str, Callable[..., Rule]] = {
    "fixed": intervals.fixed,
    "nutch": adaptive.nutch,
    "stormcrawler": adaptive.stormcrawler,
    "commoncrawl-news": adaptive.commoncrawl_news,
    "heritrix": adaptive.heritrix,
    "infomesh": intervals.infomesh,
    "yacy": intervals.yacy,
    "miniflux": feeds.miniflux,
    "commafeed": feeds.commafeed,
    "newsblur": feeds.newsblur,
    "norconex": intervals.norconex,
}


def rival(name: str, cap: Cap | None = None, *, day: float = DAY, **settings: Any) -> Contender:
    """A system by name; ``name:cap`` stands for name and cap, ``day`` is the length of a day in the world's units.

    ``cap`` is what comes first when more is due than the budget allows (None: what the system does); at its own
    demand (``budget=None``) it plays no part. ``settings`` are those of the rule.

    >>> rival("nutch").name, rival("nutch", "due").name, rival("nutch:due").name
    ('nutch', 'nutch:due', 'nutch:due')
    """
    system, _, given = name.partition(":")
    order = cap or given or None
    if system not in _RULES or order not in (None, *ORDERS):
        known = ", ".join(rival_names())
        raise ParameterError(f"rival {name!r} is not one of {known}, alone or with :{', :'.join(ORDERS)}")
    rule = _RULES[system](day=day, **settings)

    def make(trace: Trace, budget: float, rng: np.random.Generator) -> DuePolicy:
        return DuePolicy(rule, cap=order, start=trace.start)  # type: ignore[arg-type]

    return Contender(system if order is None else f"{system}:{order}", make)


def caps(name: str) -> list[str]:
    """The orders in which a budget can cut what a system finds due: by due date, by score, its own; or the one named.

    >>> caps("nutch"), caps("yacy"), caps("nutch:due")
    (['nutch:due', 'nutch:score'], ['yacy:due', 'yacy:score', 'yacy:oldest'], ['nutch:due'])
    """
    if ":" in name:
        return [name]
    return [f"{name}:{cap}" for cap in dict.fromkeys(("due", "score", _RULES[name](day=DAY).cap))]


def rival_names() -> list[str]:
    """The systems there are.

    >>> rival_names()[:3]
    ['fixed', 'nutch', 'stormcrawler']
    """
    return list(_RULES)
