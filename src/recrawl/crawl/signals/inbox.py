"""Inbox: takes change signals in, stores what is new before it is acknowledged, and gives it to the engine.

A repetition costs no write: the same page and source since the page's last crawl began, and no newer ``changed_at``.
The engine gets the 2nd, 4th, 8th … signal of a source about a copy. A signal that comes while its page is crawled is
given to the engine when the crawl has ended, so that it counts for the new copy.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from time import thread_time

import numpy as np

from recrawl.crawl.clock import Clock
from recrawl.crawl.signals.counts import TOTALS, SignalCounts
from recrawl.crawl.signals.dates import Copies, Stated, refuted
from recrawl.crawl.signals.effects import EFFECTS, SignalEffects
from recrawl.crawl.signals.group_commit import GroupCommit
from recrawl.crawl.signals.heard import Heard, HeardTable
from recrawl.crawl.signals.limits import Limits
from recrawl.crawl.signals.sorting import New, Signal, Sorted, Sorting, speakers_of
from recrawl.crawl.signals.sources import NOTE, Source, Sources
from recrawl.engine import Engine
from recrawl.engine.names.addresses import host_of
from recrawl.engine.views.sources import counts_on
from recrawl.errors import ParameterError
from recrawl.store.protocol import Outcome, Store
from recrawl.store.signals import PendingSignal
from recrawl.urls import name_of

_TIMED = 16  # new signals of one call whose delays are counted
_EXACT = 60.0  # seconds: the delay of a signal with a coarser date is not known
_FULL_FOR = 60.0  # seconds after which a source with too many pending signals may try again


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of signals."""

    accepted: int = 0  # new, and stored
    repeated: int = 0  # nothing new since the page's last crawl began
    outdated: int = 0  # about a change before the page's copy
    unknown: int = 0  # URLs that are no page
    limited: int = 0  # beyond a limit: not taken
    retry_after: float = 0.0  # seconds after which those would be taken


@dataclass(frozen=True)
class InboxOptions:
    """How an inbox works."""

    gather: float = 0.0  # seconds that signals wait for others to be written with
    most_pending: int = 200_000  # pages with a pending signal of one source
    on_unknown: Callable[[Source, list[str]], None] | None = None  # gets canonical URLs that are no page
    on_new: Callable[[], None] | None = None  # called after the engine got signals


class Inbox:
    """The signals of a crawl. Nothing is read from the store before ``load``."""

    def __init__(self, engine: Engine, store: Store, clock: Clock, options: InboxOptions | None = None) -> None:
        self.options = options or InboxOptions()
        self.on_unknown, self.on_new = self.options.on_unknown, self.options.on_new
        self.sources, self.limits = Sources(), Limits()
        self.tally, self.effects = SignalCounts(), SignalEffects()
        self._engine, self._store, self._clock = engine, store, clock
        self._heard = HeardTable()
        self._commit = GroupCommit(self._write, clock, self.options.gather)
        self.charge: Callable[[float], None] | None = None  # gets the seconds for which stored signals kept the loop
        self.copies: Copies = store.copies  # the newest copies by URL; a crawl has some that are not stored yet

    async def load(self) -> None:
        """Take up the sources and the pending signals of earlier runs; the engine was opened with them."""
        self.sources = Sources.restore(await self._store.notes(NOTE))
        self.tally.restore(await self._store.notes(TOTALS))
        self.effects.restore(await self._store.notes(EFFECTS))
        pending = await self._store.signals()
        known = self._engine.addresses.known([one.url for one in pending]).tolist()
        for page, one in zip(known, pending, strict=True):
            if page >= 0:
                self._heard.set(page, one.source, Heard(one.at, one.changed_at))

    # --- taking in ----------------------------------------------------------------------------------------------------

    async def take(self, signals: Sequence[Signal], *, whole: bool = False) -> Taken:
        """Take signals; returns when those that are new are stored. With ``whole``, none is taken if one is limited.

        Raises StoreError if they could not be stored.
        """
        now = self._clock.now()
        allowed, retry_after = self._within_limits(signals, now, whole)
        return await self._take(signals, allowed, retry_after, whole)

    async def take_queued(self, signals: Sequence[Signal]) -> Taken:
        """Take signals that were acknowledged before they were queued: the limits of speakers held then."""
        return await self._take(signals, list(signals), 0.0, False)

    async def _take(self, signals: Sequence[Signal], allowed: list[Signal], retry_after: float, whole: bool) -> Taken:
        now = self._clock.now()
        done = self._sort(allowed, now)
        if done.late:
            done = self._sort(await self.check_dates(allowed), now)
        if done.total("limited"):
            retry_after = max(retry_after, _FULL_FOR)
        if whole and retry_after > 0:
            n = speakers_of(signals)
            self.tally.add({source: Counter(limited=n[source]) for source in n})
            return Taken(limited=len(signals), retry_after=retry_after)
        self._apply(done, now)
        if done.new:
            await self._commit.add(list(done.new.values()))
        elif done.repeated:
            await self._commit.settled()  # what they repeat may not be stored yet
        found = {name: done.total(name) for name in ("accepted", "repeated", "outdated", "unknown")}
        return Taken(**found, limited=len(signals) - sum(found.values()), retry_after=retry_after)

    async def check_dates(self, signals: Sequence[Signal]) -> list[Signal]:
        """The signals; those whose dates crawls have refuted (`Stated.is_refuted`) without their dates."""
        now, found = self._clock.now(), list(signals)
        rows = [k for k, one in enumerate(found) if one.changed_at is not None]
        pages = self._engine.addresses.known([self._name(found[k].page) for k in rows])
        copied_at = np.full(len(rows), -np.inf)
        copied_at[pages >= 0] = self._engine.fetched_at(pages[pages >= 0])
        late: dict[int, Stated] = {}
        for k, copied in zip(rows, copied_at.tolist(), strict=True):
            first = found[k].changed_at or 0.0
            last = min(first + found[k].resolution, now)
            if last <= copied:
                late[k] = Stated(self._name(found[k].page), first, last)
        for k, is_refuted in zip(late, await refuted(list(late.values()), self.copies), strict=True):
            if is_refuted:
                found[k] = found[k]._replace(changed_at=None, resolution=0.0)
        return found

    def _within_limits(self, signals: Sequence[Signal], now: float, whole: bool) -> tuple[list[Signal], float]:
        """The signals that their speakers may send now, and the seconds until the others may be sent."""
        speakers = speakers_of(signals)
        wait = max((self.limits.wait(source, n, now) for source, n in speakers.items()), default=0.0)
        if wait == 0.0:
            for source, n in speakers.items():
                self.limits.take(source, n, now)
            return list(signals), 0.0
        if whole:
            return [], wait
        left = {source: min(n, self.limits.left(source, now)) for source, n in speakers.items()}
        for source, n in left.items():
            self.limits.take(source, n, now)
            if n < speakers[source]:
                self.tally.add({source: Counter(limited=speakers[source] - n)})
        allowed = []
        for signal in signals:
            left[signal.source] -= 1
            if left[signal.source] >= 0:
                allowed.append(signal)
        return allowed, wait

    def _sort(self, signals: Sequence[Signal], now: float) -> Sorted:
        """Find out what is new; nothing is changed but the numbers of sources."""
        names = [one.page if isinstance(one.page, str) else self._name(one.page) for one in signals]
        pages = self._engine.addresses.known(names)
        if (pages < 0).any():  # most names are those of pages already
            names = [name if page >= 0 else self._name(name) for name, page in zip(names, pages.tolist(), strict=True)]
            pages = self._engine.addresses.known(names)
        copied_at = np.full(len(pages), -np.inf)
        copied_at[pages >= 0] = self._engine.fetched_at(pages[pages >= 0])
        sorting = Sorting(self._heard, self.options.most_pending, now)
        source, number, counts = None, -1, Counter[str]()  # of the last signal: most calls have one speaker
        for signal, url, page, copied in zip(signals, names, pages.tolist(), copied_at.tolist(), strict=True):
            if signal.source is not source:
                source, number, counts = signal.source, -1, sorting.done.counts[signal.source]
            if page < 0:
                sorting.done.unknown[source].append(url)
                counts["unknown"] += 1
                continue
            if number < 0:
                number = self.sources.number(source)
            row = PendingSignal(url, number, now, signal.changed_at, signal.resolution)
            counts[sorting.kind(page, row, copied)] += 1
        return sorting.done

    def _name(self, page: str | int) -> str:
        try:
            return name_of(page) if isinstance(page, str) else self._engine.url([page])[0]
        except ParameterError:
            return ""

    def _apply(self, done: Sorted, now: float) -> None:
        """Remember what is new, count everything, pass repetitions on, and offer unknown URLs."""
        self.tally.add(done.counts)
        for (page, source), one in done.new.items():
            self._heard.set(page, source, one.heard)
        for one in islice(done.new.values(), _TIMED):
            signal = one.signal
            if signal.changed_at is not None and signal.resolution <= _EXACT:
                pair = self.sources.name(signal.source), host_of(signal.url)
                self.effects.heard(pair, now - signal.changed_at)
        again = defaultdict[int, list[int]](list)
        for page, heard, signal in done.repeated:
            if heard.repeat(signal.about()):
                again[signal.source].append(page)
        for source, pages in again.items():
            self._give(pages, source, now, None)
        self._confirm(done.late, now)
        if self.on_unknown is not None:
            for speaker, urls in done.unknown.items():
                self.on_unknown(speaker, [url for url in urls if url])

    def _confirm(self, late: Iterable[tuple[int, PendingSignal]], now: float) -> None:
        """Give the engine signals about changes before the copies: what crawls found was signalled, only later."""
        given = defaultdict[int, list[tuple[int, float]]](list)
        for page, signal in late:
            given[signal.source].append((page, signal.about()))
        for source, some in given.items():
            if source < self._engine.settings.sources:
                pages, about = zip(*some, strict=True)
                self._engine.signal(list(pages), now, source=source, changed_at=list(about))

    # --- to the store and the engine ----------------------------------------------------------------------------------

    async def _write(self, rows: list[New]) -> None:
        """Write one group, then give it to the engine."""
        notes, self.sources.changed = self.sources.note() if self.sources.changed else {}, False
        try:
            await self._store.save(signals=[one.signal for one in rows], notes=notes)
        except BaseException:
            self.sources.changed = self.sources.changed or bool(notes)
            for one in rows:
                if self._heard.of(one.page, one.signal.source) is one.heard:
                    self._heard.drop(one.page, one.signal.source)  # the next signal is written again
            raise
        began = thread_time()
        here = self._engine.addresses.known([one.signal.url for one in rows]).tolist()
        self._hear([one for one, page in zip(rows, here, strict=True) if one.page == page])
        if self.charge is not None:
            self.charge(thread_time() - began)

    def _hear(self, rows: Iterable[New]) -> None:
        """Give stored signals to the engine; of pages that are being crawled, later."""
        now, given = self._clock.now(), defaultdict[int, list[New]](list)
        for one in rows:
            if self._heard.is_crawled(one.page):
                one.heard.waits = True
            else:
                given[one.signal.source].append(one)
        for source, some in given.items():
            about = [max(one.signal.about(), one.heard.again_at) for one in some]
            self._give([one.page for one in some], source, now, about)

    def _give(self, pages: list[int], source: int, now: float, about: list[float] | None) -> None:
        """Give signals to the engine. One opened with fewer sources gets them when it is opened the next time."""
        if source < self._engine.settings.sources:
            self._engine.signal(pages, now, source=source, changed_at=about)
            if self.on_new is not None:
                self.on_new()

    # --- what becomes of pages ----------------------------------------------------------------------------------------

    def began(self, *pages: int) -> None:
        """Crawls of pages begin."""
        if self._heard.is_empty:
            return self._heard.begin(pages)
        for page in pages:
            self._heard.began(page)

    def ended(self, pages: Iterable[int]) -> None:
        """Crawls have ended and are recorded in the engine."""
        if self._heard.is_empty:
            return self._heard.end(pages)
        for page in pages:
            for source, heard in self._heard.ended(page):
                self._give([page], source, self._clock.now(), [max(heard.at, heard.again_at)])

    def renewed(self, ended: Iterable[tuple[int, Outcome]]) -> list[PendingSignal]:
        """Signals to store with outcomes, by page: they were repeated after the fetch began, which cost no write."""
        if self._heard.is_empty:
            return []
        good = [(page, one) for page, one in ended if one.failure is None]
        found = [(one.url, *again) for page, one in good for again in self._heard.renewed(page, one.began_at)]
        return [PendingSignal(url, source, heard.at) for url, source, heard in found]

    def marked(self, ended: Iterable[tuple[int, Outcome]]) -> list[Outcome]:
        """Outcomes by page, with the sources that had signalled a change; before `renewed`, which moves signals."""
        if self._heard.is_empty:
            return [one for _, one in ended]
        before = [(one, self._heard.before(page, one.began_at)) for page, one in ended]
        return [replace(one, signalled=sum(1 << k for k in sources)) if sources else one for one, sources in before]

    def saved(self, outcomes: Iterable[Outcome]) -> None:
        """Outcomes are stored: with them, the store has deleted the signals before them."""
        if self._heard.is_empty:
            return
        good = [one for one in outcomes if one.failure is None]
        for page, one in zip(self._engine.addresses.known([one.url for one in good]).tolist(), good, strict=True):
            for source in self._heard.saved(page, one.began_at):
                host, changed = host_of(one.url), one.gone or bool(one.changed)
                counts = counts_on(self._engine, host, source)
                self.effects.crawled(
                    (self.sources.name(source), host), changed=changed, counts=counts, now=one.began_at
                )

    def forget(self, pages: Iterable[int]) -> None:
        """Pages are removed."""
        for page in pages:
            self._heard.forget(page)

    def is_crawled(self, page: int) -> bool:
        """Whether a crawl of a page runs."""
        return self._heard.is_crawled(page)

    @property
    def counts(self) -> dict[Source, Counter[str]]:
        """What became of the signals of each speaker in this run."""
        return self.tally.by_speaker

    @property
    def n_pending(self) -> int:
        """How many signals are pending: of pages, by source."""
        return self._heard.total

    def pending(self, source: Source) -> int:
        """How many pages have a pending signal of a source."""
        return self._heard.count(self.sources.number(source))
