"""Events of `MemoryStore`, in lists."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from threading import Lock
from uuid import uuid4

from recrawl.store.events import (
    Event,
    EventLimits,
    LastEvent,
    Subscriber,
    delivered_to_all,
    last_event_after,
    n_undelivered,
)
from recrawl.store.protocol import Copy


class EventList:
    """Events, the last event of each page, and the subscribers, within limits."""

    def __init__(self, limits: EventLimits) -> None:
        self.limits = limits
        self.last_events: dict[str, LastEvent] = {}
        self._subscribers: dict[str, Subscriber] = {}
        self._events: deque[Event] = deque()
        self._last = self._size = 0
        self._mutex = Lock()
        self._stream = uuid4().hex[:16]

    def add(self, event: Event) -> None:
        """Keep an event, within the limits."""
        with self._mutex:
            self._last += 1
            event = replace(event, number=self._last, id=f"{self._stream}.{self._last}")
            self._events.append(event)
            self._size += _size(event)
            self.last_events[event.url] = last_event_after(event)
            if event.old_text is not None or event.new_text is not None:
                self._trim_texts(event.url)
            self._trim(event.at)

    def _trim_texts(self, url: str) -> None:
        """Delete the texts of a page's delivered events, but of the newest."""
        held = delivered_to_all(self._subscribers.values())
        with_text = [
            k
            for k, one in enumerate(self._events)
            if one.url == url and (one.old_text is not None or one.new_text is not None)
        ]
        for k in with_text[: max(len(with_text) - self.limits.texts, 0)]:
            if (one := self._events[k]).number <= held:
                self._events[k] = replace(one, old_text=None, new_text=None)
                self._size += _size(self._events[k]) - _size(one)

    def _trim(self, now: float) -> None:
        """Delete the oldest events: those beyond the limits, and those that are old and were delivered to all."""
        held, before = delivered_to_all(self._subscribers.values()), now - self.limits.age
        while self._events:
            first = self._events[0]
            beyond = len(self._events) > self.limits.rows or self._size > self.limits.size
            if not beyond and not (first.number <= held and first.at < before):
                return
            self._events.popleft()
            self._size -= _size(first)
            for name, subscriber in self._subscribers.items():
                n = n_undelivered(subscriber, first.number, first.number)
                self._subscribers[name] = replace(subscriber, dropped=subscriber.dropped + n)

    def set_subscriber(self, subscriber: Subscriber) -> None:
        """Keep the position of a subscriber."""
        with self._mutex:
            before = self._subscribers.get(subscriber.name, subscriber)
            self._subscribers[subscriber.name] = replace(subscriber, dropped=before.dropped)

    def remove_subscriber(self, name: str) -> None:
        """Forget a subscriber."""
        with self._mutex:
            self._subscribers.pop(name, None)

    def subscribers(self) -> list[Subscriber]:
        """All subscribers, by name."""
        return [self._subscribers[name] for name in sorted(self._subscribers)]

    def read(self, after: int, many: int) -> list[Event]:
        """Events after a number."""
        with self._mutex:
            start = max(0, after + 1 - self.totals()["first"])
            return list(islice(self._events, start, start + many))

    def newest(self, many: int, url: str | None, kinds: Sequence[str] | None) -> list[Event]:
        """The newest events, of one page or all, of some kinds or all."""
        with self._mutex:
            found = (one for one in reversed(self._events) if url is None or one.url == url)
            return list(islice((one for one in found if kinds is None or one.kind in kinds), many))

    def totals(self) -> dict[str, int]:
        """Numbers of events and their size."""
        first = self._events[0].number if self._events else self._last + 1
        return {"first": first, "last": self._last, "rows": len(self._events), "size": self._size}

    def snapshot(self, copies: dict[str, Copy]) -> list[Event]:
        """The pages that exist, as events of kind new."""
        found = []
        for k, (url, last) in enumerate(self.last_events.items()):
            copy = copies.get(url)
            if last.gone or copy is None:
                continue
            event = Event(self._last, f"{self._stream}.{self._last}.{k}", url, "new", copy.changed_at, copy.status)
            found.append(
                replace(
                    event,
                    content_type=copy.content_type,
                    new_digest=last.digest,
                    new_final_url=last.final_url,
                    new_text=last.text,
                )
            )
        return found


def _size(event: Event) -> int:
    return event.size + len(event.old_text or "") + len(event.new_text or "")
