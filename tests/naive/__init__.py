"""Naive twins of the compiled kernels. Nothing here imports recrawl."""

from naive.cost import (
    age_cost,
    age_cost_slope,
    expected_harmonic,
    freshness,
    freshness_slope,
    harmonic_cost,
    harmonic_cost_slope,
    refresh_ratio,
    value_age,
    value_harmonic,
    value_posterior,
)
from naive.crawl_value import fresh_time, interval, inverse, inverse_of, value, value_mp
from naive.gamma import gamma_p
from naive.signals import SignalPlan, solve_signals
from naive.solve import KINDS, marginal, objective, page_cost, page_rate, solve_bisect, solve_convex
from naive.sources import value_sources

__all__ = [
    "KINDS",
    "SignalPlan",
    "age_cost",
    "age_cost_slope",
    "expected_harmonic",
    "fresh_time",
    "freshness",
    "freshness_slope",
    "gamma_p",
    "harmonic_cost",
    "harmonic_cost_slope",
    "interval",
    "inverse",
    "inverse_of",
    "marginal",
    "objective",
    "page_cost",
    "page_rate",
    "refresh_ratio",
    "solve_bisect",
    "solve_convex",
    "solve_signals",
    "value",
    "value_age",
    "value_harmonic",
    "value_mp",
    "value_posterior",
    "value_sources",
]
