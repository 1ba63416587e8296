"""Recording: outcomes of leases to the recorder of the crawl, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.polite.not_modified import Validators
from recrawl.crawl.run.compare import Hop
from recrawl.crawl.run.opening.components import Components
from recrawl.crawl.signals.group_commit import GroupCommit
from recrawl.desk.lease_book import Holding, LeaseBook
from recrawl.desk.reports import Report
from recrawl.engine.addresses import host_of
from recrawl.store.leases import HELD, RECORDED, Lease
from recrawl.store.protocol import Copy, Outcome


class _Crawl(NamedTuple):
    """What a crawler said of a lease, as a fetch and as an outcome, and the copy before."""

    report: Report
    fetched: Fetched
    outcome: Outcome
    copy: Copy | None


class Recording:
    """Compares what was reported with copies, as the crawler does, and records it with the end of its lease."""

    def __init__(self, components: Components, book: LeaseBook, commit: GroupCommit[Lease]) -> None:
        self._components, self._book, self._commit = components, book, commit
        self._engine, self._recorder, self._clock = components.engine, components.recorder, components.clock
        self._taken: dict[str, asyncio.Task[dict[str, str]]] = {}  # leases whose outcomes are being recorded

    async def validated(self, leases: list[Lease]) -> list[tuple[Lease, Validators]]:
        """Leases, and the validators to send for each."""
        copies = await self._recorder.copies([lease.url for lease in leases])
        found = []
        for lease in leases:
            hop = Hop(lease.url, lease.url, lease.picked_at)
            validators = self._components.comparer.validators(hop, copies.get(lease.url))
            lease = replace(lease, conditional=any(validators))
            self._book.renew(lease)
            found.append((lease, validators))
        return found

    async def recall(self, names: Iterable[str]) -> None:
        """Read from the store which leases have ended."""
        missing = self._book.unknown(names)
        if missing:
            self._book.remember(*await self._components.store.leases(missing))

    async def record(self, reports: Sequence[Report]) -> list[str]:
        """Record reports; one word of each. It goes on to its end when the caller does not wait for it."""
        await self.recall([report.lease for report in reports])
        words: list[str] = []
        mine: dict[str, tuple[Report, Lease]] = {}
        others: set[asyncio.Task[dict[str, str]]] = set()
        for report in reports:
            lease = self._book.find(report.lease)
            if report.lease in mine or report.lease in self._taken:
                others |= {self._taken[report.lease]} if report.lease in self._taken else set()
                words.append("repeated")
            else:
                words.append("unknown" if lease is None else self._word_of(lease))
                if lease is not None and lease.state == HELD:
                    mine[report.lease] = report, lease
        writing = asyncio.create_task(self._write(list(mine.values())))
        self._taken |= dict.fromkeys(mine, writing)
        writing.add_done_callback(lambda _: [self._taken.pop(name) for name in mine])
        found = await asyncio.shield(writing)
        for other in others:
            await asyncio.shield(other)
        named = zip(reports, words, strict=True)
        return [word if word == "repeated" else found.get(report.lease, word) for report, word in named]

    def _word_of(self, lease: Lease) -> str:
        """What becomes of an outcome of a lease."""
        if lease.state == HELD:
            return RECORDED if lease.until > self._clock.now() else "late"
        return "repeated" if lease.state == RECORDED else lease.state

    async def _write(self, given: list[tuple[Report, Lease]]) -> dict[str, str]:
        """Record outcomes; words that differ from what was expected, by lease."""
        if not given:
            await self._commit.settled()
            return {}
        copies = await self._recorder.copies([lease.url for _, lease in given])
        crawls = [await self._crawl(report, lease, copies.get(lease.url)) for report, lease in given]
        now, words, ended = self._clock.now(), dict[str, str](), list[Lease]()
        pages = self._engine.addresses.known([lease.url for _, lease in given]).tolist()
        for crawl, page in zip(crawls, pages, strict=True):
            lease, word = self._end(crawl, page, now)
            ended.append(lease)
            if word != RECORDED:
                words[lease.id] = word
        self._recorder.settle(now)
        for lease in ended:
            self._keep_back(lease.url)
        await self._commit.add(ended)
        await self._discover(crawls)
        return words

    async def _crawl(self, report: Report, lease: Lease, copy: Copy | None) -> _Crawl:
        """The outcome of a report; a mistake in a detector is that page's failure."""
        hop = report.hop(lease, copy, self._clock.now())
        fetched = report.fetched(hop)
        try:
            found = await self._components.comparer.outcome(hop, fetched, copy, report.given_digest(hop))
        except Exception as problem:
            self._components.counters.errors += 1
            self._components.report("error", url=lease.url, problem=problem)
            found = Outcome(lease.url, hop.began, failure=f"error: {type(problem).__name__}")
        return _Crawl(report, fetched, replace(report.as_said(found, copy), took=report.took), copy)

    def _end(self, crawl: _Crawl, page: int, now: float) -> tuple[Lease, str]:
        """End a lease with its outcome; what became of it."""
        report, outcome, copy = crawl.report, crawl.outcome, crawl.copy
        lease, holding = self._book.end(report.lease, RECORDED)
        self._charge(crawl, now)
        if page < 0:
            return lease, "removed"
        if holding is not None and holding.deferred:
            self._engine.end_deferral([page], lease.until)
        if copy is not None and outcome.began_at < copy.fetched_at:
            if holding is not None:
                self.free(holding)
            return lease, "outdated"
        self._recorder.ended(page, outcome, copy, report.retry_at(now), report.good_for)
        self._components.counters.add(outcome, len(report.body or b""), host_of(lease.url))
        self._components.report("crawled", outcome=outcome)
        return lease, RECORDED

    def _charge(self, crawl: _Crawl, now: float) -> None:
        """Charge the requests after the first, and let the host rest after the last."""
        components, outcome, host = self._components, crawl.outcome, host_of(crawl.outcome.url)
        if crawl.report.requests > 1:
            components.budget.charge(crawl.report.requests - 1)
            components.limiter.charge(outcome.url, crawl.report.requests - 1)
        components.limiter.answered(host, crawl.fetched)
        if crawl.report.requests and (delay := components.limiter.delay(host)) > 0:
            components.limiter.hold(host, min(outcome.began_at + outcome.took, now) + delay)

    def _keep_back(self, url: str) -> None:
        """A late outcome was recorded: whoever holds the page meanwhile goes on to hold it."""
        holding = self._book.holding(url)
        if holding is not None and (page := self._page_of(url)) >= 0:
            self._engine.defer([page], holding.lease.until)
            holding.deferred = True
            self._components.inbox.began(page)

    def free(self, holding: Holding) -> None:
        """A lease has ended without an outcome."""
        page = self._page_of(holding.lease.url)
        if page < 0:
            return
        if holding.deferred:
            self._engine.end_deferral([page], holding.lease.until)
        else:
            self._engine.release([page], self._clock.now())
        self._components.inbox.ended([page])

    async def _discover(self, crawls: list[_Crawl]) -> None:
        """Links of pages that are new or changed."""
        for report, fetched, outcome, _ in crawls:
            if outcome.fetched and outcome.changed is not False:
                if report.links:
                    await self._components.polls.links_named(outcome.url, report.links)
                elif report.body:
                    self._components.polls.page_fetched(outcome.url, fetched)

    def _page_of(self, url: str) -> int:
        return int(self._engine.addresses.known([url])[0])
