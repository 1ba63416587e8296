"""Recording: outcomes of leases to the recorder of the crawl, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

from recrawl.crawl.polite.not_modified import Validators
from recrawl.crawl.run.compare import Hop
from recrawl.crawl.run.opening.components import Components
from recrawl.crawl.signals.group_commit import GroupCommit
from recrawl.desk.lease_book import Holding, LeaseBook
from recrawl.desk.reports import Report
from recrawl.engine.addresses import host_of
from recrawl.store.leases import HELD, RECORDED, Lease
from recrawl.store.protocol import Copy, Outcome


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
        outcomes = [await self._outcome(report, lease, copies.get(lease.url)) for report, lease in given]
        now, words, ended = self._clock.now(), dict[str, str](), list[Lease]()
        for (report, lease), outcome in zip(given, outcomes, strict=True):
            word = self._end(report, outcome, copies.get(lease.url), now)
            if word != RECORDED:
                words[lease.id] = word
            found = self._book.find(lease.id)
            assert found is not None
            ended.append(found)
        self._recorder.settle(now)
        for _, lease in given:
            self._keep_back(lease.url, now)
        await self._commit.add(ended)
        await self._discover(given, outcomes)
        return words

    async def _outcome(self, report: Report, lease: Lease, copy: Copy | None) -> Outcome:
        """The outcome of a report; a mistake in a detector is that page's failure."""
        hop = report.hop(lease, copy, self._clock.now())
        fetched = report.fetched(hop)
        try:
            found = await self._components.comparer.outcome(hop, fetched, copy, report.given_digest(hop))
        except Exception as problem:
            self._components.counters.errors += 1
            self._components.report("error", url=lease.url, problem=problem)
            return Outcome(lease.url, hop.began, report.took, failure=f"error: {type(problem).__name__}")
        return replace(report.as_said(found, copy), took=report.took)

    def _end(self, report: Report, outcome: Outcome, copy: Copy | None, now: float) -> str:
        """End a lease with its outcome; what became of it."""
        lease, holding = self._book.end(report.lease, RECORDED)
        self._charge(report, outcome, now)
        page = self._page_of(lease.url)
        if page < 0:
            return "removed"
        if holding is not None and holding.deferred:
            self._engine.end_deferral([page], lease.until)
        if copy is not None and outcome.began_at < copy.fetched_at:
            if holding is not None:
                self.free(holding)
            return "outdated"
        self._recorder.ended(page, outcome, copy, report.retry_at(now), report.good_for)
        self._components.counters.add(outcome, len(report.body or b""), host_of(lease.url))
        self._components.report("crawled", outcome=outcome)
        return RECORDED

    def _charge(self, report: Report, outcome: Outcome, now: float) -> None:
        """Charge the requests after the first, and let the host rest after the last."""
        components, host = self._components, host_of(outcome.url)
        components.budget.charge(max(report.requests - 1, 0))
        components.limiter.charge(outcome.url, max(report.requests - 1, 0))
        components.limiter.answered(host, report.fetched(Hop(outcome.url, outcome.url, outcome.began_at)))
        if report.requests and (delay := components.limiter.delay(host)) > 0:
            components.limiter.hold(host, min(outcome.began_at + outcome.took, now) + delay)

    def _keep_back(self, url: str, now: float) -> None:
        """A late outcome was recorded: whoever holds the page meanwhile goes on to hold it."""
        holding, page = self._book.holding(url), self._page_of(url)
        if holding is not None and page >= 0:
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

    async def _discover(self, given: list[tuple[Report, Lease]], outcomes: list[Outcome]) -> None:
        """Links of pages that are new or changed."""
        for (report, lease), outcome in zip(given, outcomes, strict=True):
            if outcome.fetched and outcome.changed is not False:
                if report.links:
                    await self._components.polls.links_named(lease.url, report.links)
                elif report.body:
                    self._components.polls.page_fetched(lease.url, report.fetched(Hop(lease.url, lease.url, 0.0)))

    def _page_of(self, url: str) -> int:
        return int(self._engine.addresses.known([url])[0])
