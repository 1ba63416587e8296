"""Delivery: events handed to those who follow, in the order of their numbers, until each batch is taken."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from recrawl.crawl.clock import Clock
from recrawl.errors import RecrawlError
from recrawl.store.events import Event, Follower
from recrawl.store.protocol import Store

FIRST_WAIT, LONGEST_WAIT = 1.0, 300.0  # seconds between two tries: twice as long each time
_MANY = 100  # events in a batch
_LAST = 15.0  # seconds that followers have when a crawl ends

# Takes events and how many before them were dropped; how many it has taken (None: all). What it raises is a no.
Take = Callable[[list[Event], int], Awaitable[int | None] | int | None]


class NotTaken(Exception):
    """Why events were not taken, in a few words; ``wait`` is how long the follower asks to be left alone."""

    def __init__(self, words: str, wait: float | None = None) -> None:
        super().__init__(words)
        self.wait = wait


def backoff(failures: int, rng: random.Random, asked: float | None = None) -> float:
    """Seconds to wait after so many failures in a row: doubled each time, drawn from its upper half, at most
    ``LONGEST_WAIT``, also where more is asked for.
    """
    wait = min(FIRST_WAIT * 2.0 ** min(failures - 1, 30), LONGEST_WAIT) * rng.uniform(0.5, 1.0)
    return min(max(wait, asked or 0.0), LONGEST_WAIT)


class Delivery:
    """Hands events to one follower; how far it is stays in the store, so that the next run goes on from there."""

    def __init__(
        self,
        name: str,
        take: Take,
        store: Store,
        clock: Clock,
        tell: Callable[..., None],
        rng: random.Random | None = None,
    ) -> None:
        self._take, self._store, self._clock, self._tell = take, store, clock, tell
        self._rng = rng or random.Random()
        self._news, self._over = asyncio.Event(), asyncio.Event()
        self._missed = 0
        self.follower = Follower(name)

    async def resume(self) -> None:
        """Read how far the follower is; one that is not known yet is kept from now on."""
        known = {one.name: one for one in await self._store.followers()}
        if self.follower.name not in known:
            await self._store.follow(self.follower)
        self.follower = known.get(self.follower.name, self.follower)

    def begin(self) -> asyncio.Task[None]:
        """Let it run."""
        self._news, self._over = asyncio.Event(), asyncio.Event()  # of the loop that runs now
        return asyncio.create_task(self._run())

    def stir(self) -> None:
        """There may be events."""
        self._news.set()

    def end(self) -> None:
        """Hand over what is there, without trying anything twice, and end."""
        self._over.set()
        self._news.set()

    async def _run(self) -> None:
        """Deliver until the end."""
        while True:
            self._news.clear()
            wait = await self.step()
            if self._over.is_set() and wait is not None:
                return
            if wait == 0.0:
                await self._news.wait()
            elif wait is not None:
                await self._pause(wait)

    async def step(self) -> float | None:
        """Hand over one batch; None where it was taken, else seconds to wait (0: there is nothing to hand over)."""
        events = await self._store.events(self.follower.cursor, _MANY)
        if not events:
            return 0.0
        missed = events[0].number - self.follower.cursor - 1
        if missed > self._missed:
            self._tell("dropped", follower=self.follower.name, n=missed)
        self._missed = missed
        try:
            taken = self._take(events, missed)
            n = await taken if isinstance(taken, Awaitable) else taken
            if n is not None and not 0 < n <= len(events):
                raise NotTaken(f"{n} of {len(events)} taken")
        except RecrawlError:
            raise
        except Exception as problem:
            return await self._refused(problem)
        await self._taken(events[: len(events) if n is None else n])
        return None

    async def _taken(self, events: list[Event]) -> None:
        now, n = self._clock.now(), self.follower.taken + len(events)
        self._missed = 0
        done = replace(self.follower, cursor=events[-1].number, taken=n, failures=0, failure=None, taken_at=now)
        await self._keep(done)

    async def _refused(self, problem: Exception) -> float:
        words = str(problem) if isinstance(problem, NotTaken) else f"{type(problem).__name__}"
        failures, now = self.follower.failures + 1, self._clock.now()
        await self._keep(replace(self.follower, failures=failures, failure=words, failed_at=now))
        self._tell("not taken", follower=self.follower.name, failures=failures, why=words, problem=problem)
        return backoff(failures, self._rng, problem.wait if isinstance(problem, NotTaken) else None)

    async def _keep(self, follower: Follower) -> None:
        self.follower = follower
        await self._store.follow(follower)

    async def _pause(self, seconds: float) -> None:
        """Wait, unless the end comes."""
        timer = asyncio.ensure_future(self._clock.sleep(seconds))
        over = asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait({timer, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            over.cancel()


class Deliveries:
    """The deliveries of a crawl to all its followers, each at its own pace."""

    def __init__(self, followers: Mapping[str, Take], store: Store, clock: Clock, tell: Callable[..., None]) -> None:
        self._clock = clock
        self._all = [Delivery(name, take, store, clock, tell) for name, take in followers.items()]
        self._tasks: list[asyncio.Task[None]] = []

    async def resume(self) -> None:
        """Read how far each follower is."""
        for one in self._all:
            await one.resume()

    def begin(self, watch: Callable[[asyncio.Task[Any]], None]) -> None:
        """Let them run."""
        self._tasks = [one.begin() for one in self._all]
        for task in self._tasks:
            watch(task)

    def stir(self) -> None:
        """There may be events."""
        for one in self._all:
            one.stir()

    async def finish(self) -> None:
        """Hand over what is there, for a while."""
        for one in self._all:
            one.end()
        if self._tasks:
            patience = asyncio.ensure_future(self._clock.sleep(_LAST))
            ended = asyncio.ensure_future(asyncio.wait(self._tasks))
            await asyncio.wait({patience, ended}, return_when=asyncio.FIRST_COMPLETED)
            patience.cancel()
            ended.cancel()

    async def close(self) -> None:
        """End at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
