"""IndexNow in a crawl: takes pings, has keys verified, and signals the pages of verified ones."""

from __future__ import annotations

import logging
import math
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from recrawl.crawl.clock import Clock
from recrawl.crawl.polite.side_requests import SideRequests
from recrawl.crawl.run.receive.pauses import FewTasks
from recrawl.crawl.signals.group_commit import GroupCommit
from recrawl.crawl.signals.inbox import Inbox
from recrawl.crawl.signals.indexnow.keys import KeyCheck, Keys
from recrawl.crawl.signals.indexnow.ping import Ping, Refusal, holds_key
from recrawl.crawl.signals.sorting import Signal
from recrawl.crawl.signals.sources import Source
from recrawl.engine.names.addresses import host_of
from recrawl.logs import event

_AT_A_TIME = 32  # key files that are fetched, or wait for their hosts
_HELD = 60.0  # seconds until a host that is held is tried again
_SOME = 100  # pages that are signalled at once: as many as any limit allows
_LONGEST = 3600.0  # seconds that signals beyond a limit wait
log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """What a ping is answered."""

    status: int
    reason: str = ""
    retry_after: float = 0.0


class IndexNow:
    """The pings of a crawl; ``is_page`` answers which URLs are pages."""

    def __init__(
        self,
        side: SideRequests,
        inbox: Inbox,
        clock: Clock,
        save_notes: Callable[[Mapping[str, Any]], Awaitable[None]],
        is_page: Callable[[Sequence[str]], Sequence[bool]],
    ) -> None:
        self._side, self._inbox, self._clock, self._save_notes = side, inbox, clock, save_notes
        self.keys = Keys(is_page)
        self.counts: Counter[int] = Counter()  # answers by status
        self._checks: deque[KeyCheck] = deque()
        self._tasks = FewTasks(clock, _AT_A_TIME)
        self._commit = GroupCommit[None](self._write, clock)

    def restore(self, notes: Mapping[str, Any]) -> None:
        """Take up the notes of earlier runs; checks that were not finished are made again."""
        self._checks.extend(self.keys.restore(notes, self._clock.now()))

    async def receive(self, ping: Ping | Refusal, *, queued: bool = False) -> Answer:
        """Take a ping; returns when what was taken is stored. One that was ``queued`` is acknowledged already."""
        answer = await self._received(ping, queued)
        self.counts[answer.status] += 1
        return answer

    async def _received(self, ping: Ping | Refusal, queued: bool) -> Answer:
        if isinstance(ping, Refusal):
            return Answer(*ping)
        taken = self.keys.take(ping, self._clock.now())
        if isinstance(taken, Refusal):
            return Answer(*taken, retry_after=3600.0 if taken.status == 429 else 0.0)
        if taken.status == 202:
            await self._wait(taken.check)
        if taken.urls:
            signals = self._signals(ping.location, taken.urls)
            done = await (self._inbox.take_queued(signals) if queued else self._inbox.take(signals, whole=True))
            if done.limited:
                return Answer(429, "too many URLs of this host", done.retry_after)
        return Answer(taken.status)

    async def _wait(self, check: KeyCheck | None) -> None:
        """Let what waits for a key be stored. Its check comes also after a failure: other pings may wait for it."""
        try:
            await self._save()
        finally:
            if check is not None:
                self._checks.append(check)
                self._tasks.wake()

    def _signals(self, location: str, urls: Sequence[str]) -> list[Signal]:
        source = Source("indexnow", host_of(location))
        return [Signal(url, source) for url in urls]

    async def _save(self) -> None:
        """Returns when all notes of keys are written, also those that are being written for others."""
        if self.keys.has_changes:
            await self._commit.add([None])
        else:
            await self._commit.settled()

    async def _write(self, _: list[None]) -> None:
        notes = self.keys.pending_notes()
        try:
            await self._save_notes(notes)
        except BaseException:
            self.keys.not_saved(notes)  # the next ping writes them, a repetition too
            raise

    # --- key files ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Fetch key files, a few at a time, until cancelled."""
        async with self._tasks.running():
            while True:
                while self._checks and self._tasks.free > 0:
                    self._tasks.begin(self._check(self._checks.popleft()))
                await self._tasks.sleep(math.inf)

    async def _check(self, check: KeyCheck) -> None:
        """Fetch a key file and signal what waited for it; the signals are stored before they wait no more."""
        fetched = await self._side.get(check.location)
        while fetched.failure == "busy" and not fetched.status:  # nothing was asked: the host is held
            await self._clock.sleep(_HELD)
            fetched = await self._side.get(check.location)
        valid = fetched.failure is None and holds_key(fetched.body, check.key)
        n = await self._signal_waiting(check) if valid else 0
        self.keys.checked(check, valid)
        await self._save()
        words = {"site": check.site, "valid": valid, "failure": fetched.failure, "pages": n}
        event(log, logging.INFO, "indexnow.checked", **words)

    async def _signal_waiting(self, check: KeyCheck) -> int:
        """Signal the pages that wait for a key, also those that come meanwhile; how many they are."""
        done: set[str] = set()
        while some := [url for url in self.keys.waiting(check) if url not in done][:_SOME]:
            taken = await self._inbox.take(self._signals(check.location, some), whole=True)
            if taken.limited:
                await self._clock.sleep(min(max(taken.retry_after, 1.0), _LONGEST))
            else:
                done.update(some)
        return len(done)
