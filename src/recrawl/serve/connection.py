"""Connections: how many there are, and how long one may say nothing.

The crawl is in the same process: connections that nobody closes would take the file descriptors of its fetches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import thread_time
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from recrawl.serve.receive.refusal import busy_answer, is_received, turned_away
from recrawl.serve.receive.share import PARSING, LoopShare

MOST = 1000  # at a time; further ones are closed at once
SILENCE = 30.0  # seconds without a request after which a connection is closed


class _Corked:
    """A transport that sends what is written in one turn of the event loop at once: head and body of an answer."""

    def __init__(self, transport: asyncio.Transport, flushed: Callable[[float], None]) -> None:
        self._transport, self._parts, self._flushed = transport, list[bytes](), flushed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write soon."""
        if not self._parts:
            asyncio.get_running_loop().call_soon(self._flush)
        self._parts.append(data)

    def write_whole(self, data: bytes) -> None:
        """Write an answer at once, after those before it."""
        self._flush()
        if not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """Close after everything is written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            began = thread_time()
            self._transport.write(b"".join(parts))
            self._flushed(thread_time() - began)


class Connection(H11Protocol):
    """A connection that is closed when no request comes, or is not complete, for a while."""

    def __init__(self, *args: Any, share: LoopShare | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._share = share
        self._skipped = 0  # bytes to come of a body whose request was turned away

    _timer: asyncio.TimerHandle | None = None
    _seen: Any = None  # the request that was served last when the timer was set

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A connection begins."""
        super().connection_made(transport)
        if len(self.connections) > MOST:
            transport.abort()
            return
        self._corked = _Corked(transport, self._flushed)
        self.transport = cast(asyncio.Transport, self._corked)
        self._set_timer()

    def data_received(self, data: bytes) -> None:
        """Parse what has come; requests with signals that may not even wait are turned away."""
        began = thread_time()
        rest = self._without_refused(data) if self._skipped or self._refuses else data
        if self._share is not None and len(rest) < len(data):
            self._share.charge(thread_time() - began)
        if rest:
            super().data_received(rest)
            scope = cast(dict[str, Any] | None, self.scope)
            if scope is not None:
                scope[PARSING] = scope.get(PARSING, 0.0) + thread_time() - began

    @property
    def _refuses(self) -> bool:
        """Whether a request that begins now is turned away if it brings signals."""
        if self._share is None or not self._share.is_full:
            return False
        return self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]

    def _without_refused(self, data: bytes) -> bytes:
        """What has come, without requests that are turned away."""
        while data:
            if self._skipped:
                n = min(self._skipped, len(data))
                self._skipped -= n
            elif self._refuses and (turned := turned_away(data)) is not None:
                assert self._share is not None
                self._unset_keepalive_if_required()
                self._corked.write_whole(busy_answer(self._share.turn_away()))
                self.timeout_keep_alive_task = self.loop.call_later(
                    self.timeout_keep_alive, self.timeout_keep_alive_handler
                )
                n, self._skipped = turned
            else:
                break
            data = data[n:]
        return data

    def _flushed(self, seconds: float) -> None:
        """An answer was sent."""
        if self._share is not None and self.scope is not None and is_received(self.scope["method"], self.scope["path"]):
            self._share.charge(seconds)

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
