"""Kernels as the plain Python functions that they are written as: slow, exact, and ready at once.

`plain` is for Python code that calls a small kernel. A kernel of `jit.inline` is part of the kernels that call
it, and its compiled form is kept only with theirs: Python code that called it would compile it in every process.

`uncompiled` runs any kernel without the compiler, with all kernels that it calls. Their source is read once more, with
the compiler's rules where Python's are others: dividing by 0 gives infinity or NaN, and so does a logarithm of 0;
numbers of arrays are whole numbers and floats of 64 bits, whatever the array holds.
"""

import ast
import inspect
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., object])

_LEAST = -(2**63)  # what the processor makes of a float that is no whole number
_FORM = "uncompiled_form"  # attribute of functions that only the compiler knows: what to call instead


def plain(kernel: F) -> F:
    """The Python function that a kernel was compiled from. It may call no other kernel."""
    function: Any = kernel
    return cast("F", function.py_func)


def uncompiled(kernel: Any) -> Callable[..., Any]:
    """The kernel as a function for Python code: same arguments, same results, the same arrays written."""
    function = _form_of(kernel)

    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*map(_seen, args))

    return call


def with_form(function: Any, form: Callable[..., Any]) -> Any:
    """Say what stands for a function that only the compiler knows."""
    setattr(function, _FORM, form)
    return function


# --- functions -------------------------------------------------------------------------------------------------------

_forms: dict[Any, Callable[..., Any]] = {}
_scopes: dict[str, dict[str, Any]] = {}  # by module


def _form_of(kernel: Any) -> Callable[..., Any]:
    """The function of a kernel that calls functions of kernels."""
    if kernel not in _forms:
        function = kernel.py_func
        scope = _scopes.setdefault(function.__module__, {**function.__globals__, **_NAMES})
        code = _compiled_source(function)
        known: dict[str, Any] = {}
        exec(code, scope, known)
        _forms[kernel] = known[function.__name__]
        for name in _names_in(_forms[kernel].__code__):
            if name in scope:
                scope[name] = _replaced(scope[name])
    return _forms[kernel]


def _compiled_source(function: Any) -> Any:
    definition = _definitions(function.__code__.co_filename)[function.__name__]
    definition.decorator_list, definition.returns = [], None
    for argument in definition.args.args:
        argument.annotation = None
    tree = ast.Module([cast("ast.stmt", _Rules().generic_visit(definition))], [])
    return compile(ast.fix_missing_locations(tree), function.__code__.co_filename, "exec")


@cache
def _definitions(file: str) -> dict[str, ast.FunctionDef]:
    """The functions of a file by their names."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _names_in(code: Any) -> set[str]:
    inner = (one for one in code.co_consts if inspect.iscode(one))
    return set(code.co_names).union(*map(_names_in, inner))


def _replaced(value: Any) -> Any:
    """What stands for a global of a kernel's module."""
    if hasattr(value, _FORM):
        return getattr(value, _FORM)
    return _form_of(value) if hasattr(value, "py_func") else value


class _Rules(ast.NodeTransformer):
    """Divisions and powers by the compiler's rules."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """a / b and a ** b."""
        self.generic_visit(node)
        name = _OPERATORS.get(type(node.op))
        return node if name is None else _call(name, node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """a /= b, where a may be an item or an attribute: it is read, then written."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        read = ast.parse(ast.unparse(node.target), mode="eval").body
        return ast.Assign([node.target], _call("_divided_in_place", read, node.value))


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _divided(a: Any, b: Any) -> Any:
    try:
        return a / b
    except ZeroDivisionError:
        return math.nan if a == 0.0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _divided_in_place(a: Any, b: Any) -> Any:
    if isinstance(a, np.ndarray):
        a /= b
        return a
    return _divided(a, b)


def _power(a: Any, b: Any) -> Any:
    try:
        found = a**b
    except ZeroDivisionError:
        return math.inf
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    return math.nan if isinstance(found, complex) else found


def _whole(value: Any) -> int:
    try:
        return int(value)
    except (OverflowError, ValueError):
        return _LEAST


class _Math:
    """The module ``math`` by the compiler's rules: no value is refused."""

    def __getattr__(self, name: str) -> Any:
        return getattr(math, name)

    @staticmethod
    def exp(x: float) -> float:
        """e^x."""
        try:
            return math.exp(x)
        except OverflowError:
            return math.inf

    @staticmethod
    def expm1(x: float) -> float:
        """e^x − 1."""
        try:
            return math.expm1(x)
        except OverflowError:
            return math.inf

    @staticmethod
    def log(x: float) -> float:
        """ln x."""
        return math.log(x) if x > 0.0 else -math.inf if x == 0.0 else math.nan

    @staticmethod
    def log1p(x: float) -> float:
        """ln(1 + x)."""
        return math.log1p(x) if x > -1.0 else -math.inf if x == -1.0 else math.nan

    @staticmethod
    def sqrt(x: float) -> float:
        """The square root."""
        return math.sqrt(x) if x >= 0.0 else math.nan


_OPERATORS: dict[type[ast.operator], str] = {ast.Div: "_divided", ast.Pow: "_power"}
_NAMES = {
    "_divided": _divided,
    "_divided_in_place": _divided_in_place,
    "_power": _power,
    "int": _whole,
    "math": _Math(),
}

# --- arrays ----------------------------------------------------------------------------------------------------------


class _Array(np.ndarray[Any, Any]):
    """An array whose items are Python's numbers."""

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return found.item() if isinstance(found, np.generic) else found

    def __iter__(self) -> Any:
        return map(self.__getitem__, range(len(self)))


class _Vector(_Array):
    """The same in one dimension, by the shortest way."""

    def __getitem__(self, key: Any) -> Any:
        return self.item(key) if type(key) is int else super().__getitem__(key)


class _Table(np.ndarray[Any, Any]):
    """An array of rows whose fields are attributes."""

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return _Row(found) if isinstance(found, np.void) else found

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value.record if isinstance(value, _Row) else value)


class _Row:
    """A row of a structured array, read and written in place."""

    __slots__ = ("record",)

    def __init__(self, record: np.void) -> None:
        object.__setattr__(self, "record", record)

    def __getattr__(self, name: str) -> Any:
        return self.record[name].item()

    def __setattr__(self, name: str, value: Any) -> None:
        self.record[name] = value


def _seen(given: Any) -> Any:
    """An argument as a kernel sees it."""
    if isinstance(given, np.ndarray):
        return _viewed(given)
    if isinstance(given, tuple):
        parts = map(_seen, given)
        return type(given)(*parts) if hasattr(given, "_fields") else tuple(parts)
    return given.item() if isinstance(given, np.generic) else given


def array_at(address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """The array that lies at an address, which somebody else keeps."""
    if 0 in shape:
        return _viewed(np.zeros(shape, dtype))
    place = {"data": (address, False), "shape": shape, "typestr": dtype.str, "descr": dtype.descr, "version": 3}
    return _viewed(np.asarray(_Place(place)).view(dtype))


def _viewed(array: Any) -> Any:
    kind = _Table if array.dtype.names else _Vector if array.ndim == 1 else _Array
    return array.view(kind)


class _Place:
    """What NumPy asks for memory."""

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface
