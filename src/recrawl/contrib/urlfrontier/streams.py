"""Streams: what all streams have put meanwhile goes into one transaction, and no more is read than a window allows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from recrawl.contrib.urlfrontier.items import Put, read_info, read_item
from recrawl.contrib.urlfrontier.wire import FAIL, AckMessage, BatchAck

WINDOW = 1024  # items of a stream that are not acknowledged: no more are read
_BATCHES = 16  # the same of batches
_TOGETHER = 256  # puts that are enough for a transaction
Puts = list[Put | None]


class Source(Protocol):
    """A stream whose puts wait to be written."""

    def take(self) -> tuple[Any, Puts]:
        """The puts that came since the last time, and what `answer` needs to know of them."""

    def answer(self, taken: Any, states: Sequence[int]) -> None:
        """These puts are written; a state for each."""


class Batcher:
    """Writes the puts of all streams by ``put``; those that come while others are written form the next batch."""

    def __init__(self, put: Callable[[Puts], Awaitable[list[int]]]) -> None:
        self._put = put
        self._sources: dict[Source, None] = {}
        self._n = 0
        self._writing: asyncio.Task[None] | None = None

    def add(self, source: Source, n: int = 1) -> None:
        """A stream has n puts more."""
        self._sources[source] = None
        self._n += n
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        try:
            while self._sources:
                await self._gather()
                sources, self._sources, self._n = self._sources, {}, 0
                taken = [(source, *source.take()) for source in sources]
                puts = [put for _, _, some in taken for put in some]
                states = [FAIL] * len(puts)
                try:
                    states = await self._put(puts)
                finally:
                    first = 0
                    for source, names, some in taken:
                        source.answer(names, states[first : first + len(some)])
                        first += len(some)
        finally:
            self._writing = None

    async def _gather(self) -> None:
        """Let puts come together while more of them come at every turn of the loop."""
        seen = -1
        while seen < self._n < _TOGETHER:
            seen = self._n
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Return when all is written."""
        if self._writing is not None:
            await asyncio.wait([self._writing])


class _Stream:
    """One stream of messages and their acknowledgements, in order. ``window``: messages read and not acknowledged."""

    window = WINDOW

    def __init__(self, batcher: Batcher, context: Any) -> None:
        self._batcher, self._context = batcher, context
        self._names: list[Any] = []
        self._puts: Puts = []
        self._acks: list[Any] = []
        self._open = 0  # messages that were read and are not acknowledged
        self._ended = False
        self._news, self._room = asyncio.Event(), asyncio.Event()

    def take(self) -> tuple[list[Any], Puts]:
        """The puts that came since the last time, and the names of their acknowledgements."""
        taken, self._names, self._puts = (self._names, self._puts), [], []
        return taken

    def answer(self, taken: list[Any], states: Sequence[int]) -> None:
        """These puts are written: acknowledge them."""
        self._acks += self._acknowledge(taken, states)
        self._news.set()

    async def run(self, messages: Any) -> None:
        """Read messages and acknowledge them until the client ends the stream."""
        reading = asyncio.create_task(self._read(messages))
        write = self._context.write
        try:
            while self._open or not self._ended or self._acks:
                self._news.clear()
                if not self._acks:
                    await self._news.wait()
                acks, self._acks = self._acks, []
                for ack in acks:
                    await write(ack)
                    self._open -= 1
                self._room.set()
            await reading
        finally:
            reading.cancel()

    async def _read(self, messages: Any) -> None:
        try:
            async for message in messages:
                self._open += 1
                self._batcher.add(self, self._take_in(message))
                while self._open >= self.window:
                    self._room.clear()
                    await self._room.wait()
        finally:
            self._ended = True
            self._news.set()

    def _take_in(self, message: Any) -> int:
        """Read a message; how many puts it is."""
        raise NotImplementedError

    def _acknowledge(self, taken: list[Any], states: Sequence[int]) -> list[Any]:
        """The acknowledgements of puts."""
        raise NotImplementedError


class PutStream(_Stream):
    """A stream of items, each acknowledged."""

    def _take_in(self, message: Any) -> int:
        name, put = read_item(message)
        self._names.append(name)
        self._puts.append(put)
        return 1

    def _acknowledge(self, taken: list[Any], states: Sequence[int]) -> list[Any]:
        return [AckMessage(ID=name, status=state) for name, state in zip(taken, states, strict=True)]


class BatchStream(_Stream):
    """A stream of batches, each acknowledged with a state for each URL."""

    window = _BATCHES

    def _take_in(self, message: Any) -> int:
        puts = [read_info(info, None) for info in message.items]
        self._names.append((message.ID, len(puts)))
        self._puts += puts
        return len(puts)

    def _acknowledge(self, taken: list[Any], states: Sequence[int]) -> list[Any]:
        acks, first = [], 0
        for name, n in taken:
            acks.append(BatchAck(ID=name, statuses=states[first : first + n]))
            first += n
        return acks
