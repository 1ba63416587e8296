"""What robots.txt said, kept in the store: a crawl that is started again need not ask every host anew."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, MutableMapping
from typing import Any

from recrawl.crawl.robots import Kept
from recrawl.store.base import Store

PREFIX = "robots:"


class RobotsKept(MutableMapping[str, Kept]):
    """What is remembered of hosts by origin, read from the store when first asked for.

    ``news()`` are the notes to be written with the next batch.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, Kept] = {}
        self._news: set[str] = set()

    def __getitem__(self, origin: str) -> Kept:
        if origin not in self._known:
            name = PREFIX + origin
            self._known[origin] = _read(self._store.noted(name)[name])
        return self._known[origin]

    def __setitem__(self, origin: str, kept: Kept) -> None:
        self._known[origin] = kept
        self._news.add(origin)

    def __delitem__(self, origin: str) -> None:
        del self._known[origin]
        self._news.add(origin)

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def news(self) -> dict[str, Any]:
        """Notes of what changed since the last time asked."""
        news, self._news = self._news, set()
        return {PREFIX + origin: _note(self._known.get(origin)) for origin in news}


def _note(kept: Kept | None) -> dict[str, Any] | None:
    if kept is None:
        return None
    text = None if kept.text is None else b64encode(kept.text).decode()
    return {"text": text, "at": [kept.read_at, kept.until, kept.wait], "failure": kept.failure}


def _read(note: dict[str, Any]) -> Kept:
    text = None if note["text"] is None else b64decode(note["text"])
    read_at, until, wait = note["at"]
    return Kept(text, read_at, until, wait, note["failure"])
