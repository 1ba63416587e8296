"""Recording: outcomes of leases to the recorder of the crawl, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.polite.not_modified import Validators
from recrawl.crawl.run.compare import Hop
from recrawl.crawl.run.opening.components import Components
from recrawl.crawl.signals.group_commit import GroupCommit
from recrawl.desk.lease_book import Holding, LeaseBook
from recrawl.desk.reports import Report
from recrawl.engine.names.addresses import host_of
from recrawl.store.leases import HELD, RECORDED, Lease
from recrawl.store.protocol import Copy, Outcome

_NO_VALIDATORS = Validators()


class _Given(NamedTuple):
    """A report about a lease, and how the lease is held; None: it is lost."""

    report: Report
    lease: Lease
    holding: Holding | None


class _Crawl(NamedTuple):
    """What a crawler said of a lease as a fetch (None: it has fetched the page) and an outcome, and the copy before."""

    report: Report
    fetched: Fetched | None
    outcome: Outcome
    copy: Copy | None
    host: str


def without_validators(given: list[Holding]) -> list[tuple[Lease, Validators]]:
    """Leases whose copies nobody asks for."""
    return [(holding.lease, _NO_VALIDATORS) for holding in given]


class Recording:
    """Compares what was reported with copies, as the crawler does, and records it with the end of its lease."""

    def __init__(self, components: Components, book: LeaseBook, commit: GroupCommit[Lease]) -> None:
        self._components, self._book, self._commit = components, book, commit
        self._engine, self._recorder, self._clock = components.engine, components.recorder, components.clock
        self._taken: dict[str, asyncio.Task[dict[str, str]]] = {}  # leases whose outcomes are being recorded

    async def validated(self, given: list[Holding]) -> list[tuple[Lease, Validators]]:
        """Leases, and the validators to send for each. What was read of their copies is kept with the leases."""
        copies = await self._recorder.copies([holding.lease.url for holding in given])
        found = []
        for holding in given:
            lease, validators, copy = holding.lease, _NO_VALIDATORS, copies.get(holding.lease.url)
            if not holding.renewed:
                holding.copy, holding.copy_known = copy, True
            if copy is not None and (copy.etag or copy.last_modified):
                validators = self._components.comparer.validators(Hop(lease.url, lease.url, lease.picked_at), copy)
                if any(validators):
                    holding.lease = lease = lease._replace(conditional=True)
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
        now, words = self._clock.now(), list[str]()
        mine: dict[str, _Given] = {}
        others: set[asyncio.Task[dict[str, str]]] = set()
        for report in reports:
            lease = self._book.find(report.lease)
            if report.lease in mine or report.lease in self._taken:
                others |= {self._taken[report.lease]} if report.lease in self._taken else set()
                words.append("repeated")
            else:
                words.append("unknown" if lease is None else self._word_of(lease, now))
                if lease is not None and lease.state == HELD:
                    mine[report.lease] = _Given(report, lease, self._book.held(report.lease))
        writing = asyncio.create_task(self._write(list(mine.values())))
        self._taken |= dict.fromkeys(mine, writing)
        writing.add_done_callback(lambda _: [self._taken.pop(name) for name in mine])
        found = await asyncio.shield(writing)
        for other in others:
            await asyncio.shield(other)
        named = zip(reports, words, strict=True)
        return [word if word == "repeated" else found.get(report.lease, word) for report, word in named]

    def _word_of(self, lease: Lease, now: float) -> str:
        """What becomes of an outcome of a lease."""
        if lease.state == HELD:
            return RECORDED if lease.until > now else "late"
        return "repeated" if lease.state == RECORDED else lease.state

    async def _write(self, given: list[_Given]) -> dict[str, str]:
        """Record outcomes; words that differ from what was expected, by lease."""
        if not given:
            await self._commit.settled()
            return {}
        copies = await self._copies(given)
        now = self._clock.now()
        crawls = [self._fetched(one, copies.get(one.lease.url), now) for one in given]
        for row, one in enumerate(given):
            if crawls[row] is None:
                crawls[row] = await self._crawl(one, copies.get(one.lease.url))
        return await self._settle([crawl for crawl in crawls if crawl is not None])

    async def _settle(self, crawls: list[_Crawl]) -> dict[str, str]:
        """End the leases of crawls with their outcomes, and commit both."""
        now, words, ended = self._clock.now(), dict[str, str](), list[Lease]()
        pages = self._engine.addresses.known([crawl.outcome.url for crawl in crawls]).tolist()
        for crawl, page in zip(crawls, pages, strict=True):
            lease, word = self._end(crawl, page, now)
            ended.append(lease)
            if word != RECORDED:
                words[lease.id] = word
        self._recorder.settle(now)
        for lease in ended:
            if (holding := self._book.holding(lease.url)) is not None:
                self._keep_back(holding)
        await self._commit.add(ended)
        await self._discover(crawls)
        return words

    async def _copies(self, given: list[_Given]) -> dict[str, Copy | None]:
        """The newest copies of pages: those that were read when the pages were handed out, unless newer ones came."""
        held = [one.holding for one in given if one.holding is not None and one.holding.copy_known]
        there = self._recorder.are_there([holding.page for holding in held]).tolist()
        known = {holding.lease.url: holding.copy for holding, is_there in zip(held, there, strict=True) if is_there}
        missing = [one.lease.url for one in given if one.lease.url not in known]
        return known | (await self._recorder.copies(missing) if missing else {})

    def _fetched(self, given: _Given, copy: Copy | None, now: float) -> _Crawl | None:
        """The outcome of most reports: the page was fetched without validators, and its digest is given."""
        report, lease, holding = given
        if lease.conditional or report.digest is None or report.final_url is not None or not report.is_success:
            return None
        try:
            outcome = self._components.comparer.given(report.said(lease, now), copy)
        except Exception:
            return None  # it happens again, and is reported then
        host = host_of(lease.url) if holding is None else holding.host
        return None if outcome is None else _Crawl(report, None, outcome, copy, host)

    async def _crawl(self, given: _Given, copy: Copy | None) -> _Crawl:
        """The outcome of a report; a mistake in a detector is that page's failure."""
        report, lease = given.report, given.lease
        hop = report.hop(lease, copy, self._clock.now())
        fetched = report.fetched(hop)
        try:
            found = await self._components.comparer.outcome(hop, fetched, copy, report.given_digest(hop))
        except Exception as problem:
            self._components.counters.errors += 1
            self._components.report("error", url=lease.url, problem=problem)
            found = Outcome(lease.url, hop.began, report.took, failure=f"error: {type(problem).__name__}")
        return _Crawl(report, fetched, report.as_said(found, copy), copy, host_of(lease.url))

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
                self.free([holding])
            return lease, "outdated"
        self._recorder.ended(page, outcome, copy, report.retry_at(now), report.good_for)
        self._components.counters.add(outcome, len(report.body or b""), crawl.host)
        self._components.report("crawled", outcome=outcome)
        return lease, RECORDED

    def _charge(self, crawl: _Crawl, now: float) -> None:
        """Charge the requests after the first, and let the host rest after the last."""
        components, outcome, host = self._components, crawl.outcome, crawl.host
        if crawl.report.requests > 1:
            components.budget.charge(crawl.report.requests - 1)
            components.limiter.charge(outcome.url, crawl.report.requests - 1)
        if crawl.fetched is None:
            components.limiter.succeeded(host)
        else:
            components.limiter.answered(host, crawl.fetched)
        if crawl.report.requests:
            components.limiter.ended(host, min(outcome.began_at + outcome.took, now))

    def _keep_back(self, holding: Holding) -> None:
        """A late outcome was recorded: whoever holds the page meanwhile goes on to hold it."""
        page = self._page_of(holding.lease.url)
        if page >= 0:
            self._engine.defer([page], holding.lease.until)
            holding.deferred = True
            self._components.inbox.began(page)

    def free(self, holdings: Sequence[Holding]) -> None:
        """Leases have ended without an outcome."""
        known = self._engine.addresses.known([holding.lease.url for holding in holdings]).tolist()
        released: list[int] = []
        deferred: dict[float, list[int]] = {}
        for holding, page in zip(holdings, known, strict=True):
            if page >= 0 and holding.deferred:
                deferred.setdefault(holding.lease.until, []).append(page)
            elif page >= 0:
                released.append(page)
        for until, pages in deferred.items():
            self._engine.end_deferral(pages, until)
        if released:
            self._engine.release(released, self._clock.now())
        self._components.inbox.ended([page for page in known if page >= 0])

    async def _discover(self, crawls: list[_Crawl]) -> None:
        """Links of pages that are new or changed."""
        for report, fetched, outcome, *_ in crawls:
            if not report.links and not report.body:
                continue
            if outcome.fetched and outcome.changed is not False:
                if report.links:
                    await self._components.polls.links_named(outcome.url, report.links)
                elif fetched is not None:
                    self._components.polls.page_fetched(outcome.url, fetched)

    def _page_of(self, url: str) -> int:
        return int(self._engine.addresses.known([url])[0])
