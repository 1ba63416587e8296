"""Polls: asks listings when that is worth a request, and passes on what they say."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import numpy as np

from recrawl.crawl.clock import Clock
from recrawl.crawl.formats.content_kind import kind_of
from recrawl.crawl.formats.links import read_links
from recrawl.crawl.http.cache_headers import fresh_for
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.listings.credits import NOTE as CREDITS
from recrawl.crawl.listings.discovery import COUNTS, PREFIX, Discovery, Site
from recrawl.crawl.listings.dropped import DroppedPages
from recrawl.crawl.listings.listing import Listing
from recrawl.crawl.listings.news import News, dropped, news_of, signals_of
from recrawl.crawl.listings.parts import take_parts
from recrawl.crawl.listings.poll_queue import PollTerms
from recrawl.crawl.listings.reading import FEED, SITEMAP
from recrawl.crawl.listings.registry import Registry
from recrawl.crawl.listings.still_named import StillNamed
from recrawl.crawl.listings.streaming import ListingBody
from recrawl.crawl.listings.worth import DAY
from recrawl.crawl.listings.worths import PRIOR_PAGES, Worths
from recrawl.crawl.offload import Offload
from recrawl.crawl.polite.side_requests import SideRequests
from recrawl.crawl.signals.inbox import Inbox
from recrawl.crawl.signals.sorting import Signal
from recrawl.crawl.signals.sources import Source
from recrawl.engine import Engine
from recrawl.engine.names.addresses import host_of
from recrawl.engine.views.sources import counts_on
from recrawl.errors import RecrawlError
from recrawl.store.protocol import Outcome, Store
from recrawl.urls import canonical, usable

AT_ONCE = 8  # polls at a time
_LARGEST = 10 << 20  # bytes of a listing that is no sitemap
_MOST_NAMED = 50  # sitemaps of one robots.txt
_TTL = re.compile(rb"<ttl>\s*(\d{1,6})\s*</ttl>")
_READ = 64 << 10  # bytes in which it is looked for


@dataclass(frozen=True)
class PollHooks:
    """What polls call of the crawler that makes them."""

    add: Callable[[Mapping[str, float]], Awaitable[None]]  # new pages, with importance
    terms: Callable[[], PollTerms]
    watch: Callable[[asyncio.Task[None]], None]  # gets each task
    report: Callable[..., None]  # name and fields


class Polls:
    """The listings of a crawl. Nothing is read from the store before ``load``; ``is_on`` False polls none."""

    def __init__(
        self, engine: Engine, store: Store, clock: Clock, inbox: Inbox, discovery: Discovery, hooks: PollHooks
    ) -> None:
        self._engine, self._store, self._clock, self._inbox = engine, store, clock, inbox
        self.discovery, self._hooks = discovery, hooks
        self.registry, self.dropped = Registry(engine.settings.day), DroppedPages()
        self._worths, self._offload = Worths(engine, self.registry, hooks.terms, self._trusts), Offload(clock)
        self._still_named = StillNamed(self.registry, store.listing_entries, self._offload)
        self._side: SideRequests | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.on_fetched: Callable[[str, Fetched], None] | None = None  # gets listings that were polled
        self.is_on = True
        self._noted: dict[str, Any] = {CREDITS: []}  # the last note of credits

    def attach(self, side: SideRequests) -> None:
        """Make requests through this."""
        self._side = side

    async def load(self) -> None:
        """Take up what earlier runs stored."""
        self.registry.restore(await self._store.listings())
        counts = (await self._store.notes(COUNTS)).get(COUNTS)
        self.discovery.restore(await self._store.notes(PREFIX), counts)
        self.dropped.restore(await self._store.notes(DroppedPages.NOTE))
        self._worths.credits.restore(await self._store.notes(CREDITS), self._engine.addresses.known)

    # --- when ---------------------------------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Start the polls that are due."""
        self._worths.renew(now)
        while self.is_on and len(self._tasks) < AT_ONCE:
            listing = self.registry.due(now, self._hooks.terms()) if len(self.registry) else None
            if listing is None:
                return
            self._begin(self._poll(listing))

    def next_at(self, now: float) -> float:
        """When the next poll is due."""
        if not self.is_on or len(self._tasks) >= AT_ONCE or not len(self.registry):
            return math.inf
        return self.registry.next_at(now, self._hooks.terms())

    def _begin(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._hooks.watch(task)

    async def end(self, *, save: bool = True) -> None:
        """End all polls, and write what was learned."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if save:
            notes = self._worths.credits.note(self._engine.addresses.urls)
            await self._save({} if notes == self._noted else notes)
            self._noted = notes

    def close(self) -> None:
        """End the thread."""
        self._offload.close()

    # --- one poll -----------------------------------------------------------------------------------------------------

    async def _poll(self, listing: Listing) -> None:
        assert self._side is not None
        try:
            sent = {} if listing.backlog else {"etag": listing.etag, "last_modified": listing.last_modified}
            streamed = ListingBody(listing.kind, _LARGEST)
            fetched = await self._side.get(listing.url, **sent, sink=streamed)
            now = self._clock.now()
            if fetched.failure == "busy" and not fetched.status:
                listing.not_before = now + max(self._side.wait(listing.url), 1.0)  # the host is to be left alone
            elif fetched.failure is not None:
                listing.failed(fetched.failure, now)
                self._hooks.report("polled", listing=listing, failure=fetched.failure, signals=0, new=0)
            else:
                if self.on_fetched is not None:
                    self.on_fetched(listing.url, fetched)
                await self._take_in(listing, fetched, streamed)
        except RecrawlError:
            raise
        except Exception as problem:
            listing.failed(f"error: {type(problem).__name__}", self._clock.now())
            self._hooks.report("error", url=listing.url, problem=problem)
        finally:
            self.registry.ended(listing)
            self._still_named.ended(listing)
        await self._save()

    async def _take_in(self, listing: Listing, fetched: Fetched, streamed: ListingBody | None = None) -> None:
        """Take in an answer: signals are stored before the table that they are compared with the next time."""
        now, before = self._clock.now(), listing.polled_at
        if fetched.not_modified:
            listing.answered(now, good_for(fetched, now), is_judged=self._worths.is_judged)
            self._hooks.report("polled", listing=listing, failure=None, signals=0, new=0)
            return
        packed = await self._store.listing_entries(listing.url)
        room = self.registry.room(listing)
        size = len(fetched.body) if streamed is None else max(len(fetched.body), streamed.size)
        news = await self._offload.call(lambda: news_of(listing, fetched, packed, room, streamed), size)
        if news is None:
            listing.failed("no listing", now)
            self._hooks.report("polled", listing=listing, failure="no listing", signals=0, new=0)
            return
        listing.answered(now, good_for(fetched, now), is_judged=self._worths.is_judged)
        gone = dropped(listing, news.vanished, self._pages_of)
        gone = await self._still_named.left_out(listing, news.vanished, gone)
        signals = signals_of(news) if listing.read_at is not None else self._worths.newer(signals_of(news))
        if news.reading.kind == SITEMAP:
            signals = self._worths.since(signals, before)
        signals += [Signal(url, Source(news.reading.kind, host_of(url))) for url in gone]
        checked = await self._inbox.check_dates(signals)
        taken = await self._inbox.take(signals) if signals else None
        self._worths.signalled(listing, checked, before, now)
        self._drop(gone)
        new = await self._discover(listing, news, now)
        if self.registry.get(listing.url) is not listing:
            return  # it was removed meanwhile
        parts = take_parts(self.registry, listing, news.reading.parts, now) if news.reading.parts else 0
        if news.reading.parts:
            listing.cost(1 + parts)
        if listing.probing and news.signalled:
            listing.own_clock = True  # its index has dates that do not move
        self._read(listing, fetched, news, now, 0 if taken is None else taken.accepted)
        self._hooks.report("polled", listing=listing, failure=None, signals=len(signals), new=new)
        await self._store.save(listings=[listing.stored(news.table)])

    async def pushed(self, url: str, fetched: Fetched) -> bool:
        """A hub delivered the whole of a listing: its news are the hub's signals, and no poll; whether it was taken."""
        listing = self.registry.get(url)
        if listing is None or not self.is_on or listing.read_at is None or self.registry.is_polled(url):
            return False
        now, packed, room = self._clock.now(), await self._store.listing_entries(url), self.registry.room(listing)
        news = await self._offload.call(lambda: news_of(listing, fetched, packed, room), len(fetched.body))
        if news is None:
            return False
        signals = [one._replace(source=Source("websub", one.source.speaker)) for one in signals_of(news)]
        if signals:
            await self._inbox.take(signals)
        await self._discover(listing, news, now)
        self._read(listing, fetched, news, now, 0)
        await self._store.save(listings=[listing.stored(news.table)])
        return True

    def _read(self, listing: Listing, fetched: Fetched, news: News, now: float, accepted: int) -> None:
        """Note what the next poll needs."""
        listing.kind, listing.read_at, listing.probing = news.reading.kind, now, False
        listing.etag, listing.last_modified = fetched.headers.get("etag"), fetched.headers.get("last-modified")
        listing.n_signals += accepted
        self.registry.counted(listing, news.n_entries)
        known = self._engine.addresses.known([one.url for one in news.reading.pages[:PRIOR_PAGES]])
        ids = known[known >= 0]
        self._worths.expect(listing, ids, len(ids) * max(len(news.reading.pages) / PRIOR_PAGES, 1.0))

    async def _discover(self, listing: Listing, news: News, now: float) -> int:
        """Add the pages that a listing names and that are in scope; how many."""
        kind = "links" if news.reading.kind not in (SITEMAP, FEED) else news.reading.kind
        self.discovery.count_elsewhere(kind, news.n_foreign)
        found = self.discovery.new_pages(kind, news.new, now)
        late = self.discovery.new_pages(kind, news.again, now, again=True) if listing.backlog else None
        pages = found.pages | (late.pages if late is not None else {})
        listing.backlog = found.limited > 0 or (late is not None and late.limited > 0)
        if pages:
            await self._hooks.add(pages)
            if listing.read_at is not None:
                root = self.registry.get(listing.family) or listing
                for importance in pages.values():
                    root.worth = root.worth.discovered(importance)
        return len(pages)

    # --- what becomes of pages ----------------------------------------------------------------------------------------

    def crawled(self, outcomes: Iterable[Outcome]) -> None:
        """Crawls are stored: what signals before them were worth, and which dropped pages are gone."""
        judged = [one for one in outcomes if one.gone or (one.fetched and one.changed is not None)]
        known = self._engine.addresses.known([one.url for one in judged])
        for page, one in zip(known.tolist(), judged, strict=True):
            self._worths.crawled(page, changed=one.gone or bool(one.changed), at=one.began_at)
            if self.dropped.settled(one.url, gone=one.gone):
                self._hooks.report("dropped page gone", url=one.url)

    def _drop(self, urls: list[str]) -> None:
        """Pages that no sitemap names any more; those that were found gone before are reported at once."""
        self.dropped.add(urls)
        ids = self._engine.addresses.known(urls)
        known = [url for url, page in zip(urls, ids.tolist(), strict=True) if page >= 0]
        gone = np.asarray(self._engine.rows(ids[ids >= 0])["times_gone"]) > 0 if known else np.empty(0)
        for url in (url for url, is_gone in zip(known, gone.tolist(), strict=True) if is_gone):
            if self.dropped.settled(url, gone=True):
                self._hooks.report("dropped page gone", url=url)

    # --- where listings are found -------------------------------------------------------------------------------------

    def named(self, url: str, sitemaps: Sequence[str]) -> None:
        """The robots.txt of a URL's host names these sitemaps."""
        host = host_of(url)
        if not self.is_on or not len(self._engine.addresses.on_host(host)):
            return
        named = usable(sitemaps[:_MOST_NAMED])
        if not named and SITEMAP in self.discovery.scope(url).discover:
            named = [urljoin(url, "/sitemap.xml")]
        self.registry.named(host, named)

    def add(self, url: str, kind: str) -> None:
        """Poll a listing from now on."""
        self.registry.add(Listing(canonical(url), kind, "add"))

    def remove(self, urls: Iterable[str]) -> None:
        """Poll these listings no more."""
        for url in urls:
            self.registry.remove(url)

    def follow(self, site: Site) -> None:
        """Follow a site from now on."""
        self.discovery.follow(site)

    def page_fetched(self, url: str, fetched: Fetched) -> None:
        """A page was fetched: links and feeds that it names, and items if it is a feed itself."""
        if not self.is_on:
            return
        kind = kind_of(fetched)
        if kind == "feed":
            listing = self.registry.add(Listing(url, FEED, "page", as_page=True))
            if listing is not None and listing.as_page:
                self._begin(self._guarded(url, self._take_in(listing, fetched)))
        elif kind == "html" and self.discovery.is_on:
            discover = self.discovery.scope(url).discover
            if "links" in discover or FEED in discover:
                self._begin(self._guarded(url, self._page_links(url, fetched, discover)))

    async def links_named(self, url: str, links: Sequence[str]) -> None:
        """A page names links, as somebody else has read them."""
        if self.is_on and self.discovery.is_on and "links" in self.discovery.scope(url).discover:
            found = self.discovery.new_pages("links", usable(links), self._clock.now())
            if found.pages:
                await self._hooks.add(found.pages)

    async def _guarded(self, url: str, work: Awaitable[None]) -> None:
        """A mistake in what reads a page does not end the crawl."""
        try:
            await work
        except RecrawlError:
            raise
        except Exception as problem:
            self._hooks.report("error", url=url, problem=problem)

    async def _page_links(self, url: str, fetched: Fetched, discover: Sequence[str]) -> None:
        links = await self._offload.call(lambda: read_links(fetched), len(fetched.body))
        if FEED in discover:
            for feed in links.feeds:
                if host_of(feed) == host_of(url):
                    self.registry.add(Listing(feed, FEED, "page"))
        if "links" in discover:
            found = self.discovery.new_pages("links", links.pages, self._clock.now())
            if found.pages:
                await self._hooks.add(found.pages)

    # --- the store ----------------------------------------------------------------------------------------------------

    async def _save(self, notes: Mapping[str, Any] | None = None) -> None:
        """Write the listings and counts that changed, and further notes."""
        pending, self.registry.pending = self.registry.pending, {}
        stored = [_stored(url, one) for url, one in pending.items()]
        notes = {**self.discovery.pending_notes(), **self.dropped.pending_notes(), **(notes or {})}
        if stored or notes:
            await self._store.save(listings=stored, notes=notes)

    def _trusts(self, listing: Listing) -> bool:
        """Whether signals of a listing count on its host."""
        names = self._inbox.sources.names
        return listing.kind in names and counts_on(self._engine, listing.host, names.index(listing.kind))

    def _pages_of(self, host: str) -> list[str]:
        return self._engine.url(self._engine.addresses.on_host(host))


def _stored(url: str, listing: Listing | None) -> Any:
    from recrawl.store.listings import StoredListing

    return StoredListing(url, None) if listing is None else listing.stored()


def good_for(fetched: Fetched, now: float) -> float:
    """Seconds that an answer stays good, by its cache headers or a feed's ``ttl``, at most a day."""
    ttl = _TTL.search(fetched.body[:_READ])
    said = fresh_for(fetched.headers, now) or 0.0
    return min(max(said, 60.0 * float(ttl[1]) if ttl else 0.0), DAY)
