"""Public names of a package, each imported from its module on first use, so that importing a package stays cheap."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def attach(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package; ``homes`` lists the names of each of its modules.

    Type checkers read the same names from the package's ``TYPE_CHECKING`` block; a test keeps the two equal.
    """
    home_of = {name: f"{package}.{module}" for module, names in homes.items() for name in names}

    def load(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    names = sorted(home_of)
    return load, lambda: list(names), names
