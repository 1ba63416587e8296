"""Texts of bodies that are kept: what a change was, where events carry no text."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from recrawl.crawl.deliver.texts import text_of
from recrawl.crawl.http.fetched import Fetched
from recrawl.store.events import Event
from recrawl.store.protocol import Copy, Store

_LOOKED_AT = 5  # changes of a page


class Texts(NamedTuple):
    """The texts around a change: when it was found and the copy before was fetched, None where it is not known."""

    after_at: float
    before_at: float | None
    old: str | None
    new: str | None


async def kept_texts(store: Store, copy: Copy, most: int) -> list[Texts]:
    """Of the bodies of a page that are kept, each with the one before, the newest first."""
    versions = (await store.versions(copy.url))[: most + 1]
    if len(versions) < 2:
        return []
    bodies = [await store.body(one.key) for one in versions]
    texts = [None if body is None else await asyncio.to_thread(body_text, body, copy) for body in bodies]
    pairs = pairwise(zip(versions, texts, strict=True))
    return [Texts(new.fetched_at, old.fetched_at, before, after) for (new, after), (old, before) in pairs]


async def with_texts(store: Store, event: Event) -> Event:
    """An event with the texts before and after it, from bodies that are kept if it carries none."""
    if event.kind != "changed" or (event.old_text is not None and event.new_text is not None):
        return event
    copy = (await store.copies([event.url])).get(event.url)
    if copy is None:
        return event
    for one in await kept_texts(store, copy, _LOOKED_AT):
        if one.after_at == event.at:
            return replace(event, old_text=one.old, new_text=one.new)
    return event


def body_text(body: bytes, copy: Copy) -> str | None:
    """The text of a body, as it goes with events; None if it has none."""
    headers = {"content-type": copy.content_type or ""}
    return text_of(Fetched(copy.url, copy.url, 200, 0.0, 0.0, headers, body))
