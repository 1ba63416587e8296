"""Receivers of a crawl: WebSub and IndexNow, started and ended with it."""

from __future__ import annotations

import asyncio
import base64
import logging
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.run.receive.indexnow import IndexNow
from recrawl.crawl.run.receive.websub import Reach, WebSub
from recrawl.crawl.signals.indexnow.keys import PREFIX as KEYS
from recrawl.crawl.signals.indexnow.ping import Ping
from recrawl.crawl.signals.websub.subscriptions import PREFIX as SUBSCRIPTIONS
from recrawl.logs import event
from recrawl.store.protocol import Store

log = logging.getLogger(__name__)


class Receivers:
    """What a crawl receives; ``callback_url`` is where hubs reach it, empty: it subscribes to none."""

    def __init__(self, reach: Reach, callback_url: str) -> None:
        self._pages_of = reach.pages_of
        self.indexnow = IndexNow(reach.side, reach.inbox, reach.clock, reach.save_notes, self._are_pages)
        self.websub = WebSub(reach, callback_url) if callback_url and reach.side.can_post else None
        self._tasks: list[asyncio.Task[None]] = []

    def _are_pages(self, urls: Sequence[str]) -> list[bool]:
        return [page >= 0 for page in self._pages_of(urls)]

    async def load(self, store: Store) -> None:
        """Take up what earlier runs noted."""
        self.indexnow.restore(await store.notes(KEYS))
        if self.websub is not None:
            self.websub.restore(await store.notes(SUBSCRIPTIONS))

    def begin(self, watch: Callable[[asyncio.Task[Any]], None]) -> None:
        """A run begins."""
        self._tasks = [asyncio.create_task(self.indexnow.run())]
        if self.websub is not None:
            self._tasks.append(asyncio.create_task(self.websub.run()))
        for task in self._tasks:
            watch(task)

    async def close(self) -> None:
        """A run ends: nothing is asked any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    async def received(self, said: Mapping[str, Any]) -> None:
        """Take what another process has received and acknowledged; returns when it is stored."""
        kind = said["kind"]
        if kind == "indexnow":
            await self.indexnow.receive(
                Ping(said["site"], said["key"], said["location"], tuple(said["urls"])), queued=True
            )
        elif self.websub is None:
            event(log, logging.WARNING, "websub.dropped", kind=kind)
        elif kind == "verification":
            await self.websub.verify(said["name"], said["query"])
        elif kind == "delivery":
            await self.websub.deliver(said["name"], said["signature"], said["headers"], unpacked(said["body"]))
        elif kind == "hub":
            self.websub.ask_for(said)
        elif kind == "hub answer":
            await self.websub.answered(said)

    def page_fetched(self, url: str, fetched: Fetched) -> None:
        """A page was fetched."""
        if self.websub is not None:
            self.websub.page_fetched(url, fetched)

    def removed(self, urls: Iterable[str]) -> None:
        """Pages were removed."""
        if self.websub is not None:
            for url in urls:
                self.websub.removed(url)


def packed(body: bytes) -> str:
    """A body as a command holds it."""
    return base64.b64encode(zlib.compress(body, 1)).decode()


def unpacked(text: str) -> bytes:
    """The body of `packed`."""
    return zlib.decompress(base64.b64decode(text))
