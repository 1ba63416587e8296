"""Dropped pages: removed from all sitemaps, and reported once when they are gone at the server too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_MOST = 10_000  # pages that wait for their crawl, and pages that were reported
_SHOWN = 20  # of the pages that are gone


class DroppedPages:
    """Pages that no sitemap names any more, until a crawl finds them gone or there.

    A page that was reported is reported again only if it was there meanwhile.

    >>> pages = DroppedPages()
    >>> pages.add(["https://a.example/1"])
    >>> pages.settled("https://a.example/1", gone=True), pages.settled("https://a.example/1", gone=True)
    (True, False)
    >>> pages.add(["https://a.example/1"])
    >>> pages.settled("https://a.example/1", gone=True)
    False
    """

    NOTE = "dropped"

    def __init__(self) -> None:
        self._waiting: dict[str, None] = {}
        self._reported: dict[str, None] = {}  # and not found there since
        self.n_gone = 0
        self.gone: list[str] = []  # the last of them
        self._changed = False

    def restore(self, notes: Mapping[str, Any]) -> None:
        """What earlier runs noted."""
        note = notes.get(self.NOTE)
        if note is not None:
            self._waiting = dict.fromkeys(note["waiting"])
            self._reported = dict.fromkeys(note.get("reported", note["gone"]))
            self.n_gone, self.gone = int(note["n_gone"]), list(note["gone"])

    def add(self, urls: Iterable[str]) -> None:
        """No sitemap names these pages any more."""
        for url in urls:
            if url not in self._reported:
                self._waiting[url] = None
                self._changed = True
        _shorten(self._waiting)

    def settled(self, url: str, *, gone: bool) -> bool:
        """A page was crawled; whether it was dropped and is gone now."""
        if not gone and url in self._reported:
            del self._reported[url]
            self._changed = True
        if url not in self._waiting:
            return False
        del self._waiting[url]
        self._changed = True
        if gone:
            self.n_gone += 1
            self.gone = [*self.gone, url][-_SHOWN:]
            self._reported[url] = None
            _shorten(self._reported)
        return gone

    def pending_notes(self) -> dict[str, Any]:
        """The note of what changed since the last call."""
        if not self._changed:
            return {}
        self._changed = False
        tables = {"waiting": list(self._waiting), "reported": list(self._reported)}
        return {self.NOTE: {**tables, "n_gone": self.n_gone, "gone": self.gone}}


def _shorten(urls: dict[str, None]) -> None:
    """Forget the first that are too many."""
    while len(urls) > _MOST:
        del urls[next(iter(urls))]
