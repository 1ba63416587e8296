"""Managed crawls: the engine decides which URLs are served, and what clients put are observations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from recrawl.contrib.urlfrontier.api.wire import OK, SKIPPED
from recrawl.contrib.urlfrontier.batches import Discovered
from recrawl.contrib.urlfrontier.changes import Changes
from recrawl.contrib.urlfrontier.frontier import Ask, Frontier, Served
from recrawl.contrib.urlfrontier.items import Put
from recrawl.contrib.urlfrontier.managed.backlog import Backlog, page_of
from recrawl.contrib.urlfrontier.managed.choice import Choice, OwnPages
from recrawl.contrib.urlfrontier.managed.observations import report_of, says_gone
from recrawl.contrib.urlfrontier.queue_file import Row
from recrawl.desk import Desk, NewPage, Picked
from recrawl.desk.desk import MOST_PICKED, MOST_REPORTS
from recrawl.desk.lease_book import KEPT, LONGEST, picked_at
from recrawl.store.leases import Lease

_FEW = 4  # pages picked at first, besides as many as a call took before
CATCH_UP = 60.0  # seconds of the budget that a client gets at once: it asks now and then, and fetches in between


class Managed:
    """The crawls for which the engine decides. A URL is one page, once in each crawl, whatever its queue."""

    def __init__(self, frontier: Frontier, desk: Desk) -> None:
        desk.components.budget.catch_up(CATCH_UP)
        self._frontier, self._desk, self._file = frontier, desk, frontier.file
        self._writing = asyncio.Lock()
        self._took = 0  # pages that the last call took
        self._own = OwnPages(frontier)
        self._backlog = Backlog(frontier, desk, self._writing, self._forget)

    @property
    def n_waiting(self) -> int:
        """How many discovered URLs are no pages yet."""
        return self._backlog.n_waiting

    async def settle(self) -> None:
        """Make pages of all discovered URLs."""
        await self._backlog.settle()

    async def close(self) -> None:
        """End what goes on beside the calls."""
        await self._backlog.close()

    def rows_of(self, crawl: str | None, pages: Sequence[str]) -> dict[str, Row]:
        """The URLs that stand for pages in a crawl, or in any managed crawl."""
        rows = {page: self._first(crawl, some) for page, some in self._file.of_pages(pages).items()}
        return {page: row for page, row in rows.items() if row is not None}

    def _first(self, crawl: str | None, rows: Sequence[Row]) -> Row | None:
        """The first of some rows that is in a crawl, or in any managed crawl."""
        for row in rows:
            queue = self._frontier.by_id.get(row.queue)
            if queue is not None and queue.crawl.managed and crawl in (None, queue.crawl.name):
                return row
        return None

    async def take_up(self) -> None:
        """Tell the desk of leases that it had no time to write."""
        leased = self._file.leased(self._frontier.clock.now() - KEPT)
        await self._desk.restore([Lease(name, page, picked_at(name), until) for page, until, name in leased])

    async def adopt(self) -> None:
        """Make pages of URLs that were put in while their crawl was strict."""
        for crawl in [one for one in self._frontier.crawls.values() if one.managed]:
            for queue in crawl.queues.values():
                while queue.arrived:
                    self._frontier.arrivals.open(queue)
            last = 0
            while rows := self._file.without_page(crawl.name, last):
                last = rows[-1].id
                live = [row for row in rows if not says_gone(row.date, row.metadata)]
                named = [(row.id, page) for row in live if (page := page_of(row.url)) is not None]
                await self._desk.add([NewPage(page) for _, page in named])
                with self._file.transaction():
                    for row, page in named:
                        self._file.set_page(row, page)

    # --- what clients put ---------------------------------------------------------------------------------------------

    async def put(self, puts: Sequence[Put]) -> list[int]:
        """Take in URLs: new ones become pages, those that were fetched are observations; a state for each."""
        given = [(put, page_of(put.url)) for put in puts]
        pairs = [(put, page) for put, page in given if page is not None]
        if self._backlog.has([put for put, _ in pairs]):
            await self.settle()
        async with self._writing:
            deletions, rows = self._frontier.deletions, self._rows(pairs)
            both = [(put, page, rows.get((put.crawl, page))) for put, page in pairs]
            new = [page for put, page, row in both if _becomes_page(put, row)]
            if new:
                await self._desk.add([NewPage(page) for page in dict.fromkeys(new)])
            reports = [
                report_of(row.lease, put.date, put.metadata)
                for put, _, row in both
                if row is not None and row.lease is not None and put.date is not None
            ]
            for first in range(0, len(reports), MOST_REPORTS):
                await self._desk.record(reports[first : first + MOST_REPORTS])
            if self._frontier.deletions != deletions:
                rows = self._rows(pairs)
            states = self._write(given, rows)
            await self._forget([page for put, page, row in both if _is_gone(put, row)])
            return states

    async def arrive(self, found: Discovered) -> list[int]:
        """Take in discovered URLs: those that are new become pages soon; a state for each."""
        states, doubtful = await self._backlog.put(found)
        decided = await self.put([found.put(row) for row in doubtful]) if doubtful else []
        for row, state in zip(doubtful, decided, strict=True):
            states[row] = state
        return states

    def _rows(self, pairs: Sequence[tuple[Put, str]]) -> dict[tuple[str, str], Row]:
        """The rows of URLs by crawl and page: by their pages, or by themselves if they have none."""
        found = self._file.of_pages(dict.fromkeys(page for _, page in pairs))
        rows: dict[tuple[str, str], Row] = {}
        others: dict[tuple[int, str], tuple[str, str]] = {}
        for put, page in pairs:
            row = self._first(put.crawl, found[page]) if page in found else None
            if row is not None:
                rows[put.crawl, page] = self._frontier.serves.current(row)
            elif (queue := self._frontier.queue(put.crawl, put.key)) is not None:
                others[queue.id, put.url] = put.crawl, page
        for place, row in self._file.found(list(others)).items() if others else ():
            rows.setdefault(others[place], self._frontier.serves.current(row))
        return rows

    def _write(self, given: Sequence[tuple[Put, str | None]], rows: dict[tuple[str, str], Row]) -> list[int]:
        """Write URLs; a state for each."""
        now, changes = self._frontier.clock.now(), Changes(self._frontier)
        renamed: dict[int, str | None] = {}
        with self._file.transaction():
            states = []
            for put, page in given:
                state = SKIPPED
                if page is not None:
                    row = rows.get((put.crawl, page))
                    after = self._put(put, None if _is_gone(put, row) else page, row, changes, now)
                    state = SKIPPED if after is None else OK
                    if after is not None:
                        rows[put.crawl, page] = after
                        if row is not None and after.page != row.page:
                            renamed[row.id] = after.page
                states.append(state)
            changes.write()
            for id_, kept in renamed.items():
                self._file.set_page(id_, kept)
        changes.apply()
        return states

    def _put(self, put: Put, page: str | None, row: Row | None, changes: Changes, now: float) -> Row | None:
        """Write a URL that stands for a page from now on; its row then, None if it is known already."""
        if row is None:
            return changes.insert(changes.queue(put.crawl, put.key), put, now, page)
        if put.date is None:
            return None
        queue = changes.queue(put.crawl, put.key)
        before = changes.by_id(row.queue)
        assert before is not None, "rows are found by their queues"
        if queue is not before and self._file.find(queue.id, row.url) is not None:
            queue = before
        return changes.renew(row, before, queue, put, page)

    # --- what they get ------------------------------------------------------------------------------------------------

    async def take(self, crawl: str | None, ask: Ask) -> list[Served]:
        """Hand out the URLs that are worth most; None: of any managed crawl."""
        await self._backlog.settle_some()
        now = self._frontier.clock.now()
        choice = Choice(self.rows_of, self._own, crawl, ask, now)
        lease = min(max(ask.lease, 1.0), LONGEST)
        try:
            picked = await self._pick(choice, int(min(ask.queues * ask.urls, MOST_PICKED)), lease)
            choice.keep(picked)
        except BaseException:
            choice.keep(())
            raise
        return [choice.chosen[page] for page in picked if choice.chosen[page].queue.id in self._frontier.by_id]

    async def _pick(self, choice: Choice, n: int, lease: float) -> dict[str, Picked]:
        """At most n pages of a choice, by URL. Few at first: those of further queues are picked in vain."""
        found: dict[str, Picked] = {}
        some = min(n, max(choice.queues, self._took) + _FEW)
        while True:
            picked = await self._desk.pick(some, lease=lease, wanted=choice, validators=False)
            found |= {one.url: one for one in picked}
            if choice.ended or len(picked) < some or len(found) >= n:
                self._took = len(found)
                return found
            some = min(4 * some, n - len(found))

    # --- what goes ----------------------------------------------------------------------------------------------------

    async def forget(self, pages: Iterable[str]) -> None:
        """URLs were deleted: remove the pages that no crawl has any more."""
        async with self._writing:
            await self._forget(pages)

    async def _forget(self, pages: Iterable[str]) -> None:
        some = list(dict.fromkeys(pages))
        found = self._file.of_pages(some) if some else {}
        gone = [page for page in some if self._first(None, found.get(page, ())) is None]
        if gone:
            if held := self._desk.leases_of(gone):  # else there is nothing to wait for
                await self._desk.release(held)
            await self._desk.remove(gone)


def _is_gone(put: Put, row: Row | None) -> bool:
    """Whether a URL is gone that nobody was asked to fetch: it is no page, and not served."""
    return put.date == 0 and (row is None or row.lease is None) and says_gone(put.date, put.metadata)


def _becomes_page(put: Put, row: Row | None) -> bool:
    """Whether the engine is to have a page that it may not have yet."""
    if row is None:
        return not _is_gone(put, row)
    return row.page is None and put.date is not None and not _is_gone(put, row)
