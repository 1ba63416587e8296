"""Signals of a cluster: queued for the workers that have the shards of the pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from recrawl.crawl.run.commands import signals_command
from recrawl.crawl.signals.inbox import Taken
from recrawl.crawl.signals.limits import Limits
from recrawl.crawl.signals.sorting import Signal
from recrawl.crawl.signals.sources import WEBHOOK, Source
from recrawl.serve.crawls.shards import ClusterCrawl


class ShardInbox:
    """See `SignalTaker`. What is new among accepted signals is found by the workers: none counts as repeated here."""

    def __init__(self, crawl: ClusterCrawl) -> None:
        self._crawl, self._limits = crawl, Limits()

    async def take(self, signals: Sequence[Signal], *, whole: bool = False) -> Taken:
        """Queue signals; returns when they are written."""
        now = self._crawl.clock.now()
        for token in self._crawl.tokens:
            source = Source(WEBHOOK, token.name)
            if self._limits.of(source) != token.limit:
                self._limits.set(source, token.limit)
        counts = Counter(one.source for one in signals)
        if wait := max((self._limits.wait(source, n, now) for source, n in counts.items()), default=0.0):
            return Taken(limited=len(signals), retry_after=wait)
        for source, n in counts.items():
            self._limits.take(source, n, now)
        known = await self._crawl.known([str(one.page) for one in signals])
        accepted = [one for one, there in zip(signals, known, strict=True) if there]
        by_shard: dict[int, list[Signal]] = {}
        for one in accepted:
            by_shard.setdefault(self._crawl.reader.shard_of(str(one.page)), []).append(one)
        for shard in by_shard:
            if not await self._crawl.reader.has_room(shard):
                return Taken(limited=len(signals), retry_after=60.0)
        for shard, mine in by_shard.items():
            await self._crawl.reader.store(shard).queue([signals_command(mine)])
        return Taken(accepted=len(accepted), unknown=len(signals) - len(accepted))
