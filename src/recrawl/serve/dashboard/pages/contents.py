"""Contents of pages that the store holds: titles, and what a change was as lines that went and came."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from html import unescape
from typing import NamedTuple

from recrawl.crawl.detect.diff import Diff, diff
from recrawl.serve.kept_texts import Texts, kept_texts
from recrawl.store.protocol import Copy, Store

_TITLE = re.compile(rb"<title[^>]*>(.{0,2000}?)</title", re.IGNORECASE | re.DOTALL)
_HEAD = 1 << 16  # bytes in which a title is looked for
_CACHED = 20_000  # titles
_LONGEST = 200  # characters of a title
_CONTEXT, _MOST_LINES = 2, 200  # lines of a difference: around each change, and changed


class Change(NamedTuple):
    """A change of a page: when it was found, when the copy before was fetched (None: not known), and what changed."""

    after_at: float
    before_at: float | None
    diff: Diff


class Titles:
    """Titles of pages, from the newest body that is kept; remembered until the page changes."""

    def __init__(self, store_of: Callable[[str], Store]) -> None:
        self._store_of = store_of
        self._known: OrderedDict[tuple[str, float], str] = OrderedDict()

    async def of(self, copies: Sequence[Copy]) -> dict[str, str]:
        """The titles of those pages that have one."""
        found = {}
        for copy in copies:
            key = copy.url, copy.changed_at
            if key not in self._known:
                self._known[key] = await self._read(copy.url)
                while len(self._known) > _CACHED:
                    self._known.popitem(last=False)
            found[copy.url] = self._known[key]
        return {url: title for url, title in found.items() if title}

    async def _read(self, url: str) -> str:
        store = self._store_of(url)
        versions = await store.versions(url)
        body = await store.body(versions[0].key) if versions else None
        return title_of(body or b"")


def title_of(body: bytes) -> str:
    """The title of an HTML page, as text; empty if it has none.

    >>> title_of(b"<html><title>A &amp; B <b>x</b></title>")
    'A & B <b>x</b>'
    """
    found = _TITLE.search(body[:_HEAD])
    text = "" if found is None else " ".join(unescape(found[1].decode("utf-8", "replace")).split())
    return text[:_LONGEST] + ("…" if len(text) > _LONGEST else "")


async def last_changes(store: Store, copy: Copy | None, most: int = 5) -> list[Change]:
    """The last changes of a page, the newest first: from texts of its events, or else from bodies that are kept."""
    if copy is None:
        return []
    events = await store.newest_events(most, url=copy.url, kinds=("changed",))
    texts = [Texts(one.at, None, one.old_text, one.new_text) for one in events]
    if not any(old is not None and new is not None for *_, old, new in texts):
        texts = await kept_texts(store, copy, most)
    return [
        Change(at, before_at, await asyncio.to_thread(diff, old, new, context=_CONTEXT, most=_MOST_LINES))
        for at, before_at, old, new in texts
        if old is not None and new is not None
    ]
