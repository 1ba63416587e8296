"""Large NamedTuples of arrays, as kernels pass them to each other: by address.

Numba passes every array of a tuple as seven numbers. What an engine has learned is sixty arrays: a call of a kernel
with it takes 400 arguments, long to compile and not fast to make. Here a kernel that Python calls puts the tuple on its
stack, and the kernels that it calls get the address. To the source of a kernel it is the tuple: `b.seen` is an array.
"""

import hashlib
from typing import Any

from numba import types
from numba.core import cgutils, imputils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_cast,
    lower_getattr_generic,
    models,
    register_model,
    unbox,
)

_types: Any = types
_base: Any = types.Type
_template: Any = AttributeTemplate
_models: Any = models
_code_parts: Any = cgutils
_returns: Any = imputils
_lower_cast: Any = lower_cast
_lower_attribute: Any = lower_getattr_generic
_unbox: Any = unbox
_native: Any = NativeValue

_LARGE = 8  # members


class Reference(_base):  # type: ignore[misc]
    """The address of a NamedTuple."""

    def __init__(self, whole: Any) -> None:
        self.whole = whole
        digest = hashlib.sha256(str(whole).encode()).hexdigest()[:16]
        super().__init__(name=f"recrawl.Reference.{whole.instance_class.__name__}.{digest}")


def by_reference(kind: Any) -> Any:
    """The type that a kernel takes an argument as: the address of a large NamedTuple, anything else as it is."""
    is_named = isinstance(kind, _types.NamedTuple | _types.NamedUniTuple)
    return Reference(kind) if is_named and _size(kind) > _LARGE else kind


def _size(kind: Any) -> int:
    return sum(map(_size, kind.types)) if isinstance(kind, _types.BaseTuple) else 1


@register_model(Reference)
class _ReferenceModel(_models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, manager.lookup(kind.whole).get_value_type().as_pointer())


@infer_getattr
class _Members(_template):  # type: ignore[misc]
    key = Reference

    def generic_resolve(self, kind: Any, name: str) -> Any:
        """The member of that name."""
        whole = kind.whole
        return by_reference(whole.types[whole.fields.index(name)]) if name in whole.fields else None


def _member(context: Any, builder: Any, kind: Any, address: Any, name: str) -> Any:
    index = kind.whole.fields.index(name)
    place = _code_parts.gep_inbounds(builder, address, 0, index)
    member = kind.whole.types[index]
    if isinstance(by_reference(member), Reference):
        return place
    return _returns.impl_ret_borrowed(context, builder, member, builder.load(place))


_lower_attribute(Reference)(_member)


def _put_on_stack(context: Any, builder: Any, whole: Any, reference: Any, value: Any) -> Any:
    return _code_parts.alloca_once_value(builder, value)


def _from_python(kind: Any, given: Any, c: Any) -> Any:
    found = c.unbox(kind.whole, given)
    place = _code_parts.alloca_once_value(c.builder, found.value)

    def release() -> None:
        """Let go of the arrays after the call: Numba does so for arguments that it knows, not for an address."""
        if found.cleanup is not None:
            found.cleanup()
        if c.context.enable_nrt:
            c.context.nrt.decref(c.builder, kind.whole, found.value)

    return _native(place, is_error=found.is_error, cleanup=release)


_lower_cast(types.BaseTuple, Reference)(_put_on_stack)
_unbox(Reference)(_from_python)
