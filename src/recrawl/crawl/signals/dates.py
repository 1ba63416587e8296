"""Dates of signals that crawls refute: the page had the same content before the date and after it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from recrawl.store.protocol import Copy

Copies = Callable[[list[str]], Awaitable[Mapping[str, Copy]]]  # the newest copies by URL


@dataclass(frozen=True, slots=True)
class Stated:
    """When a signal says that a page changed: from ``first`` to ``last``."""

    url: str
    first: float
    last: float

    def is_refuted(self, copy: Copy | None) -> bool:
        """Whether a crawl after the change found the content that a crawl before it had found.

        Then the copy does not have the change: it became visible later, as authors date what is published days
        afterwards, or there was none.

        >>> copy = Copy("https://a.example/", 30.0, 10.0, 200, None, None, None, None, None)
        >>> [Stated(copy.url, at, at + 5.0).is_refuted(copy) for at in (5.0, 20.0, 28.0)]
        [False, True, False]
        """
        return copy is not None and copy.changed_at < self.first and self.last <= copy.fetched_at


async def refuted(stated: list[Stated], copies: Copies) -> list[bool]:
    """Which of the dates are refuted by the copies of their pages."""
    found = await copies(list(dict.fromkeys(one.url for one in stated))) if stated else {}
    return [one.is_refuted(found.get(one.url)) for one in stated]
