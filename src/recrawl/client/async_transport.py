"""Requests over some connections of an event loop, kept open; each is sent again when its answer does not come."""

from __future__ import annotations

import asyncio
import http.client
import io
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, TypeVar

from recrawl.client.calls import Ask
from recrawl.client.tries import Answer, Service, Tries, result_of, seconds_asked

T = TypeVar("T")

_LOST = (OSError, EOFError, ValueError, asyncio.LimitOverrunError, http.client.HTTPException)
_MOST_HEAD = 64 << 10  # bytes of the status line and headers of an answer


class _Connection:
    """A connection; an exchange that does not end well closes it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def exchange(self, service: Service, ask: Ask[Any]) -> tuple[Answer, bool]:
        """The answer to a request, and whether the connection can be used again."""
        status, headers, stays = await self._ask(service, ask)
        text = await self._body(headers)
        return Answer(status, seconds_asked(headers.get("retry-after", "")), text), stays

    async def begin(self, service: Service, ask: Ask[Any]) -> Answer | None:
        """Begin a stream, which `lines` reads; or the answer of a service that does not."""
        status, headers, _ = await self._ask(service, ask)
        if status == 200 and _is_chunked(headers):
            return None
        return Answer(status, seconds_asked(headers.get("retry-after", "")), await self._body(headers))

    async def lines(self) -> AsyncIterator[bytes]:
        """The lines of a stream that has begun."""
        rest = b""
        async for chunk in self._chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line

    async def _ask(self, service: Service, ask: Ask[Any]) -> tuple[int, http.client.HTTPMessage, bool]:
        data = service.data(ask)
        lines = [f"{ask.method} {service.target(ask)} HTTP/1.1", f"Host: {service.netloc.rpartition('@')[2]}"]
        lines += [f"{name}: {value}" for name, value in service.headers.items()]
        lines += [] if data is None else [f"Content-Length: {len(data)}"]
        self._writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + (data or b""))
        await self._writer.drain()
        return _head(await self._reader.readuntil(b"\r\n\r\n"))

    async def _body(self, headers: http.client.HTTPMessage) -> bytes:
        if _is_chunked(headers):
            return b"".join([chunk async for chunk in self._chunks()])
        if "content-length" not in headers:
            raise http.client.HTTPException("an answer without a length")
        return await self._reader.readexactly(int(headers["content-length"]))

    async def _chunks(self) -> AsyncIterator[bytes]:
        while size := int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        while await self._reader.readuntil(b"\r\n") != b"\r\n":
            pass

    @property
    def is_closed(self) -> bool:
        """Whether the service has closed it."""
        return self._reader.at_eof() or self._writer.is_closing()

    def close(self) -> None:
        """Close it."""
        self._writer.close()


def _is_chunked(headers: http.client.HTTPMessage) -> bool:
    return bool(headers.get("transfer-encoding", "").lower() == "chunked")


def _head(text: bytes) -> tuple[int, http.client.HTTPMessage, bool]:
    """Status and headers of an answer, and whether the connection stays open after it."""
    first, _, rest = text.partition(b"\r\n")
    words = first.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise http.client.BadStatusLine(first[:100].decode("latin-1"))
    headers = http.client.parse_headers(io.BytesIO(rest))
    stays = words[0] != b"HTTP/1.0" and headers.get("connection", "").lower() != "close"
    return int(words[1]), headers, stays


class AsyncTransport:
    """Sends JSON to a service and gets JSON, over at most so many connections at a time."""

    def __init__(self, service: Service, connections: int) -> None:
        self._service = service
        self._free: list[_Connection] = []
        self._slots = asyncio.Semaphore(connections)

    async def call(self, ask: Ask[T]) -> T:
        """The answer to a request, or ServiceError."""
        tries, found = Tries(self._service, ask), await self._try(ask)
        while (wait := tries.wait_after(found)) is not None:
            await asyncio.sleep(wait)
            found = await self._try(ask)
        assert isinstance(found, Answer)
        return result_of(self._service, ask, found)

    async def _try(self, ask: Ask[Any]) -> Answer | Exception:
        """An answer, or why none came."""
        try:
            async with self._slots, asyncio.timeout(self._service.timeout):
                return await self._send(ask)
        except _LOST as problem:
            return problem

    async def _send(self, ask: Ask[Any]) -> Answer:
        self._free = [one for one in self._free if not one.is_closed]
        connection = self._free.pop() if self._free else await self._connect()
        stays = False
        try:
            answer, stays = await connection.exchange(self._service, ask)
            return answer
        finally:
            if stays:
                self._free.append(connection)
            else:
                connection.close()

    async def lines(self, ask: Ask[Any]) -> AsyncGenerator[bytes]:
        """The lines of an answer without end, over a connection of its own, until that is cut off."""
        tries, found = Tries(self._service, ask), await self._begin(ask)
        while not isinstance(found, _Connection):
            await asyncio.sleep(tries.wait_after(found) or 0.0)
            found = await self._begin(ask)
        try:
            stream = found.lines()
            while True:
                async with asyncio.timeout(self._service.timeout):
                    line = await anext(stream)
                yield line
        except (*_LOST, StopAsyncIteration):
            return
        finally:
            found.close()

    async def _begin(self, ask: Ask[Any]) -> _Connection | Answer | Exception:
        """The connection of a stream that has begun, or why it has not."""
        try:
            async with asyncio.timeout(self._service.timeout):
                connection = await self._connect()
                try:
                    answer = await connection.begin(self._service, ask)
                except BaseException:
                    connection.close()
                    raise
        except _LOST as problem:
            return problem
        if answer is None:
            return connection
        connection.close()
        return answer

    async def _connect(self) -> _Connection:
        service = self._service
        secure = True if service.secure else None
        return _Connection(*await asyncio.open_connection(service.host, service.port, ssl=secure, limit=_MOST_HEAD))

    def close(self) -> None:
        """Close the connections."""
        while self._free:
            self._free.pop().close()
