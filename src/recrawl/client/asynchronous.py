"""AsyncClient: the same calls to be awaited, over connections of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Self

from recrawl.client import calls
from recrawl.client.async_transport import AsyncTransport
from recrawl.client.events import PAUSE, EventLines, PageEvent
from recrawl.client.messages import ListedPage, Outcome, PickedPage
from recrawl.client.tries import Service


class AsyncClient:
    """A client to be awaited; at most ``connections`` calls are made at a time. See `Client`."""

    def __init__(
        self, url: str, token: str, *, timeout: float = 30.0, patience: float = 60.0, connections: int = 4
    ) -> None:
        self._transport = AsyncTransport(Service(url, token, timeout, patience), connections)

    async def pick(
        self, n: int = 100, *, lease: float = 300.0, hosts: Sequence[str] | None = None, wait: float = 0.0
    ) -> list[PickedPage]:
        """See `Client.pick`."""
        return await self._transport.call(calls.pick(n, lease, hosts, wait))

    async def record(self, outcomes: Sequence[Outcome]) -> list[str]:
        """See `Client.record`."""
        return await self._transport.call(calls.record(outcomes))

    async def release(self, leases: Sequence[str]) -> list[str]:
        """See `Client.release`."""
        return await self._transport.call(calls.release(leases))

    async def add(self, pages: Sequence[str] | Mapping[str, float]) -> int:
        """See `Client.add`."""
        return await self._transport.call(calls.add(pages))

    async def update(self, url: str, *, importance: float | None = None, paused: bool | None = None) -> None:
        """See `Client.update`."""
        await self._transport.call(calls.update(url, importance, paused))

    async def remove(self, urls: Sequence[str]) -> int:
        """See `Client.remove`."""
        return await self._transport.call(calls.remove(urls))

    async def pages(self) -> AsyncIterator[ListedPage]:
        """See `Client.pages`."""
        found, cursor = await self._transport.call(calls.pages(None))
        while True:
            for page in found:
                yield page
            if cursor is None:
                return
            found, cursor = await self._transport.call(calls.pages(cursor))

    async def signal(self, urls: Sequence[str]) -> dict[str, Any]:
        """See `Client.signal`."""
        return await self._transport.call(calls.signal(urls))

    async def requested(self, urls: Sequence[str]) -> dict[str, Any]:
        """See `Client.requested`."""
        return await self._transport.call(calls.requested(urls))

    async def why(self, url: str) -> dict[str, Any]:
        """See `Client.why`."""
        return await self._transport.call(calls.why(url))

    async def forecast(self, budget: str | None = None) -> dict[str, Any]:
        """See `Client.forecast`."""
        return await self._transport.call(calls.forecast(budget))

    async def status(self) -> dict[str, Any]:
        """See `Client.status`."""
        return await self._transport.call(calls.status())

    async def budget(self) -> dict[str, Any]:
        """See `Client.budget`."""
        return await self._transport.call(calls.budget())

    async def set_budget(self, budget: str) -> dict[str, Any]:
        """See `Client.set_budget`."""
        return await self._transport.call(calls.set_budget(budget))

    async def hosts(self, limit: int = 100) -> list[dict[str, Any]]:
        """See `Client.hosts`."""
        return await self._transport.call(calls.hosts(limit))

    async def sources(self) -> dict[str, Any]:
        """See `Client.sources`."""
        return await self._transport.call(calls.sources())

    async def events(self, cursor: str | None = None) -> AsyncIterator[PageEvent]:
        """See `Client.events`."""
        lines = EventLines(cursor)
        while True:
            lines.begin()
            async with aclosing(self._transport.lines(calls.events(lines.cursor))) as stream:
                async for line in stream:
                    found = lines.take(line)
                    if found is not None:
                        yield found
            await asyncio.sleep(PAUSE)

    async def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
