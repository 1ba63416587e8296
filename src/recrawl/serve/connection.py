"""Connections: how many there are, and how long one may say nothing.

The crawl is in the same process: connections that nobody closes would take the file descriptors of its fetches.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 1000  # at a time; further ones are closed at once
SILENCE = 30.0  # seconds without a request after which a connection is closed


class _Corked:
    """A transport that sends what is written in one turn of the event loop at once: head and body of an answer."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self._parts = transport, list[bytes]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write soon."""
        if not self._parts:
            asyncio.get_running_loop().call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        """Close after everything is written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))


class Connection(H11Protocol):
    """A connection that is closed when no request comes, or is not complete, for a while."""

    _timer: asyncio.TimerHandle | None = None
    _seen: Any = None  # the request that was served last when the timer was set

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A connection begins."""
        super().connection_made(transport)
        if len(self.connections) > MOST:
            transport.abort()
            return
        self.transport = cast(asyncio.Transport, _Corked(transport))
        self._set_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """A connection ends."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _set_timer(self) -> None:
        self._seen = self.cycle
        self._timer = asyncio.get_running_loop().call_later(SILENCE, self._look)

    def _look(self) -> None:
        """Close the connection if nothing has happened, else look again later."""
        idle = self.cycle is None or self.cycle.response_complete
        if idle and self.cycle is self._seen:
            self.transport.close()
        else:
            self._set_timer()
