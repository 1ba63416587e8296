"""robots.txt kept in the store, so that the next run need not read the file of every host again."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Iterator, MutableMapping
from itertools import islice
from typing import Any

from recrawl.crawl.polite.robots import CachedRobots
from recrawl.store.protocol import Store

PREFIX = "robots:"
_BYTES = 32 << 20  # of the files in memory
_ABSENT = 200_000  # origins that are remembered as absent
_ENTRY = 500  # bytes that a host counts beside its text


class RobotsCache(MutableMapping[str, CachedRobots]):
    """The files by origin; ``recall`` reads those from the store that are not in memory.

    ``pending_notes()`` are the notes to write with the next batch.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, CachedRobots] = OrderedDict()
        self._size = 0
        self._absent: set[str] = set()  # origins that the store does not have
        self._pending: set[str] = set()
        self._written: set[str] = set()  # given out as pending, perhaps not in the store yet

    async def recall(self, origin: str) -> None:
        """Read the file of an origin from the store, unless it is in memory."""
        if not self.recalled(origin):
            name = PREFIX + origin
            note = (await self._store.notes(name)).get(name)
            if note is None:
                if len(self._absent) >= _ABSENT:
                    self._absent.clear()
                self._absent.add(origin)
            elif origin not in self._known:
                self._put(origin, _read(note))

    def recalled(self, origin: str) -> bool:
        """Whether ``recall`` needs no read: the file is in memory, or known not to be in the store."""
        return origin in self._known or origin in self._absent

    def __getitem__(self, origin: str) -> CachedRobots:
        self._known.move_to_end(origin)
        return self._known[origin]

    def __setitem__(self, origin: str, cached: CachedRobots) -> None:
        self._absent.discard(origin)
        self._pending.add(origin)
        self._put(origin, cached)

    def __delitem__(self, origin: str) -> None:
        self._size -= _size(self._known.pop(origin))
        self._pending.add(origin)

    def _put(self, origin: str, cached: CachedRobots) -> None:
        """Cache a file, and drop those that were used longest ago and are in the store."""
        before = self._known.pop(origin, None)
        self._size += _size(cached) - (0 if before is None else _size(before))
        self._known[origin] = cached
        for old in list(islice(self._known, 1000)) if self._size > _BYTES else ():
            if self._size <= _BYTES:
                break
            if old not in self._pending and old not in self._written and old != origin:
                self._size -= _size(self._known.pop(old))

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def pending_notes(self) -> dict[str, Any]:
        """Notes of what changed since the last call."""
        pending, self._written, self._pending = self._pending, self._pending, set()
        return {PREFIX + origin: _note(self._known.get(origin)) for origin in pending}


def _size(cached: CachedRobots) -> int:
    return _ENTRY + len(cached.text or b"")


def _note(cached: CachedRobots | None) -> dict[str, Any] | None:
    if cached is None:
        return None
    text = None if cached.text is None else b64encode(cached.text).decode()
    return {"text": text, "at": [cached.read_at, cached.until, cached.wait], "failure": cached.failure}


def _read(note: dict[str, Any]) -> CachedRobots:
    text = None if note["text"] is None else b64decode(note["text"])
    read_at, until, wait = note["at"]
    return CachedRobots(text, read_at, until, wait, note["failure"])
