"""Dropped pages: removed from their sitemap, and reported once when they are gone at the server too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_MOST = 10_000  # pages that wait for their crawl
_SHOWN = 20  # of the pages that are gone


class DroppedPages:
    """Pages that a sitemap no longer names, until a crawl finds them gone or there.

    >>> pages = DroppedPages()
    >>> pages.add(["https://a.example/1"])
    >>> pages.settled("https://a.example/1", gone=True), pages.settled("https://a.example/1", gone=True)
    (True, False)
    """

    NOTE = "dropped"

    def __init__(self) -> None:
        self._waiting: dict[str, None] = {}
        self.n_gone = 0
        self.gone: list[str] = []  # the last of them
        self._changed = False

    def restore(self, notes: Mapping[str, Any]) -> None:
        """What earlier runs noted."""
        note = notes.get(self.NOTE)
        if note is not None:
            self._waiting = dict.fromkeys(note["waiting"])
            self.n_gone, self.gone = int(note["n_gone"]), list(note["gone"])

    def add(self, urls: Iterable[str]) -> None:
        """A sitemap no longer names these pages."""
        for url in urls:
            self._waiting[url] = None
            self._changed = True
        while len(self._waiting) > _MOST:
            del self._waiting[next(iter(self._waiting))]

    def settled(self, url: str, *, gone: bool) -> bool:
        """A page was crawled; whether it was dropped and is gone now."""
        if url not in self._waiting:
            return False
        del self._waiting[url]
        self._changed = True
        if gone:
            self.n_gone += 1
            self.gone = [*self.gone, url][-_SHOWN:]
        return gone

    def pending_notes(self) -> dict[str, Any]:
        """The note of what changed since the last call."""
        if not self._changed:
            return {}
        self._changed = False
        return {self.NOTE: {"waiting": list(self._waiting), "n_gone": self.n_gone, "gone": self.gone}}
