"""How signal rates and recalls of the pages of a source are spread: fitted to pages that have had signals."""

import math

import numpy as np
import pytest

from recrawl.engine.signals.arrays import N_BINS, PRECISIONS, empty, first_classes
from recrawl.engine.signals.rates import MEANS, SHAPES, fitted_rates, rate_scores
from recrawl.engine.signals.tables import recall_density, structure

RATES = 1e-4 * 2.0 ** np.arange(32)


def _drawn(n: int, shape: float, mean: float, time: float) -> tuple[np.ndarray, np.ndarray]:
    """Signals of pages that have had some, and in what time."""
    rng = np.random.default_rng(1)
    times = rng.uniform(0.2, 1.0, n) * time
    counts = rng.poisson(rng.gamma(shape, mean / shape, n) * times).astype(float)
    return counts[counts > 0], times[counts > 0]


def test_scores_equal_the_negative_binomial_given_a_signal():
    counts, times = np.array([1.0, 3.0, 16.0]), np.array([0.5, 2.0, 0.1])
    scores = rate_scores(counts, times, 0.7)
    for i, j in ((0, 0), (3, 8), (6, 24)):
        shape, rate = SHAPES[i], SHAPES[i] / (0.7 * MEANS[j])
        expected = 0.0
        for n, t in zip(counts, times, strict=True):
            no_signal = (rate / (rate + t)) ** shape
            expected += math.log(math.gamma(shape + n) / math.gamma(shape) * no_signal / (rate + t) ** n)
            expected -= math.log(1.0 - no_signal)
        assert scores[i, j] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("time", [0.5, 5.0])
def test_spread_is_found_though_only_pages_with_signals_are_known(time):
    counts, times = _drawn(4000, 4.0, 0.6, time)
    pooled = counts.sum() / times.sum()
    shape, share = fitted_rates(counts, times, pooled)
    assert shape == pytest.approx(4.0, rel=0.35)
    assert pooled * share == pytest.approx(0.6, rel=0.15)
    if time < 1.0:
        assert pooled > 1.2  # as if signals came twice as often


def test_few_flooded_pages_leave_the_spread_within_its_limits():
    counts, times = _drawn(1000, 4.0, 0.6, 5.0)
    counts[:20], times[:20] = 160.0, 1e-6
    shape, share = fitted_rates(counts, times, counts.sum() / times.sum())
    assert 1.0 <= shape <= 8.0 and 0.0 < share <= 1.0


def test_recall_density_is_even_before_anything_is_known_and_adds_up():
    b = empty(RATES, 1, 0, 0, np.zeros(len(PRECISIONS), np.int64))
    assert recall_density(b, np.zeros((N_BINS, 32, len(PRECISIONS)))) == pytest.approx(np.ones(16))


def test_usual_recalls_shape_the_tables_of_other_signal_rates():
    """Pages that are signalled seldom show that hardly any change is missed: the same is expected of frequent ones."""
    b = empty(RATES, 1, 0, 0, np.zeros(len(PRECISIONS), np.int64))
    b.log_base[:] = -math.log(32)
    counts = np.zeros((N_BINS, 32, len(PRECISIONS)))
    counts[9, 1, -1] = 50.0  # told: 0.036 a day, missed: 0.0002
    before, after = np.zeros((32, len(PRECISIONS))), np.zeros((32, len(PRECISIONS)))
    b.log_base[14:] = -20.0  # no page changes more often than once a day
    structure(b, first_classes(), recall_density(b, np.zeros_like(counts)), 0.5, before)
    structure(b, first_classes(), recall_density(b, counts), 0.5, after)
    assert after.sum() == pytest.approx(1.0)
    missed = [table[:, -1] @ RATES / table[:, -1].sum() for table in (before, after)]
    assert missed[1] < 0.5 * missed[0]
    assert after.sum(axis=0) == pytest.approx(before.sum(axis=0))  # of the classes nothing is said
