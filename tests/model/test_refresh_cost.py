"""The cost form: its optimum equals a bisection of the definition, and no other ratio is cheaper."""

import math

import mpmath
import naive
import numpy as np
import pytest
from draws import close, log_uniform
from hypothesis import assume, example, given
from hypothesis import strategies as st

from recrawl import ParameterError, solve
from recrawl.model import Pages, bounded_ratio, refresh_cost, refresh_ratio, very_stale_share


def cost_twin(ratio: float, interval: float, crawl: float, stale: float) -> float:
    with mpmath.workdps(60):
        r = mpmath.mpf(ratio)
        return float(stale * (1 + mpmath.expm1(-r) / r) + crawl / (r * mpmath.mpf(interval)))


@given(log_uniform(1e-6, 1e6), log_uniform(1e-9, 1e3), log_uniform(1e-3, 1e3))
@example(24.0, 1.0, 1.0)
@example(1.0, 1.0, 1.0)
@example(1.0, 1 - 1e-16, 1.0)
def test_ratio_equals_its_twin(interval, crawl, stale):
    expected = naive.refresh_ratio(crawl, stale, 1 / interval)
    assume(abs(crawl / (stale * interval) - 1) > 1e-5 or interval == 1.0)  # 1/D is rounded: the end is ill-posed
    assert close(float(refresh_ratio(interval, crawl, stale)), expected)


@given(log_uniform(1e-6, 1e3), log_uniform(1e-3, 1e3), log_uniform(1e-3, 1e3), log_uniform(1e-3, 1e3))
def test_cost_equals_its_twin(ratio, interval, crawl, stale):
    # 1 − (1 − e^{−r})/r cancels for small r, where crawling costs C_c/(rD); their sum loses nothing that counts
    got, expected = float(refresh_cost(ratio, interval, crawl, stale)), cost_twin(ratio, interval, crawl, stale)
    assert abs(got - expected) <= 1e-10 * expected or abs(got - expected) <= 1e-15 * stale


@given(log_uniform(0.1, 1e4), log_uniform(1e-3, 10), st.floats(0.5, 2))
def test_no_other_ratio_is_cheaper(interval, crawl, factor):
    best = float(refresh_ratio(interval, crawl, 1.0))
    assume(math.isfinite(best))
    costs = refresh_cost([best, best * factor, np.inf], interval, crawl, 1.0)
    assert costs[0] <= costs.min() * (1 + 1e-12)


def test_the_papers_example():
    assert float(refresh_ratio(24.0, 1.0, 1.0)) == pytest.approx(0.321, abs=5e-4)


def test_it_is_the_price_form_of_the_solver():
    interval, stale = np.array([2.0, 24.0, 500.0]), np.array([1.0, 3.0, 0.2])
    plan = solve(Pages(1 / interval, stale), price=1.5)
    ratio = refresh_ratio(interval, 1.5, stale)
    assert plan.crawl_rate == pytest.approx(1 / (ratio * interval), rel=1e-10)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((0.0, 1.0, 1.0), "change_interval: must be above 0"),
        (([1.0, math.nan], 1.0, 1.0), "change_interval, row 1: must be above 0"),
        ((1.0, [1.0, -1.0], 1.0), "crawl_cost, row 1"),
        ((1.0, 1.0, math.inf), "stale_cost: must be above 0 and finite"),
    ],
)
def test_bad_input(args, message):
    with pytest.raises(ParameterError, match=message):
        refresh_ratio(*args)


def stale_twin(ratio: float, interval: float, hours: float, shape: float) -> float:
    """The chance of a change more than ``hours`` before the crawl, over gamma(shape, mean 1/interval) rates."""
    with mpmath.workdps(30):
        late = max(mpmath.mpf(ratio) * interval - hours, mpmath.mpf(0))
        if math.isinf(shape):
            return float(-mpmath.expm1(-late / interval))
        scale = 1 / (mpmath.mpf(shape) * interval)

        def chance(rate):
            weight = (rate / scale) ** (shape - 1) * mpmath.exp(-rate / scale) / (mpmath.gamma(shape) * scale)
            return -mpmath.expm1(-rate * late) * weight

        knots = [0, *(mpmath.mpf(k) * shape * scale for k in (0.01, 0.1, 0.5, 1, 2, 4, 10, 40)), mpmath.inf]
        return float(mpmath.quad(chance, knots))


@pytest.mark.parametrize("shape", [0.5, 1.0, 3.0, 20.0, math.inf])
@pytest.mark.parametrize(("ratio", "interval", "hours"), [(1 / 3, 24.0, 8.0), (1.0, 24.0, 8.0), (0.5, 100.0, 2.0)])
def test_very_stale_share_equals_its_twin(ratio, interval, hours, shape):
    ours = float(very_stale_share(ratio, interval, hours, shape))
    assert ours == pytest.approx(stale_twin(ratio, interval, hours, shape), rel=1e-6, abs=1e-12)


@given(log_uniform(1e-6, 0.99), log_uniform(0.1, 1e4), log_uniform(1e-2, 1e3), log_uniform(0.1, 1e6))
def test_bounded_ratio_is_the_inverse(bound, interval, hours, shape):
    for evidence in (shape, math.inf):
        ratio = bounded_ratio(bound, interval, hours, evidence)
        slack = 1e-15 * float(ratio)  # r − h/D cancels where h is many change intervals
        assert float(very_stale_share(ratio, interval, hours, evidence)) == pytest.approx(
            bound, rel=1e-7, abs=4 * slack
        )


def test_bound_of_one_is_refused():
    with pytest.raises(ParameterError, match="bound"):
        bounded_ratio(1.0, 24.0, 8.0)
