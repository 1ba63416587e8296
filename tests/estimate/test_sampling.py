"""Samples of pages: sizes, probabilities, and estimates within their error."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl.estimate.sampling import chances, draw, sampling_error

N = 20_000
WEIGHTS = {
    "equal": np.ones(N),
    "heavy tail": np.random.default_rng(0).pareto(1.0, N),
    "one page": np.where(np.arange(N) == 7, 1e9, 1.0),
    "half nothing": np.arange(N) % 2.0,
    "nothing": np.zeros(N),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_probabilities_add_up_to_the_size(name: str) -> None:
    chance = chances(WEIGHTS[name], 500)
    assert chance.sum() == pytest.approx(500.0)
    assert 0.0 < chance.min() <= chance.max() <= 1.0
    sample = draw(WEIGHTS[name], 500, np.random.default_rng(1))
    assert abs(len(sample.rows) - 500) <= 1
    assert (np.diff(sample.rows) > 0).all()
    assert sample.stands_for == pytest.approx(1.0 / chance[sample.rows])


@pytest.mark.parametrize("name", ["equal", "heavy tail", "half nothing"])
@pytest.mark.parametrize("period", [1, 40, 200])
def test_shares_are_estimated_within_the_error_also_where_pages_repeat(name: str, period: int) -> None:
    weight = WEIGHTS[name]
    share = np.random.default_rng(2).random(N) if period == 1 else (np.arange(N) % period < period // 2).astype(float)
    true = np.average(share, weights=weight)
    errors = []
    for seed in range(40):
        sample = draw(weight, 500, np.random.default_rng(seed))
        mine = weight[sample.rows]
        found = np.average(share[sample.rows], weights=mine * sample.stands_for)
        errors.append((found - true) / sampling_error(mine, sample.stands_for))
    assert abs(np.mean(errors)) < 0.6, "not biased"
    assert np.mean(np.abs(errors) < 1.645) >= 0.8
    assert np.std(errors) < 1.5
