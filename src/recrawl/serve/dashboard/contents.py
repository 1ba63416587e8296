"""Contents of pages that the store holds: titles, and what a change was as lines that went and came."""

from __future__ import annotations

import asyncio
import difflib
import re
from collections import OrderedDict
from collections.abc import Sequence
from html import unescape
from typing import NamedTuple

from recrawl.crawl.detect.visible import visible_text
from recrawl.store.protocol import Copy, Store

_TITLE = re.compile(rb"<title[^>]*>(.{0,2000}?)</title", re.IGNORECASE | re.DOTALL)
_HEAD = 1 << 16  # bytes in which a title is looked for
_CACHED = 20_000  # titles
_LONGEST = 200  # characters of a title
_MOST_LINES = 4000  # of a text that is compared
_MOST_SHOWN = 300  # lines of a difference
_BREAK = "\ue000"  # stands for the end of a block, which the visible text does not show
_BLOCKS = re.compile(
    r"<(?=/?(?:address|article|aside|blockquote|br|dd|div|dl|dt|figure|footer|form|h[1-6]|header|hr|li|main|nav|ol|p"
    r"|pre|section|table|td|th|title|tr|ul)[\s/>])",
    re.IGNORECASE,
)
_TEXTS = ("text/", "application/json", "application/xml", "application/xhtml", "application/rss", "application/atom")


class Line(NamedTuple):
    """A line of a difference: ``sign`` is + (came), - (went), a blank (stayed) or … (left out)."""

    sign: str
    text: str


class Change(NamedTuple):
    """The difference between two bodies of a page; ``lines`` is empty if their visible text is the same."""

    before_at: float
    after_at: float
    lines: list[Line]


class Titles:
    """Titles of pages, from the newest body that is kept; remembered until the page changes."""

    def __init__(self, store: Store) -> None:
        self._store = store
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
        versions = await self._store.versions(url)
        body = await self._store.body(versions[0].key) if versions else None
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
    """The changes between the bodies of a page that are kept, the newest first."""
    if copy is None:
        return []
    versions = (await store.versions(copy.url))[: most + 1]
    bodies = [await store.body(one.key) for one in versions]
    found = []
    for new, old, after, before in zip(versions, versions[1:], bodies, bodies[1:], strict=False):
        if after is not None and before is not None:
            lines = await asyncio.to_thread(difference, before, after, copy.content_type or "")
            found.append(Change(old.fetched_at, new.fetched_at, lines))
    return found


def difference(before: bytes, after: bytes, content_type: str) -> list[Line]:
    """The lines that went and came, each with a few around it."""
    old, new = (_lines(body, content_type) for body in (before, after))
    found: list[Line] = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=True).get_grouped_opcodes(2):
        if found:
            found.append(Line("…", ""))
        for what, a, b, c, d in group:
            if what == "equal":
                found += [Line(" ", text) for text in old[a:b]]
            else:
                found += [Line("-", text) for text in old[a:b]] + [Line("+", text) for text in new[c:d]]
    return found[:_MOST_SHOWN] + ([Line("…", f"{len(found) - _MOST_SHOWN} more lines")] * (len(found) > _MOST_SHOWN))


def _lines(body: bytes, content_type: str) -> list[str]:
    """The visible text of HTML, or other text as it is, as lines; nothing for other content."""
    kind = content_type.partition(";")[0].strip().lower()
    text = body.decode("utf-8", "replace")
    if "html" in kind or (not kind and b"<html" in body[:1024].lower()):
        text = visible_text(_BLOCKS.sub(_BREAK + "<", text)).replace(_BREAK, "\n")
    elif kind and not kind.startswith(_TEXTS):
        return []
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [line[:1000] for line in lines if line][:_MOST_LINES]
