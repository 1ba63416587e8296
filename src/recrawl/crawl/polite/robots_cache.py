"""What robots.txt said, kept in the store: a crawl that is started again need not ask every host anew."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Iterator, MutableMapping
from itertools import islice
from typing import Any

from recrawl.crawl.polite.robots import Kept
from recrawl.store.protocol import Store

PREFIX = "robots:"
_BYTES = 32 << 20  # of what is remembered beside the store
_ENTRY = 500  # bytes that a host counts as beside its text


class RobotsKept(MutableMapping[str, Kept]):
    """What is remembered of hosts by origin, read from the store when first asked for, or again after a long time.

    ``news()`` are the notes to be written with the next batch.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, Kept] = OrderedDict()
        self._size = 0
        self._news: set[str] = set()
        self._written: set[str] = set()  # asked for as news, perhaps not in the store yet

    def __getitem__(self, origin: str) -> Kept:
        if origin not in self._known:
            name = PREFIX + origin
            self._keep(origin, _read(self._store.noted(name)[name]))
        self._known.move_to_end(origin)
        return self._known[origin]

    def __setitem__(self, origin: str, kept: Kept) -> None:
        self._news.add(origin)
        self._keep(origin, kept)

    def __delitem__(self, origin: str) -> None:
        self._size -= _size(self._known.pop(origin))
        self._news.add(origin)

    def _keep(self, origin: str, kept: Kept) -> None:
        """Remember, and let go of what was asked for longest ago and is in the store."""
        before = self._known.pop(origin, None)
        self._size += _size(kept) - (0 if before is None else _size(before))
        self._known[origin] = kept
        for old in list(islice(self._known, 1000)) if self._size > _BYTES else ():
            if self._size <= _BYTES:
                break
            if old not in self._news and old not in self._written and old != origin:
                self._size -= _size(self._known.pop(old))

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def news(self) -> dict[str, Any]:
        """Notes of what changed since the last time asked."""
        news, self._written, self._news = self._news, self._news, set()
        return {PREFIX + origin: _note(self._known.get(origin)) for origin in news}


def _size(kept: Kept) -> int:
    return _ENTRY + len(kept.text or b"")


def _note(kept: Kept | None) -> dict[str, Any] | None:
    if kept is None:
        return None
    text = None if kept.text is None else b64encode(kept.text).decode()
    return {"text": text, "at": [kept.read_at, kept.until, kept.wait], "failure": kept.failure}


def _read(note: dict[str, Any]) -> Kept:
    text = None if note["text"] is None else b64decode(note["text"])
    read_at, until, wait = note["at"]
    return Kept(text, read_at, until, wait, note["failure"])
