"""Events of a service, read from the lines of its stream of server-sent events."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from recrawl.errors import ServiceError

PAUSE = 0.5  # seconds between the end of a stream and the next


@dataclass(frozen=True, slots=True)
class PageEvent:
    """What became of a page: ``kind``, all ``facts`` of the event, and the ``cursor`` to go on after it."""

    cursor: str
    kind: str
    facts: dict[str, Any]

    @property
    def url(self) -> str:
        """The page."""
        return str(self.facts["url"])


class EventLines:
    """Makes events of lines; ``cursor`` is where a stream goes on that has ended.

    >>> lines = EventLines("start")
    >>> [lines.take(line) for line in (b"id: a", b'data: {"kind": "changed", "url": "u"}', b": silence")]
    [None, None, None]
    >>> lines.take(b"").kind, lines.cursor
    ('changed', 'a')
    """

    def __init__(self, cursor: str | None) -> None:
        self.cursor = cursor
        self._id, self._data = cursor, list[str]()

    def begin(self) -> None:
        """A new stream: an event that was cut off comes again."""
        self._id, self._data = self.cursor, []

    def take(self, line: bytes) -> PageEvent | None:
        """The event that ends with a line, if one does."""
        name, _, value = line.rstrip(b"\r\n").decode("utf-8", "replace").partition(":")
        if name == "id":
            self._id = value.removeprefix(" ")
        elif name == "data":
            self._data.append(value.removeprefix(" "))
        elif not line.rstrip(b"\r\n"):
            return self._end()
        return None

    def _end(self) -> PageEvent | None:
        data, self._data, self.cursor = "\n".join(self._data), [], self._id
        if not data:
            return None
        try:
            facts = json.loads(data)
            return PageEvent(str(self.cursor), str(facts["kind"]), facts)
        except (ValueError, KeyError, TypeError):
            raise ServiceError(f"an event cannot be read: {data[:200]!r}") from None
