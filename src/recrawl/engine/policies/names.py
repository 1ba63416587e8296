"""The policies by which an engine can choose pages, and which settings go together."""

from __future__ import annotations

from recrawl.errors import ParameterError, unknown
from recrawl.schedule.bandits.strategies import PRESETS, STRATEGIES

BY_VALUE = ("value", "no-signals")  # the page whose crawl is worth most; the same without change signals
PLANNED = {"deadline": "even", "poisson": "random"}  # optimal crawl rates, by how their crawls lie in time
RULES = STRATEGIES  # crawl rates by a rule
BANDITS = tuple(PRESETS)  # a bandit over rules
POLICIES = (*BY_VALUE, *PLANNED, *RULES, *BANDITS)


def check_policy(policy: str, objective: str, price: float) -> None:
    """Raise ParameterError for a policy that is not known, or that does not go with an objective or a price.

    >>> check_policy("poisson", "harmonic", 0.0)
    >>> check_policy("kab5", "age", 0.0)
    Traceback (most recent call last):
    recrawl.errors.ParameterError: the policy kab5 has no objective age: only value, no-signals, deadline, poisson have
    """
    if policy not in POLICIES:
        raise unknown("policy", policy, POLICIES)
    free = (*BY_VALUE, *PLANNED)
    if objective != "freshness" and policy not in free:
        raise ParameterError(f"the policy {policy} has no objective {objective}: only {', '.join(free)} have")
    if price > 0.0 and policy not in BY_VALUE:
        raise ParameterError(f"the policy {policy} takes no price: only {', '.join(BY_VALUE)} compare it with a value")


def by_rates(policy: str) -> bool:
    """Whether a policy crawls pages at rates, and not by their value."""
    return policy not in BY_VALUE
