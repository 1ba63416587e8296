"""NamedTuples of arrays as one array of numbers, which Python code passes to a kernel by one pointer.

Every array that a kernel is given takes part of a microsecond; what an engine has learned is sixty of them. `pack`
writes their addresses and shapes down once; in a kernel, the function that `unpacker` makes gives the tuple again,
by its address.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from numba import typeof, types
from numba.core import cgutils, compiler, targetconfig
from numba.extending import intrinsic
from numba.np import arrayobj
from numpy.typing import NDArray

from recrawl._compile.plain import array_at, with_form
from recrawl._compile.references import Reference

Numbers = NDArray[np.int64]

_types: Any = types
_typeof: Any = typeof
_code_parts: Any = cgutils
_compiler: Any = compiler
_flags: Any = targetconfig
_arrays: Any = arrayobj


def pack(given: Any) -> Numbers:
    """Addresses and shapes of all arrays in a NamedTuple, also of those within; it must be kept while they are used."""
    numbers: list[int] = []
    _write(given, numbers)
    return np.array(numbers, np.int64)


def _write(given: Any, numbers: list[int]) -> None:
    if isinstance(given, tuple):
        for part in given:
            _write(part, numbers)
        return
    assert given.flags.c_contiguous
    numbers += [given.__array_interface__["data"][0], *given.shape]


def unpacker(example: Callable[[], Any]) -> Any:
    """For kernels: the tuple from its numbers. `example` makes a tuple of the same types, when a kernel is compiled."""

    def typed(_context: Any, numbers: Any) -> Any:
        with _flags.ConfigStack().enter(_usual_flags()):
            made = example()
        return Reference(_typeof(made))(numbers), _unpack

    made = cache(example)

    def uncompiled(numbers: Numbers) -> Any:
        return _read(made(), iter(numbers.tolist()))

    return with_form(intrinsic(typed), uncompiled)


def _usual_flags() -> Any:
    """What kernels that an example needs inherit, instead of the flags of the kernel that is being compiled."""
    flags = _compiler.Flags()
    flags.nrt = True
    return flags


def _read(example: Any, numbers: Iterator[int]) -> Any:
    """The tuple of the same form as an example whose arrays lie where the numbers say."""
    if isinstance(example, tuple):
        parts = [_read(part, numbers) for part in example]
        return type(example)(*parts) if hasattr(example, "_fields") else tuple(parts)
    return array_at(next(numbers), tuple(next(numbers) for _ in range(example.ndim)), example.dtype)


def _unpack(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    numbers = _arrays.make_array(signature.args[0])(context, builder, args[0]).data
    counter = iter(range(1 << 20))

    def number() -> Any:
        found = builder.load(_code_parts.gep_inbounds(builder, numbers, next(counter)))
        found.set_metadata("invariant.load", builder.module.add_metadata([]))
        return found

    def fill(kind: Any, address: Any) -> None:
        if not isinstance(kind, _types.Array):
            for k, each in enumerate(kind.types):
                fill(each, _code_parts.gep_inbounds(builder, address, 0, k))
            return
        array = _arrays.make_array(kind)(context, builder)
        data = builder.inttoptr(number(), array.data.type)
        shape = [number() for _ in range(kind.ndim)]
        item = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        strides = [item]
        for length in shape[:0:-1]:
            strides.insert(0, builder.mul(strides[0], length))
        _arrays.populate_array(array, data, shape, strides, item, None)
        builder.store(array._getvalue(), address)

    whole = signature.return_type.whole
    place = _code_parts.alloca_once(builder, context.get_value_type(whole))
    fill(whole, place)
    return place
