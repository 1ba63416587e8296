"""Order and rank of values in kernels: as NumPy and Numba give them."""

import numba
import numpy as np
import pytest

from recrawl.schedule.exact.kernels.value.ranking import descending, ranked


@numba.njit
def by_numba(values):
    return np.argsort(-values)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 15, 16, 17, 40, 300, 2000])
@pytest.mark.parametrize("different", [1, 3, 50, None])
def test_order_and_rank(n, different):
    rng = np.random.default_rng(n)
    values = rng.random(n) if different is None else rng.integers(0, different, n) / 7.0
    for given in (values, np.sort(values), np.sort(values)[::-1].copy()):
        order = descending(given)
        assert (given[order] == np.sort(given)[::-1]).all()
        assert order.tolist() == by_numba(given).tolist()  # ties too
        for rank in {0, n // 3, n - 1} if n else ():
            assert ranked(given.copy(), rank) == np.sort(given)[rank]


def test_infinite_values():
    values = np.array([1.0, np.inf, -np.inf, np.inf, 0.0])
    assert values[descending(values)].tolist() == [np.inf, np.inf, 1.0, 0.0, -np.inf]
    assert ranked(values.copy(), 3) == np.inf
