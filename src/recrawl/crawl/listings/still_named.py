"""Pages that a sitemap no longer names: which of them no other sitemap names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import numpy as np

from recrawl.crawl.listings.listing import Listing
from recrawl.crawl.listings.registry import Registry
from recrawl.crawl.listings.table import Keys, Table, fingerprints
from recrawl.crawl.offload import Offload
from recrawl.engine.names.addresses import host_of


class StillNamed:
    """Looks into the tables of other sitemaps; ``entries`` reads one from the store.

    Sitemaps that are polled at the same time know of each other what they no longer name, stored or not.
    """

    def __init__(self, registry: Registry, entries: Callable[[str], Awaitable[bytes]], offload: Offload) -> None:
        self._registry, self._entries, self._offload = registry, entries, offload
        self._vanished: dict[str, Keys] = {}  # by the sitemap whose poll runs

    async def left_out(self, listing: Listing, vanished: Keys, urls: list[str]) -> list[str]:
        """Those of a sitemap's vanished pages that no other sitemap names; one that cannot be read names none."""
        if not urls:
            return []
        self._vanished[listing.url] = vanished
        others = {one.url: one for host in sorted(set(map(host_of, urls))) for one in self._registry.sitemaps_for(host)}
        for other in others.values():
            if urls and other is not listing and other.n_entries and other.failure is None:
                packed = await self._entries(other.url)
                work = partial(self._unnamed, other, packed, urls)
                urls = await self._offload.call(work, len(packed))
        return urls

    def _unnamed(self, other: Listing, packed: bytes, urls: list[str]) -> list[str]:
        keys = fingerprints(urls)
        named = np.isin(keys, Table.unpack(packed).keys) & ~np.isin(keys, self._vanished.get(other.url, keys[:0]))
        named &= [other.speaks_for(url) for url in urls]
        return [url for url, is_named in zip(urls, named.tolist(), strict=True) if not is_named]

    def ended(self, listing: Listing) -> None:
        """A poll has ended: its table is stored."""
        self._vanished.pop(listing.url, None)
