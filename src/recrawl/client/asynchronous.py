"""AsyncClient: the same calls to be awaited; each runs in a thread with a connection of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import local
from typing import Any, Self, TypeVar

from recrawl.client.messages import ListedPage, Outcome, PickedPage
from recrawl.client.plain import Client

T = TypeVar("T")


class AsyncClient:
    """A client to be awaited; at most ``connections`` calls are made at a time. See `Client`."""

    def __init__(
        self, url: str, token: str, *, timeout: float = 30.0, patience: float = 60.0, connections: int = 4
    ) -> None:
        self._made: list[Client] = []
        self._mine = local()
        self._threads = ThreadPoolExecutor(connections, "recrawl-client")
        self._new = partial(Client, url, token, timeout=timeout, patience=patience)
        self._new().close()  # a URL that cannot be used is refused at once

    async def pick(
        self, n: int = 100, *, lease: float = 300.0, hosts: Sequence[str] | None = None, wait: float = 0.0
    ) -> list[PickedPage]:
        """See `Client.pick`."""
        return await self._run(lambda client: client.pick(n, lease=lease, hosts=hosts, wait=wait))

    async def record(self, outcomes: Sequence[Outcome]) -> list[str]:
        """See `Client.record`."""
        return await self._run(lambda client: client.record(outcomes))

    async def release(self, leases: Sequence[str]) -> list[str]:
        """See `Client.release`."""
        return await self._run(lambda client: client.release(leases))

    async def add(self, pages: Sequence[str] | Mapping[str, float]) -> int:
        """See `Client.add`."""
        return await self._run(lambda client: client.add(pages))

    async def update(self, url: str, *, importance: float | None = None, paused: bool | None = None) -> None:
        """See `Client.update`."""
        await self._run(lambda client: client.update(url, importance=importance, paused=paused))

    async def remove(self, urls: Sequence[str]) -> int:
        """See `Client.remove`."""
        return await self._run(lambda client: client.remove(urls))

    async def pages(self) -> AsyncIterator[ListedPage]:
        """See `Client.pages`."""
        for page in await self._run(lambda client: list(client.pages())):
            yield page

    async def signal(self, urls: Sequence[str]) -> dict[str, Any]:
        """See `Client.signal`."""
        return await self._run(lambda client: client.signal(urls))

    async def requested(self, urls: Sequence[str]) -> dict[str, Any]:
        """See `Client.requested`."""
        return await self._run(lambda client: client.requested(urls))

    async def why(self, url: str) -> dict[str, Any]:
        """See `Client.why`."""
        return await self._run(lambda client: client.why(url))

    async def forecast(self, budget: str | None = None) -> dict[str, Any]:
        """See `Client.forecast`."""
        return await self._run(lambda client: client.forecast(budget))

    async def status(self) -> dict[str, Any]:
        """See `Client.status`."""
        return await self._run(lambda client: client.status())

    async def close(self) -> None:
        """Close the connections, after the calls that run."""
        await asyncio.to_thread(self._threads.shutdown)
        for client in self._made:
            client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, call: Callable[[Client], T]) -> T:
        def work() -> T:
            if not hasattr(self._mine, "client"):
                self._mine.client = self._new()
                self._made.append(self._mine.client)
            return call(self._mine.client)

        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
