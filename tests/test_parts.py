"""Kernels that kernels call are parts of them: lowered once, without machine code of their own, same results."""

import numba
import numpy as np
import pytest

from recrawl import _jit


@_jit.jit
def half(x):
    return x / 2


@_jit.inline
def quarter(x):
    return half(half(x))


@_jit.jit
def total(values, k):
    out = 0.0
    for value in np.sort(values)[k:]:
        out += quarter(value) + half(k) + half(1)
    return out


@_jit.jit_lean
def checked(k):
    if k < 0:
        raise ValueError("k is less than 0")
    return k


@_jit.jit_lean
def twice(k):
    return checked(k) + checked(k)


VALUES = np.array([8.0, 2.0, 4.0])


def test_a_callee_has_no_machine_code_and_is_lowered_once_for_all_whole_numbers():
    assert total(VALUES, np.int32(1)) == 3.0 + 2 * 0.5 + 2 * 0.5
    assert len(total.overloads) == 1
    assert not quarter.overloads
    assert sorted(map(str, half._parts)) == ["(float64,)", "(int64,)"]
    assert all(part.library.get_pointer_to_function(part.fndesc.llvm_func_name) == 0 for part in half._parts.values())


def test_a_kernel_is_called_in_both_ways():
    assert total(VALUES, 2) == 2.0 + 1.0 + 0.5
    assert half(3) == 1.5
    assert quarter(2.0) == 0.5


def test_functions_of_others_call_kernels_and_use_the_same_functions_of_numba():
    @numba.njit
    def other(values, k):
        return np.sort(values)[0] + total(values, k)

    assert other(VALUES, 1) == 2.0 + total(VALUES, 1)
    assert other.py_func(VALUES, 1) == other(VALUES, 1)


def test_errors_of_parts_reach_the_caller():
    assert twice(3) == 6
    with pytest.raises(ValueError, match="k is less than 0"):
        twice(-1)


def test_recursion_is_a_call_of_a_part():
    @_jit.jit
    def power(n):
        if n == 0:
            return 1
        return 2 * power(n - 1)

    assert power(5) == 32
