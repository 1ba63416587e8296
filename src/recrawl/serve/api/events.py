"""``GET /v1/events``: what became of pages, as server-sent events."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import AsyncIterator
from typing import Any, Protocol

from fastapi.responses import StreamingResponse

from recrawl.crawl.clock import Clock
from recrawl.serve.api import models as m
from recrawl.serve.api.endpoint import Call, Endpoint
from recrawl.serve.problems import ProblemError
from recrawl.store.protocol import Store

START = "start"  # the cursor before the oldest event that is kept
_MOST = 50  # streams at a time
_LOOK = 0.5  # seconds between two looks for new events
_SILENCE = 15.0  # seconds after which a comment is sent, so that the stream is not taken for dead


class EventReader(Protocol):
    """Events after a cursor; cursors are texts that nobody else reads."""

    async def begin(self, cursor: str | None) -> str:
        """Where a stream begins: at a cursor that was given, or else at new events; ProblemError if it is none."""

    async def after(self, cursor: str) -> list[tuple[str, dict[str, Any]]]:
        """Some events after a cursor, each with the cursor after it."""


class StoreEvents:
    """See `EventReader`: the events of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def begin(self, cursor: str | None) -> str:
        """See `EventReader`."""
        return cursor_of((await self._store.event_counts())["last"] if cursor is None else number_of(cursor))

    async def after(self, cursor: str) -> list[tuple[str, dict[str, Any]]]:
        """See `EventReader`."""
        return [(cursor_of(one.number), one.as_dict()) for one in await self._store.events(number_of(cursor))]


def event_endpoints(events: EventReader, clock: Clock) -> list[Endpoint]:
    """The stream of events."""
    streams = EventStreams(events, clock)
    what = "Stream events: what became of pages"
    return [
        Endpoint("GET", "/v1/events", "read", what, streams.serve, m.Facts, query=m.EventsQuery, streams=True),
    ]


class EventStreams:
    """Streams of events; each goes on after the cursor that its caller gives, else with new events."""

    def __init__(self, events: EventReader, clock: Clock) -> None:
        self._events, self._clock = events, clock
        self._n = 0

    async def serve(self, call: Call) -> StreamingResponse:
        """Begin a stream."""
        after = await self._events.begin(call.request.headers.get("last-event-id") or call.query.cursor)
        if self._n >= _MOST:
            raise ProblemError.limited(f"there are {_MOST} streams already", 5.0)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self._stream(after), media_type="text/event-stream", headers=headers)

    async def _stream(self, after: str) -> AsyncIterator[str]:
        self._n += 1
        try:
            yield f"id: {after}\nretry: 2000\n\n"  # so that nothing is missed if the connection is lost before an event
            said_at = self._clock.now()
            while True:
                found = await self._events.after(after)
                for after, one in found:
                    yield f"id: {after}\nevent: {one['kind']}\ndata: {json.dumps(one)}\n\n"
                now = self._clock.now()
                if found:
                    said_at = now
                elif now - said_at >= _SILENCE:
                    said_at = now
                    yield ":\n\n"
                if not found:
                    await self._clock.sleep(_LOOK)
        finally:
            self._n -= 1


def cursor_of(number: int) -> str:
    """The cursor after an event.

    >>> number_of(cursor_of(12)), number_of("start")
    (12, 0)
    """
    return base64.urlsafe_b64encode(f"event {number}".encode()).decode()


def number_of(cursor: str) -> int:
    """The number of the last event before a cursor, or ProblemError."""
    if cursor == START:
        return 0
    try:
        kind, _, number = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        if kind != "event" or not 0 <= int(number) < 1 << 62:
            raise ValueError
        return int(number)
    except (ValueError, binascii.Error):
        raise ProblemError(422, "cursor: is not one that a stream of events gave", field="cursor", row=None) from None
