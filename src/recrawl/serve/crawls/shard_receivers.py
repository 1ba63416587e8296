"""Pings and hubs of a cluster: any process answers them, from the notes of the shard, and queues them for its owner.

What is answered 2xx is in the queue of the shard, committed: it survives the end of this process and of the owner.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from recrawl.cluster.shard_settings import callback_of_shard
from recrawl.crawl.run.commands import received_command
from recrawl.crawl.run.receive.indexnow import Answer
from recrawl.crawl.run.receive.receivers import packed
from recrawl.crawl.signals.indexnow.keys import PREFIX as KEYS
from recrawl.crawl.signals.indexnow.keys import Keys
from recrawl.crawl.signals.indexnow.ping import Ping, Refusal
from recrawl.crawl.signals.limits import Limits
from recrawl.crawl.signals.sources import Source
from recrawl.crawl.signals.websub.subscriptions import PREFIX as SUBSCRIPTIONS
from recrawl.crawl.signals.websub.subscriptions import TAKEN, Subscriptions
from recrawl.engine.names.addresses import host_of
from recrawl.serve.crawls.shards import ClusterCrawl

_BUSY = Answer(429, "too much waits for the workers", 60.0)
_HEADERS = ("content-type", "content-encoding")  # of a delivery, that count


class ShardPings:
    """The pings of IndexNow of all shards. Key files are fetched by the owner of the shard."""

    def __init__(self, crawl: ClusterCrawl) -> None:
        self._crawl, self._limits = crawl, Limits()

    async def receive(self, ping: Ping | Refusal) -> Answer:
        """Answer a ping from what the shard knows of the key; returns when it is queued."""
        if isinstance(ping, Refusal):
            return Answer(*ping)
        reader, now, source = self._crawl.reader, self._crawl.clock.now(), Source("indexnow", host_of(ping.location))
        if wait := self._limits.wait(source, len(ping.urls), now):
            return Answer(429, "too many URLs of this host", min(wait, 86400.0))
        shard = reader.shard_of(ping.location)
        store = reader.store(shard)
        known = dict(zip(ping.urls, await self._crawl.known(list(ping.urls)), strict=True))
        keys = Keys(lambda urls: [known[url] for url in urls])
        keys.restore(await store.notes(f"{KEYS}{ping.site} "), now)
        taken = keys.take(ping, now)
        if isinstance(taken, Refusal):
            return Answer(*taken, retry_after=3600.0 if taken.status == 429 else 0.0)
        pages = [url for url in ping.urls if known[url]]
        if pages:
            self._limits.take(source, len(pages), now)
            if not await reader.has_room(shard):
                return _BUSY
            fields = {"site": ping.site, "key": ping.key, "location": ping.location, "urls": pages}
            await store.queue([received_command("indexnow", **fields)])
        return Answer(taken.status)


class ShardHubs:
    """The callbacks of the subscriptions of one shard."""

    def __init__(self, crawl: ClusterCrawl, shard: int) -> None:
        self._crawl, self._shard = crawl, shard
        self._store = crawl.reader.store(shard)

    async def _table(self, name: str) -> Subscriptions:
        """The subscription of a callback, as its shard has noted it; a table of its own."""
        url = callback_of_shard(self._crawl.settings.callback_url(), self._shard)
        table = Subscriptions(url, random.Random())
        notes: dict[str, Any] = await self._store.notes(SUBSCRIPTIONS + name)
        mine = {key: note for key, note in notes.items() if key == SUBSCRIPTIONS + name and note["public_url"] == url}
        table.restore(mine, self._crawl.clock.now())
        return table

    async def knows(self, name: str) -> bool:
        """Whether there is such a callback."""
        return (await self._table(name)).get(name) is not None

    async def verify(self, name: str, query: Mapping[str, str]) -> str | None:
        """Answer a verification or a denial: the text to send, None for 404."""
        table = await self._table(name)
        one = table.get(name)
        now = self._crawl.clock.now()
        answer = table.verify(name, query, now if one is None else max(now, one.asked_at))  # clocks differ
        if answer is not None:
            await self._store.queue([received_command("verification", name=name, query=dict(query))])
        return answer

    async def deliver(self, name: str, signature: str, headers: Mapping[str, str], body: bytes) -> bool | None:
        """Queue a delivery; False where there is no such callback, None where too much waits."""
        verdict = (await self._table(name)).judge(name, signature, body)
        if verdict is None:
            return False
        if verdict == TAKEN:
            if not await self._crawl.reader.has_room(self._shard):
                return None
            kept = {key: headers[key] for key in _HEADERS if key in headers}
            fields = {"name": name, "signature": signature, "headers": kept, "body": packed(body)}
            await self._store.queue([received_command("delivery", **fields)])
        return True
