"""What signals are worth: the posterior equals exact Bayes, gates start shut, floods do no harm."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from recrawl._compile.plain import plain
from recrawl.engine.signals.arrays import KAPPA, MEAN, OPENED, PRECISIONS, WEIGHT, SignalArrays, empty, rate_bin
from recrawl.engine.signals.components import mixture_value, update_components
from recrawl.engine.signals.learning import add_outcome, begin_row
from recrawl.engine.signals.posterior import posterior
from recrawl.engine.signals.tables import set_tables

Array = NDArray[np.float64]
RATES: Array = np.geomspace(0.003, 0.003 * 1.6**15, 16)
PRIOR = np.full(16, 1 / 16)
GROUPS = np.array([0, 1, 1, 2, 2, 3, 3, 3])
Interval = tuple[float, tuple[int, ...], bool]  # time, signals per source, changed


def arrays(n_sources: int, rates: Array = RATES) -> SignalArrays:
    b = empty(rates, n_sources, 1, 1, GROUPS)
    b.log_base[:] = -math.log(len(rates))
    set_tables(b, np.zeros(b.log_table.shape))
    b.repeats[:] = 1.0
    return b


def observe(b: SignalArrays, intervals: list[Interval]) -> Array:
    totals = np.zeros(5)
    begin_row(b, 0, 0, totals)
    for time, signals, changed in intervals:
        for k, n in enumerate(signals):
            b.heard[0, k], b.first[0, k], b.last[0, k] = n, time / 2, time
        add_outcome(b, 0, time, changed, 1.0)
        b.heard[0] = 0.0
        totals += (0.0, 1.0, math.log(time), 0.0, 0.0) if changed else (time, 0.0, 0.0, 0.0, 0.0)
    return totals


def naive(b: SignalArrays, intervals: list[Interval], way: int = 1) -> Array:
    """The joint posterior over (missed rate, class of every source), interval by interval."""
    n_sources = b.rate.shape[1]
    shape = (len(b.rates), *[len(PRECISIONS)] * n_sources)
    log = np.zeros(shape)
    for cell in itertools.product(*map(range, shape)):
        a = b.rates[cell[0]]
        value = -(n_sources - 1) * b.log_base[cell[0]]
        for k in range(n_sources):
            value += b.log_table[way, k, plain(rate_bin)(b, b.rate[0, k]), cell[0], cell[1 + k]]
        for time, signals, changed in intervals:
            s = a * time + sum(n * b.kappas[c] for n, c in zip(signals, cell[1:], strict=True))
            value += math.log(-math.expm1(-s)) if changed else -s
        log[cell] = value
    found = np.exp(log - log.max())
    return np.asarray(found / found.sum())


def one_source(rng: np.random.Generator) -> list[Interval]:
    outcomes: list[Interval] = [(3.0, (2,), bool(rng.random() < 0.6)) for _ in range(6)]
    outcomes += [(5.0, (0,), bool(rng.random() < 0.3)) for _ in range(6)]
    return outcomes


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_posterior_of_one_source_is_exact_bayes(seed: int) -> None:
    b = arrays(1)
    intervals = one_source(np.random.default_rng(seed))
    totals, out = observe(b, intervals), np.zeros((1, 16, 8))
    posterior(b, 0, totals, 0.0, out)
    np.testing.assert_allclose(out[0], naive(b, intervals), atol=1e-6)


def test_coarse_grid_agrees_with_a_fine_one() -> None:
    means = []
    for rates in (RATES, np.geomspace(0.003, 0.003 * 1.1**74, 75)):
        b = arrays(1, rates)
        intervals = one_source(np.random.default_rng(4))
        totals, out = observe(b, intervals), np.zeros((1, len(rates), 8))
        posterior(b, 0, totals, 0.0, out)
        means.append([float(out[0].sum(axis=1) @ rates), float(out[0].sum(axis=0) @ PRECISIONS)])
    np.testing.assert_allclose(means[0], means[1], rtol=0.06)


def test_sources_that_never_signal_together_are_exact_bayes() -> None:
    b = arrays(2)
    intervals: list[Interval] = [(2.0, (1, 0), True), (2.0, (1, 0), False), (4.0, (0, 2), False), (6.0, (0, 0), False)]
    intervals += [(2.0, (1, 0), True), (4.0, (0, 2), True), (6.0, (0, 0), True)]
    totals, out = observe(b, intervals), np.zeros((2, 16, 8))
    posterior(b, 0, totals, 0.0, out)
    joint = naive(b, intervals)
    np.testing.assert_allclose(out[0], joint.sum(axis=2), atol=1e-6)
    np.testing.assert_allclose(out[1], joint.sum(axis=1), atol=1e-6)


def test_sources_that_are_silent_change_nothing_however_many_there_are() -> None:
    few, many = arrays(2), arrays(16)
    intervals: list[Interval] = [(2.0, (1, 0), True), (2.0, (1, 0), False), (4.0, (0, 2), True), (6.0, (0, 0), False)]
    wide: list[Interval] = [(time, (0,) * 14 + signals, changed) for time, signals, changed in intervals]
    out, far = np.zeros((2, 16, 8)), np.zeros((16, 16, 8))
    posterior(few, 0, observe(few, intervals), 0.0, out)
    posterior(many, 0, observe(many, wide), 0.0, far)
    np.testing.assert_allclose(far[14:], out, rtol=1e-12)
    assert not far[:14].any()


def test_sources_that_tell_of_one_change_share_its_credit() -> None:
    b = arrays(2)
    together: list[Interval] = [(2.0, (1, 1), True), (4.0, (0, 0), False), (2.0, (1, 1), False)]
    intervals = [together[0]] * 8 + [together[1]] * 6 + [together[2]] * 4
    totals, out = observe(b, intervals), np.zeros((2, 16, 8))
    posterior(b, 0, totals, 0.0, out)
    joint = naive(b, intervals)
    unchanged = np.einsum("c,d,acd->", 1 - PRECISIONS, 1 - PRECISIONS, joint)
    assert math.exp(-b.mean_kappa[0].sum()) == pytest.approx(unchanged, abs=0.1)
    rate = float(out[0].sum(axis=1) @ RATES)
    assert rate == pytest.approx(float(joint.sum(axis=(1, 2)) @ RATES), rel=0.25)


def test_components_keep_the_means() -> None:
    b = arrays(1)
    totals, out = observe(b, one_source(np.random.default_rng(2))), np.zeros((1, 16, 8))
    update_components(b, 0, totals, 0.0, out)
    w, mean, kappa = b.components[0, :, WEIGHT], b.components[0, :, MEAN], b.components[0, :, KAPPA]
    assert w.sum() == pytest.approx(1.0, abs=1e-5)
    assert float(w @ mean) == pytest.approx(float(out[0].sum(axis=1) @ RATES), rel=1e-5)
    assert float(w @ -np.expm1(-kappa)) == pytest.approx(float(out[0].sum(axis=0) @ PRECISIONS), rel=1e-5)
    assert mixture_value(b, 0, 5.0) == -1.0  # the gates are shut
    b.gate[0, 0] = OPENED
    assert mixture_value(b, 0, 5.0) > mixture_value(b, 0, 4.0) > 0.0
