"""Group commit: rows of many callers are written in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from recrawl.crawl.clock import Clock

T = TypeVar("T")

_REST = 3.0  # times as long as a write took: the store is free for others in between
_LONGEST_REST = 1.0  # seconds


class GroupCommit(Generic[T]):
    """Writes rows in groups, one group at a time; rows that come meanwhile form the next group.

    ``gather`` is how many seconds a group waits for further rows; after a slow write it waits longer, so that the
    writes of others need not wait. A group also waits for callers that are ``coming`` when it is about to be written.
    """

    def __init__(self, write: Callable[[list[T]], Awaitable[None]], clock: Clock, gather: float = 0.0) -> None:
        self._write, self._clock, self._gather = write, clock, gather
        self._rows: list[T] = []
        self._next: asyncio.Future[None] | None = None  # of the rows that wait
        self._writing: asyncio.Task[None] | None = None
        self._rest = 0.0  # seconds
        self._last: asyncio.Future[None] | None = None  # of the newest group
        self._coming: set[asyncio.Future[None]] = set()  # of callers that will add rows soon

    @contextmanager
    def coming(self) -> Iterator[None]:
        """Rows are put within the context: a group that is about to be written waits for them.

        Nothing in the context may wait for a group.
        """
        here = asyncio.get_running_loop().create_future()
        self._coming.add(here)
        try:
            yield
        finally:
            self._coming.discard(here)
            here.set_result(None)

    async def add(self, rows: list[T]) -> None:
        """Write rows; returns when they are written, or raises what went wrong."""
        await asyncio.shield(self.put(rows))

    def put(self, rows: list[T]) -> asyncio.Future[None]:
        """Write rows; what is returned is done when they are written."""
        if self._next is None:
            self._next = self._last = asyncio.get_running_loop().create_future()
            self._next.add_done_callback(_retrieve)
        self._rows += rows
        group = self._next
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_groups())
        return group

    async def settled(self) -> None:
        """Return when all rows that were added before are written."""
        if self._last is not None and not self._last.done():
            await asyncio.shield(self._last)

    async def _write_groups(self) -> None:
        try:
            while self._next is not None:
                if self._gather > 0:
                    await self._clock.sleep(max(self._gather, self._rest))
                if self._coming:
                    await asyncio.wait(set(self._coming))
                rows, group = self._rows, self._next
                self._rows, self._next = [], None
                await self._write_one(rows, group)
        finally:
            self._writing = None

    async def _write_one(self, rows: list[T], group: asyncio.Future[None]) -> None:
        began = self._clock.now()
        try:
            await self._write(rows)
            self._rest = min(_REST * (self._clock.now() - began), _LONGEST_REST)
        except asyncio.CancelledError:
            for waiting in (group, self._next):
                if waiting is not None:
                    waiting.cancel()
            raise
        except Exception as problem:
            group.set_exception(problem)
        else:
            group.set_result(None)


def _retrieve(done: asyncio.Future[None]) -> None:
    """Whoever waited may be gone."""
    if not done.cancelled():
        done.exception()
