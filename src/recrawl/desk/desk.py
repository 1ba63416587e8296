"""Desk: hands pages to crawlers of others and takes in what they found."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter

from recrawl.crawl.clock import sleep_unless
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.signals.group_commit import GroupCommit
from recrawl.desk.lease_book import KEPT, LONGEST, Holding, LeaseBook, new_ids
from recrawl.desk.pages import NewPage, PageChange, PageFacts, PageList
from recrawl.desk.picks import Chooser, OnHosts, Pair, Picked, Wanted
from recrawl.desk.recording import Recording, without_validators
from recrawl.desk.reports import Report
from recrawl.engine.names.addresses import host_of
from recrawl.errors import ParameterError
from recrawl.store.leases import HELD, RECORDED, RELEASED, Lease

MOST_PICKED = 1000  # pages of one pick
MOST_REPORTS = 1000  # of one call
LONGEST_WAIT = 30.0  # seconds that a pick waits for work
OWED = "desk_owed"  # the note of requests that crawlers have made and the budget has not paid for yet
_MANY = 50_000  # pages of which the first pick is made before anybody asks
_LOOK = 1.0  # seconds after which a pick that waits looks again
_PICKED_AT = attrgetter("picked_at")
_CLEAN_EVERY = 3600.0  # seconds between deletions of old leases
_LATER = 0.5  # seconds that leases which are kept elsewhere wait for others, before the store has them


class Desk:
    """The questions of foreign crawlers to the engine of a crawl; see the package for what they mean.

    ``load`` is awaited once before the first call: it takes up the leases of an earlier run.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler, self.components = crawler, crawler.components
        self._engine, self._recorder = self.components.engine, self.components.recorder
        self._clock, self._budget = self.components.clock, self.components.budget
        self._book = LeaseBook()
        self._chooser = Chooser(self.components, self._book)
        self._commit = GroupCommit[Lease](self._write, self._clock)
        self._later = GroupCommit[Lease](self._write_rest, self._clock, _LATER)
        self._recording = Recording(self.components, self._book, self._commit)
        self._recorder.on_copy.append(self._book.has_newer_copy)
        self._list = PageList(crawler)
        self._news = asyncio.Event()  # set when a pick that waits may find something
        self._cleaned_at = -math.inf
        self._owed = 0  # as it is noted
        self.waiting = 0  # picks that wait for work
        self._engine.lengthen_leases(LONGEST + 60.0)
        crawler.call_on_settle(self._settled)
        crawler.share(lambda: self.waiting > 0)

    async def load(self) -> None:
        """Take up the leases that an earlier run has given."""
        await self.components.load()
        self._owed = (await self.components.store.notes(OWED)).get(OWED, 0)
        self._budget.charge(self._owed)
        now = self._clock.now()
        self._take_up(await self.components.store.leases(after=now), now)
        if len(self._engine) > _MANY:  # the first pick of many pages takes seconds: nobody has to wait for it
            self._engine.put_back(self._engine.pick(now, MOST_PICKED).tolist())

    async def restore(self, leases: Sequence[Lease]) -> None:
        """Take up leases that were kept elsewhere, as far as the store does not have them."""
        missing = set(self._book.unknown(lease.id for lease in leases))
        missing -= {lease.id for lease in await self.components.store.leases(missing)} if missing else set()
        lost = [lease for lease in leases if lease.id in missing]
        if lost:
            self._take_up(lost, self._clock.now())
            await self._commit.add(lost)

    def _take_up(self, leases: Sequence[Lease], now: float) -> None:
        """Hold the pages of leases that an earlier run has given."""
        for lease in sorted(leases, key=_PICKED_AT, reverse=True):  # the newest of a page, if the clock was set back
            page = int(self._engine.addresses.known([lease.url])[0])
            if page < 0 or lease.until <= now or self._book.holding(lease.url) is not None:
                self._book.remember(lease)
                continue
            self._book.hold(Holding(lease, page, host_of(lease.url), deferred=True))
            self._engine.defer([page], lease.until)
            self.components.inbox.began(page)

    async def _write_rest(self, leases: list[Lease]) -> None:
        """Write leases that wait, unless they went with outcomes."""
        if self._recorder.has_leases:
            await self._write(leases)

    async def _write(self, leases: list[Lease]) -> None:
        """Write leases with the outcomes that wait. If that fails the run ends: what follows must not be written."""
        owed = self._budget.owed
        notes = {OWED: owed or None} if owed != self._owed else {}
        self._owed = owed
        try:
            await self._recorder.commit(leases, notes)
        except Exception as problem:
            self.components.pool.fail(problem)
            raise

    # --- pages to crawl -----------------------------------------------------------------------------------------------

    async def pick(
        self,
        n: int,
        *,
        lease: float = 300.0,
        hosts: Collection[str] | None = None,
        wanted: Wanted | None = None,
        wait: float = 0.0,
        validators: bool = True,
    ) -> list[Picked]:
        """At most n pages to crawl, best first, that nobody else gets for ``lease`` seconds; see the package.

        ``wanted`` says of a URL whether it may be picked, or None to end there; it is asked best first, instead of
        ``hosts``. Without ``validators`` copies are read when outcomes come, not now.
        """
        if not 1 <= n <= MOST_PICKED:
            raise ParameterError(f"n is {n}: must lie between 1 and {MOST_PICKED}")
        if not 1.0 <= lease <= LONGEST:
            raise ParameterError(f"lease is {lease:g}: must lie between 1 and {LONGEST:g} seconds")
        if not 0.0 <= wait <= LONGEST_WAIT:
            raise ParameterError(f"wait is {wait:g}: must lie between 0 and {LONGEST_WAIT:g} seconds")
        if hosts is not None:
            wanted = OnHosts(hosts)
        until = self._clock.now() + wait
        self.waiting += 1
        try:
            while not (pairs := await self._take(n, wanted)):
                now = self._clock.now()
                if now >= until:
                    return []
                await self._rest(min(until, self._next_at(now)) - now)
        finally:
            self.waiting -= 1
        given = self._hold(pairs, lease)
        if wanted is not None and wanted.keeps:
            return await self._give_kept(given, wanted)
        handed, written = await self._give(given, validators)
        if wanted is not None:
            wanted.leased(handed)
        await asyncio.shield(written)
        return handed

    async def _take(self, n: int, wanted: Wanted | None) -> list[Pair]:
        """Pages that are picked now and paid for."""
        await self._crawler.take_turn()
        await self._budget.cover(self._clock.now())
        now = self._clock.now()
        self._recorder.settle(now)
        self.expire(now)
        ready = self._budget.ready(now)
        pairs = self._chooser.choose(now, min(n, ready), wanted) if ready > 0 else []
        if pairs:
            self._budget.take(now, len(pairs))
            self._crawler.pass_turn()
            self.components.counters.started += len(pairs)
            self.components.inbox.began(*(pair.page for pair in pairs))
        return pairs

    def _hold(self, pairs: list[Pair], seconds: float) -> list[Holding]:
        """Leases of pages, which the engine has picked."""
        now = self._clock.now()
        names, until = new_ids(len(pairs), now), now + seconds
        given = [
            Holding(Lease(name, url, now, until), page, host)
            for name, (page, url, host) in zip(names, pairs, strict=True)
        ]
        for holding in given:
            self._book.hold(holding)
        return given

    async def _give(self, given: list[Holding], validators: bool) -> tuple[list[Picked], asyncio.Future[None]]:
        """Pages as they are handed out, and what is done when their leases are written."""
        with self._commit.coming():
            picked = await self._recording.validated(given) if validators else without_validators(given)
            await self._cover_hosts(given)
            written = self._commit.put([lease for lease, _ in picked])
        return [Picked(lease.id, lease.url, lease.until, *sent) for lease, sent in picked], written

    async def _give_kept(self, given: list[Holding], keeper: Wanted) -> list[Picked]:
        """Pages whose leases somebody else commits: the store has them a little later."""
        leases = [holding.lease for holding in given]
        handed = [Picked(lease.id, lease.url, lease.until) for lease in leases]
        try:
            await self._cover_hosts(given)
            keeper.leased(handed)
        except BaseException:
            self._recording.free([holding for one in leases if (holding := self._book.end(one.id, RELEASED)[1])])
            raise
        self._recorder.write_later([lease for lease in leases if self._book.held(lease.id) is not None])
        self._later.put([])
        return handed

    async def _cover_hosts(self, given: list[Holding]) -> None:
        """Write how far the budgets of hosts are spent."""
        budgets = self.components.limiter.budgets
        if budgets.hosts():
            for host in {holding.host for holding in given}:
                await budgets.cover(host)

    def _next_at(self, now: float) -> float:
        """When a pick may find something, as far as is known."""
        paid = self._budget.next_at(now)
        if paid > now + _LOOK:
            return now + _LOOK
        ends = self._book.next_end()
        return min(max(paid, self._engine.next_at(now)), math.inf if ends is None else ends, now + _LOOK)

    async def _rest(self, seconds: float) -> None:
        """Sleep until something may be found, or has happened."""
        self._news.clear()
        await sleep_unless(self._clock, max(seconds, 0.001), self._news)

    # --- what came of them --------------------------------------------------------------------------------------------

    async def record(self, reports: Sequence[Report]) -> list[str]:
        """Take in what crawlers found; one word of each report. See the package."""
        if len(reports) > MOST_REPORTS:
            raise ParameterError(f"there are {len(reports)} reports: at most {MOST_REPORTS} are taken at once")
        for row, report in enumerate(reports):
            report.check(row)
        self.expire(self._clock.now())
        words = await self._recording.record(reports)
        self._news.set()
        if self._engine.upkeep.due:
            self.components.pool.wake()
        return words

    async def release(self, leases: Sequence[str]) -> list[str]:
        """Give leases back whose pages are not crawled; one word each: released, repeated, recorded, lost, unknown."""
        self.expire(self._clock.now())
        await self._recording.recall(leases)
        words, ended, freed = [], [], []
        for name in leases:
            lease = self._book.find(name)
            if lease is None or lease.state != HELD:
                states = {RELEASED: "repeated", RECORDED: RECORDED}
                words.append("unknown" if lease is None else states[lease.state])
                continue
            lease, holding = self._book.end(name, RELEASED)
            ended.append(lease)
            if holding is not None:
                freed.append(holding)
            words.append(RELEASED if holding is not None else "lost")
        if ended:
            self._recording.free(freed)
            await self._commit.add(ended)
            self._news.set()
        else:
            await self._commit.settled()
        return words

    def expire(self, now: float) -> None:
        """Pages whose leases have ended come back."""
        ended = self._book.expire(now)
        if ended:
            self._recording.free(ended)

    def _settled(self, now: float) -> None:
        """The loop goes round: leases end, and old ones are deleted from time to time."""
        self.expire(now)
        if now - self._cleaned_at > _CLEAN_EVERY:
            self._cleaned_at = now
            store = self.components.store
            self.components.pool.watch(asyncio.create_task(store.save(leases_before=now - KEPT)))

    async def close(self) -> None:
        """Wait until all is committed."""
        await self._commit.settled()

    def holds(self, lease: str) -> bool:
        """Whether a lease is held: neither recorded nor released, and not ended."""
        found = self._book.find(lease)
        return found is not None and found.state == HELD and found.until > self._clock.now()

    def leases_of(self, urls: Iterable[str]) -> list[str]:
        """The leases of those pages that are held."""
        return [found.lease.id for url in urls if (found := self._book.holding(url)) is not None]

    @property
    def n_held(self) -> int:
        """How many pages crawlers hold."""
        return len(self._book)

    async def requested(self, urls: Sequence[str]) -> tuple[int, int]:
        """Readers asked for pages: how many requests count, and how many were for URLs that are no pages."""
        return await self._list.requested(urls)

    # --- pages --------------------------------------------------------------------------------------------------------

    async def add(self, pages: Sequence[NewPage]) -> int:
        """Add pages; those that are there already stay as they are. How many are new."""
        n = await self._list.add(pages)
        self._news.set()
        return n

    async def update(self, changes: Sequence[PageChange]) -> int:
        """Change the importance of pages, pause or resume them; how many there are of those."""
        n = await self._list.update(changes)
        self._news.set()
        return n

    async def remove(self, urls: Sequence[str]) -> int:
        """Remove pages; how many there were of those."""
        return await self._list.remove(urls)

    def pages(self, cursor: str | None = None, n: int = 100) -> tuple[list[PageFacts], str | None]:
        """At most n pages after a cursor, in the order in which they were added, and the next cursor; None: the end."""
        return self._list.read(cursor, n)

    async def listed(self, cursor: str | None = None, n: int = 100) -> tuple[list[PageFacts], str | None]:
        """The same for callers that await."""
        return self.pages(cursor, n)
