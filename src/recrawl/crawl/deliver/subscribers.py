"""Delivery of events to subscribers, in the order of their numbers; a batch is retried until it is accepted."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from recrawl.crawl.clock import Clock, sleep_unless
from recrawl.errors import RecrawlError
from recrawl.store.events import Event, Subscriber
from recrawl.store.protocol import Store

FIRST_WAIT, LONGEST_WAIT = 1.0, 300.0  # seconds between two tries: twice as long each time
_MANY = 100  # events in a batch
_LAST = 15.0  # seconds that subscribers have when a crawl ends

# Gets events and the number of events dropped before them; returns how many it accepted (None: all). If it raises,
# delivery is retried.
Callback = Callable[[list[Event], int], Awaitable[int | None] | int | None]


@runtime_checkable
class Deferring(Protocol):
    """A callback that may keep events for later. As a new subscriber it gets the events from now on, not earlier ones.

    What it accepted and did not pass on yet is its own to store.
    """

    async def load(self) -> None:
        """Take up what an earlier run kept."""
        ...

    def wake_at(self) -> float:
        """When `flush` is to be called; infinity: never."""
        ...

    async def flush(self) -> None:
        """Pass on what was kept. If it raises, it is called again."""
        ...


class NotDelivered(Exception):
    """A subscriber did not accept events; ``wait`` is for how many seconds it asks not to be called again."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


def backoff(failures: int, rng: random.Random, asked: float | None = None) -> float:
    """Seconds to wait after so many failures in a row: doubled each time, drawn from its upper half, at most
    ``LONGEST_WAIT``, also where more is asked for.
    """
    wait = min(FIRST_WAIT * 2.0 ** min(failures - 1, 30), LONGEST_WAIT) * rng.uniform(0.5, 1.0)
    return min(max(wait, asked or 0.0), LONGEST_WAIT)


class Delivery:
    """Delivers events to one subscriber. Its position is in the store, so that the next run continues there."""

    def __init__(
        self,
        name: str,
        callback: Callback,
        store: Store,
        clock: Clock,
        report: Callable[..., None],
        rng: random.Random | None = None,
    ) -> None:
        self.callback, self._store, self._clock, self._report = callback, store, clock, report
        self._rng = rng or random.Random()
        self._news, self._over = asyncio.Event(), asyncio.Event()
        self._missed = 0
        self.subscriber = Subscriber(name)

    async def resume(self) -> None:
        """Read the position of the subscriber; a new one is saved with the first position."""
        known = {one.name: one for one in await self._store.subscribers()}
        if isinstance(self.callback, Deferring):
            await self.callback.load()
        if self.subscriber.name not in known:
            if isinstance(self.callback, Deferring):
                last = (await self._store.event_counts())["last"]
                self.subscriber = replace(self.subscriber, cursor=last)
            await self._store.save_subscriber(self.subscriber)
        self.subscriber = known.get(self.subscriber.name, self.subscriber)

    def begin(self) -> asyncio.Task[None]:
        """Start to deliver."""
        self._news, self._over = asyncio.Event(), asyncio.Event()  # of the loop that runs now
        return asyncio.create_task(self._run())

    def notify(self) -> None:
        """There may be new events."""
        self._news.set()

    def end(self) -> None:
        """Deliver what is left, without retries, and end."""
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
                await self._idle()
            elif wait is not None:
                await self._pause(wait)

    async def step(self) -> float | None:
        """Deliver one batch; None if it was accepted, else seconds to wait (0: there are no events)."""
        if isinstance(self.callback, Deferring) and self.callback.wake_at() <= self._clock.now():
            return await self._flush(self.callback)
        events = await self._store.events(self.subscriber.cursor, _MANY)
        if not events:
            return 0.0
        missed = events[0].number - self.subscriber.cursor - 1
        if missed > self._missed:
            self._report("dropped", subscriber=self.subscriber.name, n=missed)
        self._missed = missed
        try:
            accepted = self.callback(events, missed)
            n = await accepted if isinstance(accepted, Awaitable) else accepted
            if n is not None and not 0 < n <= len(events):
                raise NotDelivered(f"{n} of {len(events)} accepted")
        except RecrawlError:
            raise
        except Exception as problem:
            return await self._failed(problem)
        await self._accepted(events[: len(events) if n is None else n])
        return None

    async def _flush(self, callback: Deferring) -> float | None:
        """Let a callback pass on what it kept; until it can, it gets no further events."""
        try:
            await callback.flush()
        except RecrawlError:
            raise
        except Exception as problem:
            return await self._failed(problem)
        await self._save(replace(self.subscriber, failures=0, failure=None, taken_at=self._clock.now()))
        return None

    async def _idle(self) -> None:
        """Wait for events, or until the callback is to pass on what it kept."""
        wake_at = self.callback.wake_at() if isinstance(self.callback, Deferring) else math.inf
        if wake_at == math.inf:
            await self._news.wait()
        else:
            await self._pause(max(wake_at - self._clock.now(), 0.0), self._news)

    async def _accepted(self, events: list[Event]) -> None:
        now, n = self._clock.now(), self.subscriber.taken + len(events)
        self._missed = 0
        done = replace(self.subscriber, cursor=events[-1].number, taken=n, failures=0, failure=None, taken_at=now)
        await self._save(done)

    async def _failed(self, problem: Exception) -> float:
        reason = str(problem) if isinstance(problem, NotDelivered) else f"{type(problem).__name__}"
        failures, now = self.subscriber.failures + 1, self._clock.now()
        await self._save(replace(self.subscriber, failures=failures, failure=reason, failed_at=now))
        self._report("not delivered", subscriber=self.subscriber.name, failures=failures, why=reason, problem=problem)
        return backoff(failures, self._rng, problem.wait if isinstance(problem, NotDelivered) else None)

    async def _save(self, subscriber: Subscriber) -> None:
        self.subscriber = subscriber
        await self._store.save_subscriber(subscriber)

    async def _pause(self, seconds: float, until: asyncio.Event | None = None) -> None:
        """Wait, unless the end comes, or another event is set."""
        await sleep_unless(self._clock, seconds, until or self._over)


class Deliveries:
    """The deliveries of a crawl to all its subscribers, independent of each other."""

    def __init__(
        self, subscribers: Mapping[str, Callback], store: Store, clock: Clock, report: Callable[..., None]
    ) -> None:
        self._store, self._clock, self._report = store, clock, report
        self._all = [Delivery(name, callback, store, clock, report) for name, callback in subscribers.items()]
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._watch: Callable[[asyncio.Task[Any]], None] | None = None  # while events are delivered

    async def resume(self) -> None:
        """Read the position of each subscriber."""
        for one in self._all:
            await one.resume()

    def begin(self, watch: Callable[[asyncio.Task[Any]], None]) -> None:
        """Start to deliver."""
        self._watch = watch
        for one in self._all:
            self._begin(one)

    def _begin(self, one: Delivery) -> None:
        if self._watch is not None:
            task = self._tasks[one.subscriber.name] = one.begin()
            self._watch(task)

    async def add(self, name: str, callback: Callback) -> None:
        """Deliver to one more subscriber from now on."""
        one = Delivery(name, callback, self._store, self._clock, self._report)
        await one.resume()
        self._all.append(one)
        self._begin(one)

    async def remove(self, name: str) -> Callback | None:
        """Deliver to a subscriber no longer, after what it is getting; its callback. None: there is none."""
        mine = [one for one in self._all if one.subscriber.name == name]
        self._all = [one for one in self._all if one not in mine]
        task = self._tasks.pop(name, None)
        if task is not None:
            mine[0].end()
            await self._ended({task})
            task.cancel()
        return mine[0].callback if mine else None

    @property
    def callbacks(self) -> list[Callback]:
        """What events are delivered to."""
        return [one.callback for one in self._all]

    def notify(self) -> None:
        """There may be new events."""
        for one in self._all:
            one.notify()

    def subscribers(self) -> list[Subscriber]:
        """The positions of all subscribers."""
        return [one.subscriber for one in self._all]

    async def finish(self) -> None:
        """Deliver what is left, for at most _LAST seconds."""
        for one in self._all:
            one.end()
        await self._ended(set(self._tasks.values()))

    async def _ended(self, tasks: set[asyncio.Task[None]]) -> None:
        """Wait until tasks have ended, for at most _LAST seconds."""
        if tasks:
            patience = asyncio.ensure_future(self._clock.sleep(_LAST))
            ended = asyncio.ensure_future(asyncio.wait(tasks))
            await asyncio.wait({patience, ended}, return_when=asyncio.FIRST_COMPLETED)
            patience.cancel()
            ended.cancel()

    async def close(self) -> None:
        """End now."""
        tasks, self._tasks, self._watch = list(self._tasks.values()), {}, None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
