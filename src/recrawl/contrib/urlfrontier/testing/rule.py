"""Rule: a published rule and how it is checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from recrawl.contrib.urlfrontier.testing.bench import Bench

Check = Callable[[Bench, str, str], Awaitable[None]]


class Rule(NamedTuple):
    """``check`` is awaited with the bench and two crawl IDs of its own; it raises AssertionError."""

    check: Check
    strict_only: bool = False  # the client's dates decide
    alone: bool = False  # it changes what other checks see

    @property
    def text(self) -> str:
        """The rule in words."""
        return " ".join((self.check.__doc__ or self.check.__name__).split()).rstrip(".")
