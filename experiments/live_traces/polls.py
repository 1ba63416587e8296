"""Polled sitemaps of a recorded trace, without fetching pages: the rule, credits and inbox of the live crawler.

The engine crawls by its compiled loop from one poll to the next; a poll takes the slot of a crawl. Sitemaps are those
of the trace served in memory, as in `recrawl.demo.replay`. Beside staleness it counts polls by month, and signals by
whether their pages were stale when they were read. A year takes about 75 s of processor time, less than a tenth of a
live one. Unlike there, equal pages are taken in the order of the compiled loop, nothing is stored, and what decides
about polls is computed less often: the margin hourly, due times every four hours, expected worths every five days.

    python experiments/live_traces/polls.py --data FOLDER/dotnet-docs --orders 1,2,3 --json polls.json
    python experiments/live_traces/polls.py --data FOLDER/dotnet-docs --orders 1,2,3 --ways none
    python experiments/live_traces/polls.py --data FOLDER/dotnet-docs --orders 1,2,3 --ways mute     polls, no signals
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.http.memory import ManualClock, MemoryWeb
from recrawl.crawl.listings import poll_queue, worths
from recrawl.crawl.listings.discovery import Discovery
from recrawl.crawl.listings.poll_queue import PollTerms
from recrawl.crawl.listings.polls import PollHooks, Polls
from recrawl.crawl.signals.inbox import Inbox, Taken
from recrawl.crawl.signals.sorting import Signal
from recrawl.demo import even_budget
from recrawl.demo.replay.listings import sitemap_of
from recrawl.demo.replay.web import TraceWeb
from recrawl.engine.names.addresses import host_of
from recrawl.simulate import Trace, read_trace
from recrawl.simulate.run.policies import learning
from recrawl.simulate.run.run import membership
from recrawl.simulate.run.runners import EngineRunner
from recrawl.simulate.tally import Judge
from recrawl.store import MemoryStore
from recrawl.store.protocol import Copy, Outcome

BUDGET = 0.05  # of the pages, per day
HOUR, DAY, BINS = 3600.0, 86400.0, 12
WAYS = ("polls", "mute", "none")
Ids = NDArray[np.int64]


class Web:
    """Requests of listings, which wait for nothing."""

    def __init__(self, web: TraceWeb, clock: ManualClock) -> None:
        self._web = MemoryWeb(web.answer, clock)

    def wait(self, url: str) -> float:
        return 0.0

    async def get(self, url: str, *, etag: str | None, last_modified: str | None, sink: Any) -> Fetched:
        return await self._web.fetch(url, etag=etag, last_modified=last_modified)


class Year:
    """One trace with polls of its sitemaps; ``mute``: polls are made, but their signals are dropped."""

    def __init__(self, trace: Trace, budget: float, way: str) -> None:
        self.trace, self.budget, self.way = trace, budget, way
        self.clock, self.web = ManualClock(trace.start), TraceWeb(trace)
        self.judge = Judge(trace, bins=BINS)
        self.engine = learning(sources=int(way != "none"))(trace, budget, np.random.default_rng(0))
        self.inbox = Inbox(self.engine, MemoryStore(keep=0), self.clock)
        self.inbox.copies = self.copies
        hooks = PollHooks(self._add, self._terms, lambda task: None, self._report)
        discovery = Discovery(CrawlOptions().rules, lambda urls: [True] * len(urls))
        self.polls = Polls(self.engine, self.inbox._store, self.clock, self.inbox, discovery, hooks)
        self.polls.attach(Web(self.web, self.clock))  # type: ignore[arg-type]
        self.polls._save = self._save  # type: ignore[method-assign]
        self._take, self.inbox.take = self.inbox.take, self.take  # type: ignore[method-assign]
        self.since = np.full(len(trace), -np.inf)  # when copies were first seen to have their content
        self.found = np.zeros(len(trace), np.int64)
        self.signalled: set[int] = set()
        self.threshold, self.picks = 0.0, 0
        self.counts: Counter[str] = Counter()

    # --- what polls need ----------------------------------------------------------------------------------------------

    async def _add(self, pages: Mapping[str, float]) -> None:
        raise AssertionError("nothing is discovered")

    async def _save(self, notes: Mapping[str, Any] | None = None) -> None:
        self.polls.registry.pending = {}

    def _terms(self) -> PollTerms:
        return PollTerms(self.threshold, self.budget, DAY)

    def _report(self, name: str, **fields: Any) -> None:
        if name == "error":
            raise fields["problem"]
        self.counts["polls"] += 1
        self.counts[f"polls, month {self._month()}"] += 1

    def _month(self) -> int:
        return int((self.clock.now() - self.trace.start) / (self.trace.end - self.trace.start) * BINS)

    async def copies(self, urls: list[str]) -> dict[str, Copy]:
        """The copies of pages, as a crawl knows them."""
        pages = np.array([self.web.page_of(url) for url in urls])
        times = zip(urls, self.engine.fetched_at(pages).tolist(), self.since[pages].tolist(), strict=True)
        return {url: Copy(url, at, since, 200, None, None, None, None, None) for url, at, since in times}

    async def take(self, signals: Sequence[Signal], *, whole: bool = False) -> Taken:
        """Count signals by whether their pages are stale, and take them."""
        now, trace = self.clock.now(), self.trace
        pages = self.engine.addresses.known([str(one.page) for one in signals])
        for one, page in zip(signals, pages.tolist(), strict=True):
            if page < 0:
                continue
            copied = float(self.engine.fetched_at(np.array([page]))[0])
            first, last = np.searchsorted(trace.changed_at[trace.offset[page] : trace.offset[page + 1]], [copied, now])
            kind = "undated"
            if one.changed_at is not None:
                late = min(one.changed_at + one.resolution, now) <= copied
                kind = "after the copy" if not late else "before it"
                kind = "refuted" if late and self.since[page] < one.changed_at else kind
            self.counts[f"{kind}, {'stale' if last > first else 'fresh'}"] += 1
            self.signalled.add(page)
        return Taken() if self.way == "mute" else await self._take(signals, whole=whole)

    # --- one year -----------------------------------------------------------------------------------------------------

    async def run(self) -> dict[str, Any]:
        """Crawl and poll from the start of the trace to its end."""
        trace, period, slot = self.trace, 1.0 / self.budget, 1
        runner = EngineRunner(self.engine, replace(trace, signals=None), self.judge)
        n_slots = int(np.floor((trace.end - trace.start) * self.budget * (1 + 1e-12)))
        changes = membership(trace, trace.start, trace.end)
        coming = next(changes, None)
        if self.way != "none":
            for host in dict.fromkeys(host_of(url) for url in self.web.urls):
                self.polls.add(sitemap_of(host), "sitemap")
        while slot <= n_slots:
            now = trace.start + slot * period
            while coming is not None and coming[0] <= now:
                self._change(*coming)
                coming = next(changes, None)
            self.clock._now = now
            if self.way != "none" and await self._poll(now):
                slot += 1
                continue
            at = min(self.polls.registry.next_at(now, self._terms()), math.inf if coming is None else coming[0])
            at = min(at, now + HOUR, trace.end)
            stop = min(max(math.ceil((at - trace.start) * self.budget), slot + 1), n_slots + 1)
            self._crawl(runner, slot, stop)
            slot = stop
        self.polls.close()
        verdict = self.judge.verdict()
        months = (1.0 - verdict.window_freshness).round(6).tolist()
        return {"staleness": verdict.staleness, "months": months, **dict(sorted(self.counts.items()))}

    def _change(self, at: float, come: Ids, gone: Ids) -> None:
        self.clock._now = at
        if len(come):
            urls = [self.web.urls[page] for page in come.tolist()]
            self.engine.add(urls, at, fetched_at=at, importance=self.trace.importance[come])
            self.since[come] = at
        if len(gone):
            self.engine.remove(gone)
            self.inbox.forget(gone.tolist())
            self.signalled.difference_update(gone.tolist())

    async def _poll(self, now: float) -> bool:
        self.polls._worths.renew(now)
        listing = self.polls.registry.due(now, self._terms())
        if listing is not None:
            await self.polls._poll(listing)
        return listing is not None

    def _crawl(self, runner: EngineRunner, slot: int, stop: int) -> None:
        """Make the crawls of some slots; polls learn from those of signalled pages."""
        tally, watched = self.judge.tally, np.array(sorted(self.signalled), np.int64)
        crawls, found = tally.crawls[watched].copy(), tally.found[watched].copy()
        runner.run(self.trace.start, 1.0 / self.budget, slot, stop, 1)
        self.clock._now = self.trace.start + (stop - 1) / self.budget
        changed = np.flatnonzero(tally.found != self.found)
        self.since[changed], self.found[changed] = self.engine.fetched_at(changed), tally.found[changed]
        self._smooth(stop - slot)
        over = np.flatnonzero(tally.crawls[watched] > crawls)
        outcomes = []
        for k in over.tolist():
            page = int(watched[k])
            at = float(self.engine.fetched_at(np.array([page]))[0])
            outcomes.append(Outcome(self.web.urls[page], at, status=200, changed=bool(tally.found[page] > found[k])))
            self.signalled.discard(page)
        if outcomes:
            self.inbox.saved(outcomes)
            self.polls.crawled(outcomes)

    def _smooth(self, n: int) -> None:
        """The crawl value at the margin after n crawls."""
        value = self.engine.threshold
        if 0 < value < 1e200:
            self.picks += n
            weight, before = max(1.0 - 0.98**n, n / self.picks), self.threshold or value
            self.threshold = math.exp((1.0 - weight) * math.log(before) + weight * math.log(value))


def main() -> None:
    """Run orders and ways, and print or add to a file what came of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the trace")
    parser.add_argument("--orders", default="0", help="orders among equals, a comma list")
    parser.add_argument("--ways", default="polls", help=f"a comma list of {', '.join(WAYS)}")
    parser.add_argument("--days", type=float, default=365.0, help="the last days of the trace")
    parser.add_argument("--json", type=Path, help="file of results, to add to")
    given = parser.parse_args()
    poll_queue._REFRESH, worths._RENEW_EVERY = 4.0 * HOUR / DAY, 1.0  # days
    for order in map(int, given.orders.split(",")):
        trace = read_trace(given.data, days=given.days).shuffled(np.random.default_rng(order))
        budget = even_budget(BUDGET * trace.n_live / trace.day)
        for way in given.ways.split(","):
            found = asyncio.run(Year(trace, budget, way).run())
            print(f"{way}, order {order}: {found['staleness']:.5f}", found, flush=True)
            if given.json is not None:
                held = json.loads(given.json.read_text()) if given.json.exists() else {}
                held.setdefault(way, {})[str(order)] = found
                given.json.write_text(json.dumps(held, indent=1) + "\n")


if __name__ == "__main__":
    main()
