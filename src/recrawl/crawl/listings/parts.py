"""Parts of an index of sitemaps: its dates decide which of them are read."""

from __future__ import annotations

from collections.abc import Sequence

from recrawl.crawl.listings.listing import Listing
from recrawl.crawl.listings.reading import SITEMAP, Listed
from recrawl.crawl.listings.registry import Registry

_UNREAD = 7.0  # days after which a part is read although its date did not move


def take_parts(registry: Registry, index: Listing, parts: Sequence[Listed], now: float) -> int:
    """Take in what an index says of its parts; how many are to be read.

    A part without a date has a schedule of its own. Of the others, those are read whose dates moved, and the one that
    was not read for longest: if it has news although its date did not move, the index is not followed for it.
    """
    named = {one.url for one in parts}
    for old in registry.parts(index.url):
        if old.url not in named:
            registry.remove(old.url)
    mine: list[Listing] = []
    for one in parts:
        part = registry.add(Listing(one.url, SITEMAP, "index", parent=index.url, own_clock=one.at is None))
        if part is None or part.parent != index.url:
            continue
        registry.inherit(part)
        if part.polled_at is not None and one.at != part.part_date and not part.own_clock:
            part.waiting, part.probing = True, False
        part.part_date = one.at
        registry.changed(part)
        mine.append(part)
    unread = [part for part in mine if part.follows_index and part.polled_at is not None and not part.waiting]
    oldest = min(unread, key=lambda part: part.polled_at or 0.0, default=None)
    if oldest is not None and now - (oldest.polled_at or 0.0) > _UNREAD * index.worth.day:
        oldest.waiting = oldest.probing = True
    return sum(part.waiting for part in mine)
