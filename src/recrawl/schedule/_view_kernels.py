"""The state as kernels see it: one array of integers that knows where all the others lie.

To hand all arrays over to a compiled function takes longer than a decision does; one takes next to no time.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj
from numba.np.numpy_support import from_dtype
from numpy.typing import NDArray

from recrawl.schedule.layout import DTYPES, PLACES, State

_types: Any = types
_code_parts: Any = cgutils
_arrays: Any = arrayobj

Header = NDArray[np.int64]  # `State.ints`


def _typed(context: Any, header: Any) -> Any:
    arrays = [types.Array(from_dtype(dtype), ndim, "C") for dtype, ndim in DTYPES]
    return _types.NamedTuple(arrays, State)(header), _code


def _code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    header = _arrays.make_array(signature.args[0])(context, builder, args[0])

    def number(place: int) -> Any:
        return builder.load(_code_parts.gep_inbounds(builder, header.data, place))

    views = []
    for k, kind in enumerate(signature.return_type):
        view = _arrays.make_array(kind)(context, builder)
        item = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        shape = [number(PLACES + 3 * k + 1 + d) for d in range(kind.ndim)]
        strides = [builder.mul(item, shape[1]), item] if kind.ndim == 2 else [item]
        data = builder.inttoptr(number(PLACES + 3 * k), view.data.type)
        _arrays.populate_array(view, data, shape, strides, item, None)
        views.append(view._getvalue())
    return context.make_tuple(builder, signature.return_type, views)


def _prefetch_typed(context: Any, rows: Any, i: Any) -> Any:
    return _types.void(rows, types.int64), _prefetch_code


def _prefetch_code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    rows = _arrays.make_array(signature.args[0])(context, builder, args[0])
    size = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
    ir = _code_parts.ir
    whole, flag = ir.IntType(64), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [_code_parts.voidptr_t, flag, flag, flag])
    fetch = _code_parts.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    row = builder.add(builder.ptrtoint(rows.data, whole), builder.mul(args[1], whole(size)))
    for part in (0, size - 1):  # a row may lie across two cache lines
        place = builder.inttoptr(builder.add(row, whole(part)), _code_parts.voidptr_t)
        builder.call(fetch, [place, flag(1), flag(3), flag(1)])
    return context.get_dummy_value()


if TYPE_CHECKING:

    def opened(header: Header) -> State:
        """The arrays whose addresses and shapes `Memory` wrote into `ints`."""

    def prefetch(rows: NDArray[Any], i: int) -> None:
        """Let row i come into the cache while other work is done; any i will do."""
else:
    opened = intrinsic(_typed)
    prefetch = intrinsic(_prefetch_typed)
