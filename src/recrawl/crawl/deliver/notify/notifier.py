"""Notifier: a subscriber that sends messages to people, at once or collected.

Events that wait for a digest or for the end of quiet hours are kept by number, in a note of the store, before the
subscriber accepts them. They are read again when they are sent, so that a restart loses none; one that is sent just
before the process is killed is sent again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from recrawl.crawl.clock import Clock, hold
from recrawl.crawl.deliver.notify.message import SHOWN, Message, message_of
from recrawl.store.events import Event

PREFIX = "notify:"  # of the names of subscribers, and of the notes of what waits
_MOST = 1000  # events that wait by number; further ones are counted


class NotifyRule(Protocol):
    """Which events are sent, and when."""

    @property
    def name(self) -> str:
        """The name of the rule."""
        ...

    @property
    def diff(self) -> bool:
        """Whether messages show what changed."""
        ...

    def wants(self, event: Event) -> bool:
        """Whether an event is sent."""
        ...

    def due_at(self, since: float, now: float) -> float:
        """When events are sent of which the first came at ``since``."""
        ...


class Send(Protocol):
    """What sends messages; it raises NotDelivered if one was not accepted."""

    async def __call__(self, message: Message) -> None:
        """Send a message."""
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


class Kept(Protocol):
    """Where a notifier keeps what waits, and finds events again: a store."""

    async def notes(self, prefix: str = "") -> dict[str, Any]:
        """See `Store.notes`."""

    async def save(self, *, notes: Mapping[str, Any]) -> None:
        """See `Store.save`."""

    async def events(self, after: int = 0, many: int = 200) -> list[Event]:
        """See `Store.events`."""


class Notifier:
    """A callback of `Delivery` that may send later."""

    def __init__(self, rule: NotifyRule, send: Send, store: Kept, clock: Clock) -> None:
        self.rule, self._send, self._store, self._clock = rule, send, store, clock
        self._numbers: list[int] = []
        self._n_more, self._since = 0, math.inf

    @property
    def name(self) -> str:
        """The name of the subscriber, and of the note."""
        return PREFIX + self.rule.name

    @property
    def n_waiting(self) -> int:
        """How many events wait."""
        return len(self._numbers) + self._n_more

    async def load(self) -> None:
        """Take up what waited when an earlier run ended."""
        note = (await self._store.notes(self.name)).get(self.name)
        if note is not None:
            self._numbers, self._n_more, self._since = list(note["numbers"]), int(note["more"]), float(note["since"])

    async def __call__(self, events: list[Event], missed: int) -> int:
        """Send the events that the rule wants, or keep them for later; all are accepted."""
        wanted = [event for event in events if self.rule.wants(event)]
        if not wanted:
            return len(events)
        now = self._clock.now()
        if not self.n_waiting and self.rule.due_at(now, now) <= now:
            await self._deliver(wanted, 0)
            return len(events)
        room = _MOST - len(self._numbers)
        self._numbers += [event.number for event in wanted[:room]]
        self._n_more += max(len(wanted) - room, 0)
        self._since = min(self._since, now)
        await self._save()
        return len(events)

    def wake_at(self) -> float:
        """When `flush` is due; infinity while nothing waits."""
        return math.inf if not self.n_waiting else self.rule.due_at(self._since, self._clock.now())

    async def flush(self) -> None:
        """Send what waits."""
        events = [event for number in self._numbers[:SHOWN] for event in await self._store.events(number - 1, 1)]
        events = [event for event, number in zip(events, self._numbers, strict=False) if event.number == number]
        n_more = self.n_waiting - len(events)
        if events:
            await self._deliver(events, n_more)
        self._numbers, self._n_more, self._since = [], 0, math.inf
        await self._save()

    async def _deliver(self, events: Sequence[Event], n_more: int) -> None:
        """Differences are computed in a thread, since long pages take a while; a manual clock stands still."""
        with hold(self._clock):
            message = await asyncio.to_thread(message_of, events, diffs=self.rule.diff, n_more=n_more)
        await self._send(message)

    async def close(self) -> None:
        """Close the connections of what sends messages."""
        await self._send.close()

    async def _save(self) -> None:
        waiting = {"numbers": self._numbers, "more": self._n_more, "since": self._since}
        await self._store.save(notes={self.name: waiting if self.n_waiting else None})
