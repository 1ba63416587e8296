"""The value of one component: closed form against the integral, and its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.mixture import mixture
from profiles import examples

from recrawl.model.kernels.fresh import fresh_value
from recrawl.model.kernels.mixture import (
    SOON,
    component_value,
    components_elapsed,
    components_growth,
    components_value,
    first_signal_value,
)


def integral(alpha: float, gamma: float, kappa: float, s: float) -> float:
    """∫₀^s e^{−u} ψ(u) du, ψ from the waiting time: the later of (u − κ)/α and the first signal, at most u/α."""
    u = (np.arange(200_000) + 0.5) * s / 200_000
    late, early = u / alpha, np.maximum(u - kappa, 0.0) / alpha
    psi = early + np.exp(-gamma * early) * -np.expm1(-gamma * (late - early)) / gamma
    return float((np.exp(-u) * psi).sum() * s / 200_000)


@pytest.mark.parametrize("kappa", [0.1, 1.0, 5.0])
@pytest.mark.parametrize(("alpha", "gamma"), [(0.1, 0.3), (2.0, 0.05), (0.01, 5.0)])
@pytest.mark.parametrize("s", [1e-4, 0.5, 3.0, 12.0])
def test_first_signal_value_is_its_integral(alpha: float, gamma: float, kappa: float, s: float) -> None:
    assert first_signal_value(alpha, gamma, kappa, s) == pytest.approx(integral(alpha, gamma, kappa, s), rel=1e-5)


def test_without_signals_it_is_the_value_of_a_gamma_belief() -> None:
    exact = component_value(0.3, math.inf, 0.0, 0.0, 4.0, 0.0, False)
    assert exact == pytest.approx(fresh_value(1.2) / 0.3)
    assert component_value(0.3, 1e9, 1e-14, 1.0, 4.0, 0.0, False) == pytest.approx(exact, rel=1e-6)
    assert component_value(0.3, 1.0, 0.0, 0.0, 40.0, 0.0, False) > component_value(0.3, 1e9, 0.0, 0.0, 40.0, 0.0, False)


@pytest.mark.parametrize("repeated", [False, True])
def test_a_signal_brings_forward(repeated: bool) -> None:
    silent = component_value(0.2, 2.0, 0.3, 1.0, 3.0, 0.0, repeated)
    assert component_value(0.2, 2.0, 0.3, 1.0, 3.0, 1.0, repeated) > silent > 0.0


@pytest.mark.parametrize("seed", range(8))
def test_the_time_below_a_goal_is_never_too_late(seed: int) -> None:
    rng = np.random.default_rng(seed)
    c = np.stack([rng.dirichlet(np.ones(4)), *rng.lognormal(-1.0, 1.0, (3, 4)), rng.exponential(1.0, 4)], axis=1)
    c[:, 2] = 1.5 + 5.0 * c[:, 2]
    c = np.column_stack([c, rng.exponential(0.3, 4), rng.random(4) < 0.5])
    start = float(rng.exponential(2.0))
    values = [components_value(c, t) for t in start * np.geomspace(1.0, 1e3, 60)]
    assert np.all(np.diff(values) >= -1e-9 * values[-1])
    for goal in (1.2 * values[0], 0.5 * (values[0] + values[-1]), 1e9):
        for known in (values[0], -1.0):
            until = components_elapsed(c, start, known, goal)
            assert until >= start
            assert until == math.inf or components_value(c, until) < goal
    assert components_elapsed(c, start, values[0], 1e9) == math.inf
    assert components_elapsed(c, start, values[0], 0.5 * values[0]) == start


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_value_grows_and_its_slope_is_bounded(seed: int) -> None:
    """Over the time for which a slope is said to be known, at rates, shapes and times of all sizes."""
    rng = np.random.default_rng(seed)
    c = np.zeros((1, 7))
    shape = math.inf if rng.random() < 0.1 else 10.0 ** rng.uniform(-2.0, 4.0)
    c[0] = (
        1.0,
        10.0 ** rng.uniform(-3.0, 1.0),
        shape,
        10.0 ** rng.uniform(-3.0, 2.0),
        10.0 ** rng.uniform(-2.0, 1.0),
        0,
        0,
    )
    c[0, 5] = rng.integers(0, 3) * c[0, 4]
    c[0, 6] = rng.random() < 0.3
    start = 10.0 ** rng.uniform(-4.0, 3.0)
    value, slope = components_growth(c, start)
    assert value == components_value(c, start)
    before = value
    for share in np.linspace(0.002, SOON, 12):
        later = components_value(c, start * (1.0 + share))
        assert later >= before * (1.0 - 1e-10)
        assert later <= (value + slope * share * start) * (1.0 + 1e-10)
        before = later


@pytest.mark.parametrize("seed", range(6))
def test_values_equal_the_naive_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    c = np.zeros((5, 7))
    c[:, 0], c[:, 1], c[:, 2] = (
        rng.dirichlet(np.ones(5)),
        10.0 ** rng.uniform(-3, 0.5, 5),
        10.0 ** rng.uniform(-1, 3, 5),
    )
    c[:, 3], c[:, 4], c[:, 6] = 10.0 ** rng.uniform(-2, 1, 5), 10.0 ** rng.uniform(-1, 0.7, 5), rng.random(5) < 0.3
    c[:, 5] = rng.integers(0, 3) * c[:, 4]
    for elapsed in (1e-9, 1e-3, 0.1, 2.0, 50.0, 3000.0):
        assert components_value(c, elapsed) == pytest.approx(mixture(c.tolist(), elapsed), rel=1e-8, abs=0)
