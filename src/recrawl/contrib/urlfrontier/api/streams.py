"""Streams: what all streams have put meanwhile goes into one transaction, and no more is read than a window allows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from recrawl.contrib.urlfrontier.api.wire import FAIL, AckMessage, BatchAck
from recrawl.contrib.urlfrontier.batches import read_batches
from recrawl.contrib.urlfrontier.items import read_item


class Kind(NamedTuple):
    """What streams of a kind carry.

    ``window`` messages of a stream may wait for their acknowledgements, and ``together`` puts are enough for a
    transaction; fewer are written after ``lull`` seconds without a further one. ``take_in`` makes an item of a message,
    which is ``size`` puts; ``read`` gives all puts of items, and ``acknowledge`` the messages for their states.
    """

    window: int
    together: int
    lull: float
    take_in: Callable[[Any], Any]
    size: Callable[[Any], int]
    read: Callable[[list[Any]], Any]
    acknowledge: Callable[[list[Any], Sequence[int]], list[Any]]


def _item_acks(items: list[Any], states: Sequence[int]) -> list[Any]:
    return [AckMessage(ID=name, status=state) for (name, _), state in zip(items, states, strict=True)]


def _batch_acks(batches: list[Any], states: Sequence[int]) -> list[Any]:
    acks, first = [], 0
    for batch in batches:
        last = first + len(batch.items)
        acks.append(BatchAck(ID=batch.ID, statuses=states[first:last]))
        first = last
    return acks


ITEMS = Kind(1024, 256, 0.0005, read_item, lambda item: 1, lambda items: [put for _, put in items], _item_acks)
BATCHES = Kind(16, 4096, 0.0, lambda batch: batch, lambda batch: len(batch.items), read_batches, _batch_acks)


class Batcher:
    """Writes what all streams of a kind take in by ``put``; what comes while others are written is the next batch."""

    def __init__(self, kind: Kind, put: Callable[[Any], Awaitable[list[int]]]) -> None:
        self.kind, self._put = kind, put
        self._streams: dict[Stream, None] = {}
        self._n = 0
        self._writing: asyncio.Task[None] | None = None

    def add(self, stream: Stream, item: Any) -> None:
        """A stream has an item more."""
        self._streams[stream] = None
        self._n += self.kind.size(item)
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        try:
            while self._streams:
                await self._gather()
                streams, self._streams, self._n = self._streams, {}, 0
                taken = [(stream, stream.take()) for stream in streams]
                sizes = [sum(map(self.kind.size, items)) for _, items in taken]
                states = [FAIL] * sum(sizes)
                try:
                    states = await self._put(self.kind.read([item for _, items in taken for item in items]))
                finally:
                    first = 0
                    for (stream, items), n in zip(taken, sizes, strict=True):
                        stream.answer(self.kind.acknowledge(items, states[first : first + n]))
                        first += n
        finally:
            self._writing = None

    async def _gather(self) -> None:
        """Let puts come together while more of them come after each short while."""
        seen = 0
        while seen < self._n < self.kind.together:
            seen = self._n
            await asyncio.sleep(self.kind.lull)

    async def close(self) -> None:
        """Return when all is written."""
        if self._writing is not None:
            await asyncio.wait([self._writing])


class Stream:
    """One stream of messages and their acknowledgements, in order."""

    def __init__(self, batcher: Batcher, context: Any) -> None:
        self._batcher, self._context = batcher, context
        self._items: list[Any] = []  # that wait to be written
        self._acks: list[Any] = []
        self._open = 0  # messages that were read and are not acknowledged
        self._ended = False
        self._news, self._room = asyncio.Event(), asyncio.Event()

    def take(self) -> list[Any]:
        """The items that came since the last time."""
        taken, self._items = self._items, []
        return taken

    def answer(self, acks: list[Any]) -> None:
        """The first items that were taken are written."""
        self._acks += acks
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
        kind = self._batcher.kind
        try:
            async for message in messages:
                self._open += 1
                self._items.append(kind.take_in(message))
                self._batcher.add(self, self._items[-1])
                while self._open >= kind.window:
                    self._room.clear()
                    await self._room.wait()
        finally:
            self._ended = True
            self._news.set()
