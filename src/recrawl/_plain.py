"""Kernels that Python code calls as the plain functions they are written as.

A kernel of `recrawl._jit.inline` is part of the kernels that call it, and its compiled form is kept only with theirs.
Python code that called it would compile it in every process, which costs more than a second for some.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., object])


def plain(kernel: F) -> F:
    """The Python function that a kernel was compiled from. It may call no other kernel."""
    function: Any = kernel
    return cast("F", function.py_func)
