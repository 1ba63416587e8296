"""Kernels that kernels call are parts of them: lowered once, without machine code of their own, same results."""

from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from recrawl._compile import jit, parts
from recrawl._compile.packed import pack, unpacker


def uncached(decorate):
    """A kernel that is compiled in this process, whatever an earlier one has left on disk."""

    def made(function):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jit, "cache_folder", lambda: None)
            return decorate(function)

    return made


@uncached(jit.jit)
def half(x):
    return x / 2


@uncached(jit.inline)
def quarter(x):
    return half(half(x))


@uncached(jit.jit)
def total(values, k):
    out = 0.0
    for value in np.sort(values)[k:]:
        out += quarter(value) + half(k) + half(1)
    return out


@uncached(jit.jit_lean)
def checked(k):
    if k < 0:
        raise ValueError("k is less than 0")
    return k


@uncached(jit.jit_lean)
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


@uncached(jit.jit_sum)
def added(values):
    out = 0.0
    for value in values:
        out += value
    return out


@uncached(jit.jit)
def added_twice(values):
    return added(values) + 0.5 * added(values[1:])


def test_sums_are_reordered_in_one_way_by_all_callers():
    values = np.random.default_rng(0).lognormal(0.0, 3.0, 1000)
    assert added_twice(values) == added(values) + 0.5 * added(values[1:])


def test_recursion_is_a_call_of_a_part():
    @uncached(jit.jit)
    def power(n):
        if n == 0:
            return 1
        return 2 * power(n - 1)

    assert power(5) == 32


class Inner(NamedTuple):
    a: Any
    b: Any


class Large(NamedTuple):
    one: Any
    two: Any
    three: Any
    four: Any
    five: Any
    six: Any
    seven: Any
    inner: Inner


def large():
    return Large(*(np.full((2, 3), float(k)) for k in range(7)), Inner(np.arange(2), np.array([True, False])))


opened = unpacker(large)


@uncached(jit.jit)
def add_to(b, k, more):
    b.three[k, 1] += more
    b.inner.a[k] += b.inner.b.size
    return b.three[k, 1] + b.seven.sum()


@uncached(jit.jit)
def add_twice(b, k):
    return add_to(b, k, 1.0) + add_to(b, k, 2.0)


@uncached(jit.jit_lean)
def add_packed(numbers, k):
    b = opened(numbers)
    add_to(b, k, 0.5)
    return b.three[k, 1]


def test_large_tuples_are_passed_by_address_and_their_arrays_are_those_of_python():
    plain, compiled = large(), large()
    expected = sum(add_to.py_func(plain, 1, more) for more in (1.0, 2.0))
    assert add_twice(compiled, 1) == expected
    assert add_packed(pack(compiled), 1) == 5.5
    add_to.py_func(plain, 1, 0.5)
    for one, other in zip((*plain[:-1], *plain.inner), (*compiled[:-1], *compiled.inner), strict=True):
        assert (one == other).all()
    assert len(add_to._parts) == 1
    assert str(next(iter(add_to._parts))[0]).startswith("recrawl.Reference.Large")


@uncached(jit.jit)
def spread(n):
    return np.arange(n) / n


def allocated():
    return Inner(spread(4), np.zeros(2))


opened_allocated = unpacker(allocated)


@uncached(jit.jit_lean)
def last_of(numbers):
    return opened_allocated(numbers).a[3]


def test_an_example_may_need_kernels_that_allocate_and_are_not_compiled_yet():
    assert not spread.overloads
    assert last_of(pack(Inner(np.arange(4.0), np.zeros(2)))) == 3.0
    assert spread.overloads


def test_a_version_of_numba_that_was_not_tried_compiles_kernels_its_own_way(monkeypatch):
    monkeypatch.setattr(parts, "TRIED", ())
    plain_half, plain_total = jit.jit(half.py_func), jit.jit(lambda values: values.sum() / 2)
    assert not isinstance(plain_half, parts.KernelDispatcher)
    assert (plain_half(3), plain_total(VALUES)) == (1.5, 7.0)
