"""The state as kernels see it: one header that contains the addresses of all other arrays.

Passing all arrays to a compiled function takes longer than a decision; passing one takes almost no time. Between
kernels it is the same: `s` is the address of the header, and `s.rec` looks up where the pages lie. No array moves while
a kernel runs; the loads of addresses are marked as invariant.
"""

from typing import TYPE_CHECKING, Any

from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model
from numba.np import arrayobj
from numba.np.numpy_support import from_dtype
from numpy.typing import NDArray

from recrawl._compile.plain import array_at, with_form
from recrawl.schedule.exact.layout import SCHEMA, State, place_of
from recrawl.schedule.exact.layout import Header as Header

_types: Any = types
_code_parts: Any = cgutils
_arrays: Any = arrayobj
_models: Any = models
_base: Any = types.Type
_template: Any = AttributeTemplate
_lower: Any = lower_getattr_generic


class _View(_base):  # type: ignore[misc]
    """What `State` is to a kernel."""

    def __init__(self) -> None:
        super().__init__(name="recrawl.schedule.View")


@register_model(_View)
class _ViewModel(_models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _code_parts.ir.IntType(64).as_pointer())


@infer_getattr
class _ViewArrays(_template):  # type: ignore[misc]
    key = _View

    def generic_resolve(self, kind: Any, name: str) -> Any:
        """The array of that name."""
        return types.Array(from_dtype(SCHEMA[name].dtype), SCHEMA[name].ndim, "C")


def _array(context: Any, builder: Any, view: Any, address: Any, name: str) -> Any:
    ndim, place = SCHEMA[name].ndim, place_of(name)
    kind = types.Array(from_dtype(SCHEMA[name].dtype), ndim, "C")

    def number(k: int) -> Any:
        found = builder.load(_code_parts.gep_inbounds(builder, address, k))
        found.set_metadata("invariant.load", builder.module.add_metadata([]))
        return found

    array = _arrays.make_array(kind)(context, builder)
    item = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    shape = [number(place + 1 + d) for d in range(ndim)]
    strides = [builder.mul(item, shape[1]), item] if ndim == 2 else [item]
    if name == "head":
        data = builder.bitcast(address, array.data.type)
    else:
        data = builder.inttoptr(number(place), array.data.type)
    _arrays.populate_array(array, data, shape, strides, item, None)
    return array._getvalue()


_lower(_View)(_array)


def _typed(context: Any, header: Any) -> Any:
    return _View()(header), _code


def _code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _arrays.make_array(signature.args[0])(context, builder, args[0]).data


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


def _opened(header: Header) -> State:
    """The same without the compiler."""
    arrays = {}
    for name, kind in SCHEMA.items():
        place = place_of(name)
        address = header.ctypes.data if name == "head" else int(header[place])
        shape = tuple(header[place + 1 : place + 1 + kind.ndim].tolist())
        arrays[name] = array_at(address, shape, kind.dtype)
    return State(**arrays)


def _not_fetched(rows: NDArray[Any], i: int) -> None:
    """Nothing: without the compiler there is no time to gain."""


if TYPE_CHECKING:

    def opened(header: Header) -> State:
        """The arrays whose addresses and shapes `Memory` wrote into the header."""

    def prefetch(rows: NDArray[Any], i: int) -> None:
        """Load row i into the cache while other work is done; any i is allowed."""
else:
    opened = with_form(intrinsic(_typed), _opened)
    prefetch = with_form(intrinsic(_prefetch_typed), _not_fetched)
