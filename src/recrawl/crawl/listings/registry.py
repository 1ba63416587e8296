"""Registry of listings: which are known, within limits, and for which hosts they speak."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from recrawl.crawl.formats.sitemaps import ENTRIES
from recrawl.crawl.listings.listing import MOST_SPEAKS, Listing
from recrawl.crawl.listings.poll_queue import PollQueue, PollTerms
from recrawl.crawl.listings.reading import SITEMAP
from recrawl.crawl.listings.worth import DAY, Worth
from recrawl.store.listings import StoredListing

MOST = 50_000  # listings
MOST_OF_HOST = 1000
ENTRIES_OF_HOST = 2_000_000  # entries in the tables of one host: 32 MB


class Registry:
    """The listings by URL; what is not saved yet is in ``pending``. A day has ``day`` seconds."""

    def __init__(self, day: float = DAY) -> None:
        self._day = day  # seconds
        self._listings: dict[str, Listing] = {}
        self._of_host: dict[str, set[str]] = {}  # URLs by host
        self._entries: Counter[str] = Counter()  # by host
        self._parts: dict[str, set[str]] = {}  # by the URL of their index
        self._named: dict[str, set[str]] = {}  # by the host whose robots.txt names them
        self._queue = PollQueue()
        self.pending: dict[str, Listing | None] = {}

    def restore(self, stored: Iterable[StoredListing]) -> None:
        """The listings of earlier runs."""
        for one in stored:
            self._put(Listing.restore(one))
        for listing in self._listings.values():
            index = self._listings.get(listing.parent or "")
            for host in listing.names:
                if index is None or host not in index.names:
                    self._named.setdefault(host, set()).add(listing.url)

    def __len__(self) -> int:
        return len(self._listings)

    def __iter__(self) -> Iterator[Listing]:
        return iter(list(self._listings.values()))

    def get(self, url: str) -> Listing | None:
        """The listing of a URL."""
        return self._listings.get(url)

    def add(self, listing: Listing) -> Listing | None:
        """Add a listing, or find the one that is there; None if there are too many."""
        known = self._listings.get(listing.url)
        if known is not None:
            return known
        if len(self._listings) >= MOST or len(self._of_host.get(listing.host, ())) >= MOST_OF_HOST:
            return None
        self._put(listing)
        self.changed(listing)
        return listing

    def _put(self, listing: Listing) -> None:
        if listing.worth == Worth():
            listing.worth = replace(listing.worth, expected_lead=self._day, day=self._day)
        self._listings[listing.url] = listing
        self._of_host.setdefault(listing.host, set()).add(listing.url)
        self._count_entries(listing.host, listing.n_entries)
        if listing.parent is not None:
            self._parts.setdefault(listing.parent, set()).add(listing.url)
        self._queue.changed(listing.url)

    def parts(self, url: str) -> list[Listing]:
        """The parts of an index."""
        return [self._listings[one] for one in sorted(self._parts.get(url, ()))]

    def named(self, host: str, urls: Sequence[str]) -> None:
        """The robots.txt of a host names these sitemaps, and no others."""
        for url in sorted(self._named.pop(host, set()).difference(urls)):
            listing = self._listings.get(url)
            if listing is not None and host in listing.names:
                listing.names.remove(host)
                self._names_changed(listing)
                if listing.named_by == "robots" and not listing.names:
                    self.remove(url)
        for url in urls:
            listing = self.add(Listing(url, SITEMAP, "robots"))
            if listing is not None:
                is_new = listing.named(host)
                if host in listing.names:
                    self._named.setdefault(host, set()).add(url)
                if is_new:
                    self._names_changed(listing)

    def _names_changed(self, listing: Listing) -> None:
        self.changed(listing)
        for one in (listing, *self.parts(listing.url)):
            self.inherit(one)

    def inherit(self, part: Listing) -> None:
        """A part of an index speaks for the hosts that the index speaks for, and for those that name the part."""
        index = self._listings.get(part.parent or "")
        if index is None:
            return
        own = [host for host in part.names if host not in index.names and part.url in self._named.get(host, ())]
        names = [*index.names, *own][:MOST_SPEAKS]
        if names != part.names:
            part.names = names
            self.changed(part)

    def sitemaps_for(self, host: str) -> list[Listing]:
        """The sitemaps that may name pages of a host."""
        urls = self._of_host.get(host, set()) | self._named.get(host, set())
        urls = urls.union(*(self._parts.get(url, ()) for url in urls))
        found = [self._listings[url] for url in sorted(urls) if url in self._listings]
        return [one for one in found if one.kind == SITEMAP and (one.host == host or host in one.names)]

    def remove(self, url: str) -> None:
        """Poll a listing no more; the parts of an index go with it."""
        listing = self._listings.get(url)
        if listing is None:
            return
        for one in [listing, *self.parts(url)]:
            del self._listings[one.url]
            _discard(self._parts, one.parent or "", one.url)
            _discard(self._of_host, one.host, one.url)
            for host in one.names:
                _discard(self._named, host, one.url)
            self._queue.changed(one.url)
            self._count_entries(one.host, -one.n_entries)
            self.pending[one.url] = None

    def changed(self, listing: Listing) -> None:
        """A listing is to be saved, and may be due at another time."""
        self.pending[listing.url] = listing
        self._queue.changed(listing.url)

    def room(self, listing: Listing) -> int:
        """How many entries a listing may have."""
        return max(min(ENTRIES, ENTRIES_OF_HOST - self._entries[listing.host] + listing.n_entries), 0)

    def counted(self, listing: Listing, n_entries: int) -> None:
        """A listing has so many entries from now on."""
        if listing.url in self._listings:  # it may have been removed meanwhile
            self._count_entries(listing.host, n_entries - listing.n_entries)
        listing.n_entries = n_entries

    def _count_entries(self, host: str, n: int) -> None:
        self._entries[host] += n
        if not self._entries[host]:
            del self._entries[host]

    # --- when ---------------------------------------------------------------------------------------------------------

    def due(self, now: float, terms: PollTerms) -> Listing | None:
        """The listing that is to be polled now; none of it is due again until it has ended."""
        self._queue.update(self._listings, now, terms)
        url = self._queue.pop(now, terms)
        return None if url is None else self._listings[url]

    def is_polled(self, url: str) -> bool:
        """Whether a poll of a listing runs."""
        return self._queue.is_running(url)

    def ended(self, listing: Listing) -> None:
        """A poll has ended."""
        self._queue.ended(listing.url)
        if listing.url in self._listings:
            self.changed(listing)

    def next_at(self, now: float, terms: PollTerms) -> float:
        """When a listing is to be polled, as far as is known now."""
        self._queue.update(self._listings, now, terms)
        return self._queue.next_at()


def _discard(sets: dict[str, set[str]], name: str, url: str) -> None:
    """Take a URL out of a set; a set that is empty then is none."""
    if name in sets:
        sets[name].discard(url)
        if not sets[name]:
            del sets[name]
