"""Checkpoints of a running crawl: from time to time the engine's state is written beside the database.

The order makes sure that a crash at any moment leaves a state that the database can bring up to date: first a mark is
set in the database, which notes all pages written from then on; then a copy of this process writes its state to a
temporary file; when all that the engine knew by then is committed, the file replaces the one before; at last the notes
before the mark are deleted.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from recrawl._system import forks
from recrawl._system.worker import Worker
from recrawl.crawl.run.opening.checkpoint import rules_stamp
from recrawl.crawl.run.opening.components import Components
from recrawl.engine.checkpoint import write_checkpoint
from recrawl.engine.policies.names import by_rates
from recrawl.logs import event
from recrawl.store.protocol import MarkedStore

log = logging.getLogger(__name__)

_EVERY = 600.0  # seconds between two checkpoints, at least
_RATE = 1e6  # bytes per second that checkpoints write on average, at most


class Checkpoints:
    """When checkpoints are written, and how; one that fails is logged, and tried again when the next one is due."""

    def __init__(self, components: Components, committed: Callable[[], Awaitable[None]]) -> None:
        self._components = components
        self._committed = committed  # returns when all that the engine knows is committed
        store, pages = components.store, components.options.checkpoint_pages
        self._store = store if isinstance(store, MarkedStore) and pages > 0 else None
        self._due_at = math.inf
        self._mark: str | None = None  # of the last one that is complete
        self._running: asyncio.Task[None] | None = None

    def begin(self, now: float) -> None:
        """A run begins."""
        self._due_at = now + _EVERY if self._store is not None else math.inf

    def start_if_due(self, now: float) -> asyncio.Task[None] | None:
        """Start to write a checkpoint if it is time: the task."""
        if now < self._due_at or self._running is not None or not self._is_wanted() or not forks.AVAILABLE:
            return None
        self._due_at = math.inf
        self._running = asyncio.create_task(self._write_next())
        return self._running

    async def finish(self) -> None:
        """Write the last checkpoint of a run, if anything was written since the one before."""
        if self._running is not None:
            await asyncio.wait([self._running])
        if self._store is None or not self._is_wanted():
            return
        if self._mark is None or await self._store.writes_since(self._mark):
            await self._write_next()

    def _is_wanted(self) -> bool:
        """Whether the engine is large, and of a policy that can be brought up to date by rows."""
        engine = self._components.engine
        return len(engine) >= self._components.options.checkpoint_pages and not by_rates(engine.settings.policy)

    async def _write_next(self) -> None:
        assert self._store is not None
        path, clock = self._store.checkpoint_path, self._components.clock
        size = 0
        try:
            size = await self._write(self._store, path)
        except OSError as problem:
            event(log, logging.WARNING, "checkpoint.failed", file=path, reason=str(problem))
        finally:
            self._running = None
            self._due_at = clock.now() + max(_EVERY, size / _RATE)

    async def _write(self, store: MarkedStore, path: Path) -> int:
        """Write a checkpoint; its size in bytes."""
        mark = await store.set_mark()
        partial = path.with_name(f"{path.name}.{os.getpid()}.part")
        about = {"mark": mark, "rules": rules_stamp(self._components.options.rules)}
        engine = self._components.engine
        try:
            if forks.AVAILABLE:
                copy = forks.fork(lambda: write_checkpoint(engine, partial, about))
                await _ended(copy)
            else:
                write_checkpoint(engine, partial, about)
            await self._committed()
            size = partial.stat().st_size
            _replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
        self._mark = mark
        await store.drop_marks(mark)
        event(log, logging.INFO, "checkpoint.written", file=path, bytes=size)
        return size


async def _ended(copy: int) -> None:
    """Wait until the process that writes has ended."""
    worker = Worker("recrawl-checkpoint")
    try:
        if not await worker.call(forks.ended_well, copy):
            raise OSError("the process that writes it has failed; perhaps the disk is full")
    finally:
        worker.close()


def _replace(partial: Path, path: Path) -> None:
    """Let a file take the place of another, also after a loss of power."""
    os.replace(partial, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
