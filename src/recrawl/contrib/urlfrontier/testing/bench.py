"""Bench: a service under test, with short forms of its calls."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from recrawl.contrib.urlfrontier.api.client import FrontierClient
from recrawl.contrib.urlfrontier.api.wire import AnyCrawlID, URLItem

_LONGEST = 60.0  # seconds that a call may take


class Bench:
    """A service at ``host:port``; ``wait`` lets time pass, ``restart`` restarts it and gives its new address."""

    def __init__(
        self,
        address: str,
        *,
        managed: bool = False,
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.time,
        restart: Callable[[], Awaitable[str]] | None = None,
    ) -> None:
        self.client, self.managed = FrontierClient(address), managed
        self.wait, self.now, self._restart = wait, now, restart
        self._mark = secrets.token_hex(4)

    @property
    def restarts(self) -> bool:
        """Whether the service can be restarted."""
        return self._restart is not None

    async def restart(self) -> None:
        """Restart the service."""
        assert self._restart is not None, "the bench cannot restart its service"
        await self.client.close()
        self.client = FrontierClient(await self._restart())

    async def close(self) -> None:
        """Close the connection."""
        await self.client.close()

    def crawl(self, name: str) -> str:
        """A crawl ID that nobody else uses."""
        return f"check-{self._mark}-{name}"

    async def put(self, *items: Any) -> list[tuple[str, int]]:
        """Put items; ID and state of each acknowledgement, in the order of the items if IDs are unique."""
        found: dict[str, list[int]] = {}
        async for ack in self.client.PutURLs(iter(items), timeout=_LONGEST):
            found.setdefault(ack.ID, []).append(ack.status)
        return [(name, state) for name, states in found.items() for state in states]

    async def get(self, crawl: str | None, queues: int = 0, urls: int = 0, **fields: Any) -> list[Any]:
        """URLs to fetch; None: of any crawl."""
        named = {"anyCrawlID": AnyCrawlID()} if crawl is None else {"crawlID": crawl}
        asked = {"max_queues": queues, "max_urls_per_queue": urls, **named, **fields}
        return [info async for info in self.client.GetURLs(**asked)]

    async def listed(self, crawl: str, **fields: Any) -> list[Any]:
        """URLs of a crawl as they are stored."""
        return [item async for item in self.client.ListURLs(crawlID=crawl, **fields)]


def discovered(url: str, crawl: str, key: str = "", *, id: str = "", metadata: Any = None) -> Any:
    """An item of a URL that was discovered."""
    item = URLItem(ID=id)
    _fill(item.discovered.info, url, crawl, key, metadata)
    return item


def known(url: str, crawl: str, date: float, key: str = "", *, metadata: Any = None) -> Any:
    """An item of a URL that was fetched; ``date`` is when it may be fetched again."""
    item = URLItem()
    _fill(item.known.info, url, crawl, key, metadata)
    item.known.refetchable_from_date = int(date)
    return item


def _fill(info: Any, url: str, crawl: str, key: str, metadata: dict[str, Sequence[str]] | None) -> None:
    info.url, info.crawlID, info.key = url, crawl, key
    for name, values in (metadata or {}).items():
        info.metadata[name].values.extend(values)
