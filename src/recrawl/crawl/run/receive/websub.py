"""WebSub in a crawl: asks hubs for subscriptions and renews them, answers them, and takes what they deliver.

Whatever changes is written before a hub is answered. While a hub is silent nothing changes for the page: it is crawled
as often as its changes and the signals that were seen are worth.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from recrawl.crawl.clock import Clock
from recrawl.crawl.config.options import Others
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.listings.polls import Polls
from recrawl.crawl.polite.side_requests import SideRequests
from recrawl.crawl.run.commands import received_command
from recrawl.crawl.run.progress import Counters
from recrawl.crawl.run.receive.pauses import FewTasks
from recrawl.crawl.run.receive.pushed import PushedCopies
from recrawl.crawl.signals.inbox import Inbox
from recrawl.crawl.signals.sorting import Signal
from recrawl.crawl.signals.sources import Source
from recrawl.crawl.signals.websub.discovery import discover, speaks_for
from recrawl.crawl.signals.websub.items import ItemMemory, feed_items, is_whole
from recrawl.crawl.signals.websub.subscription import Subscription
from recrawl.crawl.signals.websub.subscriptions import TAKEN, UNSIGNED, WRONG, HubRequest, Subscriptions
from recrawl.crawl.urls import canonical
from recrawl.engine.names.addresses import host_of
from recrawl.logs import event
from recrawl.store.protocol import Copy, Outcome

LARGEST = 10 << 20  # bytes of a delivery
_AT_A_TIME = 4  # requests to hubs
log = logging.getLogger(__name__)


class Reach(NamedTuple):
    """What WebSub needs of a crawl."""

    side: SideRequests
    inbox: Inbox
    pushed: PushedCopies
    clock: Clock
    save_notes: Callable[[Mapping[str, Any]], Awaitable[None]]
    pages_of: Callable[[Sequence[str]], Sequence[int]]  # the ids of URLs, −1: no page
    feed_length: Callable[[str], int]  # items that a feed had lately
    listings: Polls
    counters: Counters
    others: Others | None = None


class WebSub:
    """The subscriptions of a crawl, driven by its clock; ``public_url`` is what hubs call."""

    def __init__(self, reach: Reach, public_url: str, rng: random.Random | None = None) -> None:
        self._reach, self._clock = reach, reach.clock
        self.table = Subscriptions(public_url, rng or random.Random())
        self._items = ItemMemory()
        self._tasks = FewTasks(reach.clock, _AT_A_TIME)

    # --- the task -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Ask hubs when it is time, until cancelled."""
        async with self._tasks.running():
            while True:
                due = self.table.due(self._clock.now(), self._tasks.free)
                await self._save()  # a hub may verify at once, and reach another process
                for request in due:
                    self._tasks.begin(self._ask(request))
                await self._tasks.sleep(self.table.next_at() - self._clock.now())

    async def _ask(self, request: HubRequest) -> None:
        """Send one request to a hub, or let the crawl send it that has the hub's host."""
        others = self._reach.others
        if others is not None and others.has(request.hub):
            fields = {"hub": request.hub, "fields": request.fields, "name": request.name}
            page = self.table.get(request.name)
            if page is not None:
                await others.send(request.hub, received_command("hub", **fields, page=page.page))
                self._sent(request.name)
            return
        fetched = await self._reach.side.post(request.hub, request.fields, lambda: self._sent(request.name))
        accepted = fetched.failure is None
        self.table.answered(request.name, accepted, self._clock.now(), fetched.retry_after)
        words = {"mode": request.fields["hub.mode"], "hub": request.hub, "topic": request.fields["hub.topic"]}
        level = logging.DEBUG if accepted else logging.INFO
        event(log, level, "websub.asked", **words, status=fetched.status, failure=fetched.failure)

    def ask_for(self, asked: Mapping[str, Any]) -> None:
        """Send a request of another crawl to a hub, and send back whether it was accepted."""
        self._tasks.begin(self._ask_for(asked))

    async def _ask_for(self, asked: Mapping[str, Any]) -> None:
        fetched = await self._reach.side.post(asked["hub"], asked["fields"], lambda: None)
        assert self._reach.others is not None
        accepted, words = fetched.failure is None, {"name": asked["name"], "wait": fetched.retry_after}
        await self._reach.others.send(asked["page"], received_command("hub answer", accepted=accepted, **words))

    async def answered(self, said: Mapping[str, Any]) -> None:
        """What became of a request that another crawl has sent."""
        self.table.answered(said["name"], said["accepted"], self._clock.now(), said["wait"])
        await self._save()

    def _sent(self, name: str) -> None:
        self.table.sent(name, self._clock.now())

    async def _save(self) -> None:
        notes = self.table.pending_notes()
        if notes:
            await self._reach.save_notes(notes)

    def restore(self, notes: Mapping[str, Any]) -> None:
        """Take up the notes of earlier runs; subscriptions of pages that were removed meanwhile are ended."""
        self.table.restore(notes, self._clock.now())
        for one in self.table:
            if not self._is_page(one.page) and self._reach.listings.registry.get(one.page) is None:
                self.table.left(one.page, self._clock.now())

    # --- pages --------------------------------------------------------------------------------------------------------

    def page_fetched(self, url: str, fetched: Fetched) -> None:
        """A page was fetched: subscribe to the hub that it names."""
        if fetched.failure is not None or fetched.not_modified:
            return
        links = discover(fetched)
        if links is not None and not speaks_for(url, fetched.final_url, links, self._is_page):
            self.table.counts["foreign_topic"] += 1
            links = None
        now = self._clock.now()
        self.table.found(url, links, now)
        one = self.table.of_page(url) if links is not None else None
        if one is not None and one.next_at <= now:
            self._tasks.wake()

    def removed(self, url: str) -> None:
        """A page was removed."""
        self.table.left(url, self._clock.now())
        self._tasks.wake()

    def _page_of(self, url: str) -> int:
        return self._reach.pages_of([url])[0]

    def _is_page(self, url: str) -> bool:
        return self._page_of(url) >= 0

    # --- what hubs send -----------------------------------------------------------------------------------------------

    def knows(self, name: str) -> bool:
        """Whether there is such a callback."""
        return self.table.get(name) is not None

    async def verify(self, name: str, query: Mapping[str, str]) -> str | None:
        """Answer a verification or a denial: the text to send, None for 404."""
        answer = self.table.verify(name, query, self._clock.now())
        if answer is not None:
            await self._save()
            self._tasks.wake()
            words = {"mode": query.get("hub.mode", ""), "topic": query.get("hub.topic", "")}
            event(log, logging.INFO, "websub.answered", **words)
        return answer

    async def deliver(self, name: str, signature: str, headers: Mapping[str, str], body: bytes) -> bool:
        """Take a delivery; False where there is no such callback. Returns when its signals are stored."""
        verdict, one = self.table.judge(name, signature, body), self.table.get(name)
        if verdict is None or one is None:
            return False
        if verdict == TAKEN:
            await self._take(one, self._fetched(one, headers, body))
            self.table.took(name, body, self._clock.now())
            await self._save()
        ignored = verdict in (UNSIGNED, WRONG)
        self._reach.counters.deliveries_ignored += ignored
        self._reach.counters.deliveries += not ignored
        event(log, logging.DEBUG, "websub.delivered", topic=one.topic, verdict=verdict, bytes=len(body))
        return True

    def _fetched(self, one: Subscription, headers: Mapping[str, str], body: bytes) -> Fetched:
        """A delivery in the form of an answer; one that is encoded is a notice only."""
        coded = headers.get("content-encoding", "identity").strip().lower() not in ("", "identity")
        kept = {"content-type": headers.get("content-type", "")}
        topic = canonical(one.topic)
        return Fetched(topic, topic, 200, self._clock.now(), 0.0, kept, b"" if coded else body)

    async def _take(self, one: Subscription, fetched: Fetched) -> None:
        """Signal the items of a delivery and its topic; if that is whole, it is a copy."""
        topic, items = fetched.url, feed_items(fetched)
        source, said = Source("websub", host_of(topic)), self._items.news(topic, items)
        if await self._pushed_listing(topic, fetched):
            said = []  # its table knows what is new
        signals = [Signal(url, source, at, seconds) for url, at, seconds in said if self._is_page(url) and url != topic]
        pushed = await self._compared(topic, fetched)
        about = topic if self._is_page(topic) else one.page
        if self._is_page(about) and (pushed is None or pushed[0].changed is not False):
            signals.append(Signal(about, source))
        if signals:
            await self._reach.inbox.take(signals)
        self._items.keep(topic, items)
        page = self._page_of(topic)
        if pushed is not None and page >= 0 and not self._reach.inbox.is_crawled(page):
            self._reach.pushed.record(page, *pushed)

    async def _pushed_listing(self, topic: str, fetched: Fetched) -> bool:
        """Take a delivery that holds all of a listing; whether it did."""
        listing = self._reach.listings.registry.get(topic)
        if listing is None or not is_whole(fetched, None, listing.n_entries):
            return False
        return await self._reach.listings.pushed(topic, fetched)

    async def _compared(self, topic: str, fetched: Fetched) -> tuple[Outcome, Copy | None] | None:
        """The outcome of a delivery that holds all of a page; None if it does not, or while the page is crawled."""
        page = self._page_of(topic)
        if page < 0 or self._reach.inbox.is_crawled(page):
            return None
        copy = await self._reach.pushed.copy(topic)
        if copy is None or not is_whole(fetched, copy.content_type, self._reach.feed_length(topic)):
            return None
        return await self._reach.pushed.compare(topic, fetched, copy), copy
