"""Medians, their intervals and paired tests."""

import numpy as np
import pytest
from scipy import stats

from recrawl.reproduce.medians import increase, median_interval, wilcoxon


def test_intervals_hold_the_median_as_often_as_they_say():
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(2000):
        found = median_interval(rng.exponential(size=41))
        held += found.low <= np.log(2) <= found.high
    assert 0.945 < held / 2000 < 0.985  # order statistics: at least the level


def test_few_and_unknown_values():
    assert median_interval([3.0]) == (3.0, 3.0, 3.0)
    assert median_interval([1.0, np.nan, 3.0]).value == 2.0
    assert np.isnan(median_interval([np.nan]).value)


def test_the_test_is_the_signed_rank_test():
    rng = np.random.default_rng(2)
    a = rng.normal(size=60)
    b = a + rng.normal(0.3, 1.0, 60)
    assert wilcoxon(a, b) == pytest.approx(stats.wilcoxon(a - b, method="approx").pvalue)
    assert wilcoxon([1.0, np.nan, 2.0], [1.0, 5.0, 2.0]) == 1.0


def test_increases_are_paired():
    found = increase([[0.6, 0.66], [0.0, 0.5]], [[0.5, 0.6], [0.0, 0.5]])
    assert found["difference"].value == pytest.approx(0.03)
    assert found["percent"].value == pytest.approx(10.0)  # of the three days on which the other had any
