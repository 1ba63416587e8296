"""e^x and ln x of many numbers at once, beside those of numpy and mpmath; sums beside exact ones."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from profiles import examples

from recrawl._compile.plain import uncompiled
from recrawl.model.kernels.elementary import LEAST_EXPONENT, exp_all, largest, log_all, sum_of, sum_of_products


def exps(numbers: list[float]) -> np.ndarray:
    """e^x of each number."""
    out = np.array(numbers)
    exp_all(out)
    return out


def logs(numbers: list[float]) -> np.ndarray:
    """ln x of each number."""
    out = np.array(numbers)
    log_all(out)
    return out


@given(st.floats(LEAST_EXPONENT, -LEAST_EXPONENT))
@settings(max_examples=examples(300))
@example(0.0)
@example(-1e-300)
@example(0.5 * math.log(2.0))
@example(LEAST_EXPONENT)
def test_powers_of_e_are_exact_to_the_last_digits(x: float) -> None:
    assert exps([x])[0] == pytest.approx(float(mpmath.exp(mpmath.mpf(x))), rel=4e-16)


@given(st.floats(1e-300, 1e300))
@settings(max_examples=examples(300))
@example(1.0)
@example(math.sqrt(2.0))
@example(math.nextafter(1.0, 0.0))
@example(math.nextafter(1.0, 2.0))
@example(1e-300)
def test_logarithms_are_exact_to_the_last_digits(x: float) -> None:
    assert logs([x])[0] == pytest.approx(float(mpmath.log(mpmath.mpf(x))), rel=1e-15, abs=0.0)


def test_what_lies_far_below_is_zero() -> None:
    assert exps([-700.5, -1e9, -math.inf]).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("n", [1, 3, 4, 7, 24, 32, 33])
def test_a_place_in_the_array_changes_nothing_nor_does_the_compiler(n: int) -> None:
    rng = np.random.default_rng(n)
    powers, numbers = rng.uniform(-40.0, 3.0, n), 10.0 ** rng.uniform(-9.0, 9.0, n)
    assert exps(powers.tolist()).tolist() == [exps([x])[0] for x in powers.tolist()]
    assert logs(numbers.tolist()).tolist() == [logs([x])[0] for x in numbers.tolist()]
    for kernel, given_numbers in ((exp_all, powers), (log_all, numbers)):
        plain, compiled = given_numbers.copy(), given_numbers.copy()
        uncompiled(kernel)(plain)
        kernel(compiled)
        assert plain.tolist() == compiled.tolist()


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=70))
@settings(max_examples=examples(100))
def test_sums_and_the_largest(numbers: list[float]) -> None:
    x = np.array(numbers)
    close = 1e-14 * (1.0 + np.abs(x).sum())
    assert sum_of(x) == pytest.approx(math.fsum(numbers), abs=close)
    assert sum_of_products(x, x, len(x)) == pytest.approx(math.fsum(x * x), abs=close * 1e6)
    assert largest(x) == max(numbers)
