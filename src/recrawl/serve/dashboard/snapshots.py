"""Snapshots: figures about all pages, computed from the database beside the event loop: no crawl waits for them.

They are those of ``recrawl status`` and ``recrawl signals``, the forecast at several budgets, and the pages whose
copies are probably stale. A snapshot is made when somebody looks and the last one is old; its age is shown.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress

from recrawl.errors import RecrawlError
from recrawl.logs import event
from recrawl.serve.crawls.view import CrawlView, Snapshot

log = logging.getLogger(__name__)

_FRESH_FOR = 15.0  # seconds until the next snapshot, at least
_REST = 20.0  # times as long as the last one took


class Snapshots:
    """The last snapshot; a new one is begun when it is asked for and old."""

    def __init__(self, crawl: CrawlView) -> None:
        self._crawl = crawl
        self._task: asyncio.Task[None] | None = None
        self._due_at = 0.0  # by the monotonic clock
        self._closed = False
        self.latest: Snapshot | None = None
        self.error: str | None = None  # why the last one could not be made

    def get(self) -> Snapshot | None:
        """The last snapshot, None before the first; a new one is begun if it is time."""
        if self._task is None and time.monotonic() >= self._due_at:
            self._task = asyncio.create_task(self._take())
        return self.latest

    def expire(self) -> None:
        """Something was changed: the next look begins a new snapshot."""
        self._due_at = 0.0

    @property
    def busy(self) -> bool:
        """Whether a snapshot is being made."""
        return self._task is not None

    async def close(self) -> None:
        """End a snapshot that is being made by another process; one that is made here is waited for."""
        self._closed = True
        self._crawl.questions.interrupt()
        if self._task is not None:
            with suppress(Exception):
                await asyncio.wait([self._task])

    async def _take(self) -> None:
        try:
            crawl = self._crawl
            self.latest = await asyncio.to_thread(crawl.questions.snapshot, crawl.clock.now())
            self.error = None
            self._due_at = time.monotonic() + max(_FRESH_FOR, _REST * self.latest.took)
        except (RecrawlError, OSError) as problem:
            self.error = " ".join(str(problem).split())
            self._due_at = time.monotonic() + _FRESH_FOR
            if not self._closed:
                event(log, logging.ERROR, "dashboard.failed", error=problem)
        finally:
            self._task = None
