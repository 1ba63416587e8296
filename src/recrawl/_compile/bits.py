"""The bits of floats, for kernels that compute powers and logarithms of many numbers in vector registers.

Each function is a few instructions on the bits of one number, without a branch, so that loops over them become vector
instructions. Without the compiler `math.frexp` and `math.ldexp` say the same.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numba
from numba.core import cgutils
from numba.extending import intrinsic

from recrawl._compile.plain import with_form

SHIFT = 6755399441055744.0  # 1.5·2^52: a float near it holds a whole number in its last bits
_types: Any = numba.types
_code_parts: Any = cgutils
ir: Any = _code_parts.ir
_WHOLE, _FLOAT = ir.IntType(64), ir.DoubleType()
_ONE, _FRACTION, _LARGE = 0x3FF0000000000000, 0x000FFFFFFFFFFFFF, 0x4330000000000000  # 1.0, its fraction, 2^52


def _of_bits(compute: Callable[[Any, Any], Any], form: Callable[[float], float]) -> Any:
    """A function of one float, given what is done to its bits and the same without the compiler."""

    def typed(context: Any, x: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            found = compute(builder, builder.bitcast(args[0], _WHOLE))
            return found if found.type == _FLOAT else builder.bitcast(found, _FLOAT)

        return _types.float64(_types.float64), code

    return with_form(intrinsic(typed), form)


def _scale(builder: Any, bits: Any) -> Any:
    return builder.add(builder.shl(bits, _WHOLE(52)), _WHOLE(_ONE))


def _fraction(builder: Any, bits: Any) -> Any:
    return builder.or_(builder.and_(bits, _WHOLE(_FRACTION)), _WHOLE(_ONE))


def _power(builder: Any, bits: Any) -> Any:
    large = builder.bitcast(builder.or_(builder.lshr(bits, _WHOLE(52)), _WHOLE(_LARGE)), _FLOAT)
    return builder.fsub(large, _FLOAT(2.0**52 + 1023.0))


if TYPE_CHECKING:

    def two_to(k: float) -> float:
        """2^k of a whole number from −1022 to 1023; `k` is that number plus SHIFT."""

    def fraction_of(x: float) -> float:
        """f of x = f·2^k, 1 ≤ f < 2; x must be normal and positive."""

    def power_of(x: float) -> float:
        """k of x = f·2^k."""
else:
    two_to = _of_bits(_scale, lambda k: math.ldexp(1.0, int(k - SHIFT)))
    fraction_of = _of_bits(_fraction, lambda x: 2.0 * math.frexp(x)[0])
    power_of = _of_bits(_power, lambda x: math.frexp(x)[1] - 1.0)
