"""One notification of a cluster: takes the events of all shards, sends them or keeps them for its digest."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from recrawl.cluster.notices.book import NoticeBook, Position
from recrawl.cluster.notices.events import AllEvents
from recrawl.cluster.ownership.gate import Gate
from recrawl.cluster.ownership.leases import LeaseLostError
from recrawl.crawl.clock import Clock
from recrawl.crawl.deliver.notify.notifier import Notifier, NotifyRule, Send
from recrawl.crawl.deliver.subscribers import NotDelivered, backoff
from recrawl.crawl.run.progress import Reporter
from recrawl.errors import RecrawlError, StoreUnreachableError
from recrawl.store.events import Event

_PAUSE = 0.2  # seconds between two attempts to write
LOOK = 2.0  # seconds between two looks for events


class RuleNotices:
    """What was sent and what waits is written in one transaction, after a message was accepted.

    A message is sent while the lease lasts. One that is sent just before the process is killed is sent again.
    """

    def __init__(
        self, rule: NotifyRule, send: Send, events: AllEvents, book: NoticeBook, gate: Gate, clock: Clock
    ) -> None:
        self.notifier = Notifier(rule, send, self, clock)
        self._all, self._book, self._gate, self._clock = events, book, gate, clock
        self._report, self._rng = Reporter(), random.Random()
        self.position = Position([])

    async def begin(self, known: Position | None) -> None:
        """Go on from a position; without one, events count from now on."""
        if known is None:
            known = Position(await self._all.last())
            await self._book.write(self.notifier.name, known)
        self.position = known
        await self.notifier.load()

    # --- what the notifier keeps --------------------------------------------------------------------------------------

    async def notes(self, prefix: str = "") -> dict[str, Any]:
        """What waits."""
        return {} if self.position.waiting is None else {prefix: self.position.waiting}

    async def save(self, *, notes: Mapping[str, Any]) -> None:
        """What waits; it is written with the position."""
        self.position.waiting = notes[self.notifier.name]

    async def events(self, after: int = 0, many: int = 1) -> list[Event]:
        """The event after a number, if it is kept."""
        return await self._all.one(after + 1)

    # --- steps --------------------------------------------------------------------------------------------------------

    async def run(self, over: asyncio.Event) -> None:
        """Deliver until it is over; what is being sent then is sent and written."""
        while not over.is_set():
            wait = await self.step()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await over.wait()

    async def step(self) -> float:
        """Send what is due, or take a batch of events; seconds until the next step."""
        if self.notifier.wake_at() <= self._clock.now():
            wait, _ = await self._tried(self.notifier.flush)
            return wait
        events, cursors = await self._all.after(self.position.cursors)
        if cursors == self.position.cursors:
            return LOOK
        taken = len(events)

        async def take() -> None:
            if events:
                await self.notifier(events, 0)
            self.position.cursors = cursors

        wait, done = await self._tried(take, taken)
        return 0.0 if done else wait

    async def _tried(self, work: Callable[[], Awaitable[None]], taken: int = 0) -> tuple[float, bool]:
        """Do something that may send; seconds to wait, and whether it was accepted. It is written in any case."""
        position, wait, done = self.position, LOOK, False
        try:
            if not await self._gate.during(lambda: _true(work), lambda: False):
                raise NotDelivered("the lease for notifications is over")
            position.failures, position.failure, done = 0, None, True
            position.taken, position.taken_at = position.taken + taken, self._clock.now()
        except RecrawlError:
            raise
        except Exception as problem:
            reason = str(problem) if isinstance(problem, NotDelivered) else type(problem).__name__
            position.failures, position.failure, position.failed_at = position.failures + 1, reason, self._clock.now()
            name, asked = self.notifier.name, problem.wait if isinstance(problem, NotDelivered) else None
            self._report("not delivered", subscriber=name, failures=position.failures, why=reason, problem=problem)
            wait = backoff(position.failures, self._rng, asked)
        await self._write()
        return wait, done

    async def _write(self) -> None:
        """Write the position; a message that was sent is not sent again because the database was away meanwhile."""
        while True:
            self._gate.check_not_lost()
            try:
                return await self._book.write(self.notifier.name, self.position)
            except (StoreUnreachableError, LeaseLostError):
                await asyncio.sleep(_PAUSE)


async def _true(work: Callable[[], Awaitable[None]]) -> bool:
    await work()
    return True
