"""News of a poll: what a listing says that it did not say before, as signals, new URLs and pages that it dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.listings.listing import Listing
from recrawl.crawl.listings.reading import SITEMAP, Listed, Reading, read_listing
from recrawl.crawl.listings.streaming import ListingBody
from recrawl.crawl.listings.table import Keys, Table, fingerprints
from recrawl.crawl.signals.sorting import Signal
from recrawl.crawl.signals.sources import Source
from recrawl.engine.names.addresses import host_of

PagesOf = Callable[[str], list[str]]  # the URLs of a host's pages


class News(NamedTuple):
    """What a poll brought; of the first poll, signals are the pages with dates, for those whose copies are older."""

    reading: Reading
    table: bytes  # packed, for the next poll
    n_entries: int
    signalled: list[Listed]  # pages that are new in it, or whose dates moved
    new: list[str]  # URLs that are new in it
    again: list[str]  # URLs that were in it before
    vanished: Keys
    n_foreign: int  # URLs that it does not speak for, at the first poll


def news_of(
    listing: Listing, fetched: Fetched, packed: bytes, room: int, streamed: ListingBody | None = None
) -> News | None:
    """Compare what was fetched with the last poll; None if it is no listing. At most ``room`` entries are read.

    ``streamed`` is the body of a listing that was parsed while it came. URLs that the listing does not speak for are
    left out. What a broken file does not name any more has not vanished.
    """
    reading = None if streamed is None else streamed.reading()
    if reading is None:
        reading = read_listing(fetched, listing.kind)
    if reading is None:
        return None
    pages = [one for one in reading.pages if listing.speaks_for(one.url)][:room]
    before = Table.unpack(packed)
    found, table = before.difference(pages), Table.of(pages)
    whole = reading.is_whole and len(pages) < room
    table = table if whole else before.merged(table)
    first = listing.read_at is None
    rows = np.sort(np.concatenate([found.new, found.moved]))
    if first:
        rows = rows[[pages[k].at is not None for k in rows.tolist()]]
    new = set(found.new.tolist())
    return News(
        reading,
        table.pack(),
        len(table),
        [pages[k] for k in rows.tolist()],
        [pages[k].url for k in sorted(new)],
        [one.url for k, one in enumerate(pages) if k not in new],
        found.vanished if reading.kind == SITEMAP and whole else found.vanished[:0],
        len(reading.pages) - len(pages) if first else 0,
    )


def signals_of(news: News) -> list[Signal]:
    """The signals of a poll: who speaks is the host of the page, by this kind of listing."""
    found = []
    for one in news.signalled:
        resolution = 0.0 if one.at is None or one.latest is None else one.latest - one.at
        found.append(Signal(one.url, Source(news.reading.kind, host_of(one.url)), one.at, resolution))
    return found


def dropped(listing: Listing, vanished: Keys, pages_of: PagesOf) -> list[str]:
    """The pages that a sitemap no longer names."""
    if not len(vanished):
        return []
    urls = [url for host in (listing.host, *listing.names) for url in pages_of(host)]
    if not urls:
        return []
    gone = np.isin(fingerprints(urls), vanished)
    return list(dict.fromkeys(url for url, is_gone in zip(urls, gone.tolist(), strict=True) if is_gone))
