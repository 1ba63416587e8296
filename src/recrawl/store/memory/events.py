"""Events of `MemoryStore`: the same in lists."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import islice
from threading import Lock
from uuid import uuid4

from recrawl.store.events import Event, EventLimits, Follower, Told, held_by, n_untaken, told_after
from recrawl.store.protocol import Copy


class EventList:
    """Events, what was told and who follows, within limits."""

    def __init__(self, limits: EventLimits) -> None:
        self.limits = limits
        self.told: dict[str, Told] = {}
        self._followers: dict[str, Follower] = {}
        self._events: deque[Event] = deque()
        self._last = self._size = 0
        self._mutex = Lock()
        self._stream = uuid4().hex[:16]

    def add(self, event: Event) -> None:
        """Keep an event and what has been told with it, within the limits."""
        with self._mutex:
            self._last += 1
            event = replace(event, number=self._last, id=f"{self._stream}.{self._last}")
            self._events.append(event)
            self._size += _size(event)
            self.told[event.url] = told_after(event)
            self._trim(event.at)

    def _trim(self, now: float) -> None:
        """Let the oldest go that are beyond the limits, or were taken by all and are old."""
        held, before = held_by(self._followers.values()), now - self.limits.age
        while self._events:
            first = self._events[0]
            beyond = len(self._events) > self.limits.rows or self._size > self.limits.size
            if not beyond and not (first.number <= held and first.at < before):
                return
            self._events.popleft()
            self._size -= _size(first)
            for name, follower in self._followers.items():
                n = n_untaken(follower, first.number, first.number)
                self._followers[name] = replace(follower, dropped=follower.dropped + n)

    def set_follower(self, follower: Follower) -> None:
        """Keep how far a follower is."""
        with self._mutex:
            before = self._followers.get(follower.name, follower)
            self._followers[follower.name] = replace(follower, dropped=before.dropped)

    def followers(self) -> list[Follower]:
        """All followers, by name."""
        return [self._followers[name] for name in sorted(self._followers)]

    def read(self, after: int, many: int) -> list[Event]:
        """Events after a number."""
        with self._mutex:
            start = max(0, after + 1 - self.totals()["first"])
            return list(islice(self._events, start, start + many))

    def totals(self) -> dict[str, int]:
        """How much there is."""
        first = self._events[0].number if self._events else self._last + 1
        return {"first": first, "last": self._last, "rows": len(self._events), "size": self._size}

    def standing(self, copies: dict[str, Copy]) -> list[Event]:
        """The pages that are there, as events of kind new."""
        found = []
        for k, (url, told) in enumerate(self.told.items()):
            copy = copies.get(url)
            if told.gone or copy is None:
                continue
            event = Event(self._last, f"{self._stream}.{self._last}.{k}", url, "new", copy.changed_at, copy.status)
            found.append(
                replace(
                    event,
                    content_type=copy.content_type,
                    new_digest=told.digest,
                    new_final_url=told.final_url,
                    new_text=told.text,
                )
            )
        return found


def _size(event: Event) -> int:
    return event.size + len(event.old_text or "") + len(event.new_text or "")
