"""Gate: what the owner of a shard may do, by its lease. Requests and writes of a shard pass it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from recrawl.cluster.ownership.leases import Held, LeaseLostError, check
from recrawl.crawl.http.fetched import Fetched, Fetcher, Poster, Sink, Streamer
from recrawl.store.postgres.address import Address

T = TypeVar("T")

MOST_WAITING = 10_000  # outcomes of a shard that wait for the database; beyond it no request starts
_LOOK = 0.05  # seconds between two looks at a lease that has run out


class Gate:
    """The lease of a shard. It may run out and be taken again while nobody else had the shard; then work goes on.

    ``lost`` is set once another owner has followed: nothing is asked and nothing written any more.
    """

    def __init__(self, held: Held, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.held, self.lost, self.rate = held, False, 0.0
        self.n_waiting: Callable[[], int] = lambda: 0  # outcomes that wait for the database
        self._now = monotonic
        self._limits: set[asyncio.Timeout] = set()  # of the requests that run

    @property
    def open(self) -> bool:
        """Whether a request may start."""
        return not self.lost and self.held.may_request(self._now()) and self.n_waiting() < MOST_WAITING

    async def wait(self) -> None:
        """Wait until a request may start; raise LeaseLostError if that will never be."""
        while not self.open:
            self.check_not_lost()
            await asyncio.sleep(_LOOK)

    def check_not_lost(self) -> None:
        """Raise LeaseLostError once another owner has followed."""
        if self.lost:
            raise LeaseLostError(f"shard {self.held.shard}: another worker has it")

    def renewed(self) -> None:
        """In the event loop: let the requests that run go on for as long as the lease now lasts."""
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(self.held.until)

    def end_requests(self) -> None:
        """End the requests that run: another owner may ask now."""
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(0.0)

    async def during(self, call: Callable[[], Awaitable[T]], ended: Callable[[], T]) -> T:
        """A request while the lease lasts: the next owner asks no host that this one still asks."""
        await self.wait()
        limit = asyncio.timeout_at(self.held.until)
        self._limits.add(limit)
        try:
            async with limit:
                return await call()
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            self._limits.discard(limit)
        return ended()


class LeaseOwner:
    """The owner of a shard's schema: every transaction that saves checks the lease (see `store.postgres.owner`)."""

    def __init__(self, gate: Gate, cluster: Address) -> None:
        self._gate, self._schema = gate, cluster.schema

    async def prepare(self, connection: Any) -> None:
        """Nothing: the connection is shared by shards."""

    async def begin(self, connection: Any) -> None:
        """Raise LeaseLostError unless the shard is still this owner's when the transaction ends."""
        await check(connection, self._gate.held, self._schema)

    async def announce(self, connection: Any, lines: tuple[str, ...]) -> None:
        """Nothing: a shard has no process of its own."""


class LeasedFetcher:
    """A fetcher that asks only while the lease lasts, and only hosts of the shard (``is_own`` gets a URL)."""

    def __init__(self, fetcher: Fetcher, gate: Gate, is_own: Callable[[str], bool], clock: Callable[[], float]) -> None:
        self._fetcher, self._gate, self._is_own, self._clock = fetcher, gate, is_own, clock

    async def fetch(
        self,
        url: str,
        *,
        etag: str | None = None,
        last_modified: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Fetched:
        """See `Fetcher.fetch`."""
        given = {"etag": etag, "last_modified": last_modified, "headers": headers}
        return await self._during(url, lambda: self._fetcher.fetch(url, **given))  # type: ignore[arg-type]

    async def _during(self, url: str, call: Callable[[], Awaitable[Fetched]]) -> Fetched:
        if not self._is_own(url):
            return self._failed(url, "redirects")
        return await self._gate.during(call, lambda: self._failed(url, "reset"))

    def _failed(self, url: str, failure: str) -> Fetched:
        return Fetched(url, url, 0, self._clock(), 0.0, failure=failure)

    async def close(self) -> None:
        """Nothing: the fetcher is shared by shards."""


class LeasedStreamer(LeasedFetcher):
    """The same of a fetcher that can pass bodies on while they are read."""

    async def stream(
        self, url: str, sink: Sink, *, etag: str | None = None, last_modified: str | None = None
    ) -> Fetched:
        """See `Streamer.stream`."""
        fetcher = self._fetcher
        assert isinstance(fetcher, Streamer)
        return await self._during(url, lambda: fetcher.stream(url, sink, etag=etag, last_modified=last_modified))


class LeasedPoster(LeasedStreamer):
    """The same of a fetcher that can also send forms."""

    async def post(self, url: str, form: Mapping[str, str]) -> Fetched:
        """See `Poster.post`."""
        fetcher = self._fetcher
        assert isinstance(fetcher, Poster)
        return await self._during(url, lambda: fetcher.post(url, form))


def leased(fetcher: Fetcher, gate: Gate, is_own: Callable[[str], bool], clock: Callable[[], float]) -> LeasedFetcher:
    """A fetcher that asks only while the lease lasts."""
    kind = LeasedStreamer if isinstance(fetcher, Streamer) else LeasedFetcher
    if isinstance(fetcher, Streamer) and isinstance(fetcher, Poster):
        kind = LeasedPoster
    return kind(fetcher, gate, is_own, clock)
