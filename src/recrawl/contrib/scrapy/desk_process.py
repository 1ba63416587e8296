"""The process of the desk: ``python -m recrawl.contrib.scrapy.desk_process FD`` opens a database and answers calls.

It is started by `recrawl.contrib.scrapy.process` and ends when that process closes it or is gone, however it ended.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any

from recrawl._compile import compiling
from recrawl.contrib.scrapy.database import DatabaseSource
from recrawl.contrib.scrapy.messages import BUFFER, cells, packed, read_message
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.assemble import check_settings
from recrawl.desk import Report
from recrawl.desk.rehearsal import rehearse
from recrawl.errors import ParameterError, RecrawlError, StoreInUseError
from recrawl.logs import event, text_of

log = logging.getLogger("recrawl.contrib.scrapy")  # this module is __main__
_PATIENCE = 10.0  # seconds until a database that another process has is an error: one whose Scrapy is gone ends soon
_LOOK = 0.1  # seconds between two looks
_GONE = (asyncio.IncompleteReadError, OSError)


class Answers:
    """Answers the calls that arrive on a connection; each is a task, so that a pick that waits delays no record."""

    def __init__(self, source: DatabaseSource, send: Callable[[object], None]) -> None:
        self._source, self._send = source, send
        self._tasks: dict[asyncio.Task[None], str] = {}

    def call(self, number: int, name: str, args: tuple[Any, ...]) -> None:
        """Begin a call."""
        task = asyncio.create_task(self._answer(number, name, args))
        self._tasks[task] = name
        task.add_done_callback(self._tasks.pop)

    async def _answer(self, number: int, name: str, args: tuple[Any, ...]) -> None:
        try:
            self._send((number, await self._result(name, args), None))
        except Exception as problem:
            self._send((number, None, named(problem)))

    async def _result(self, name: str, args: tuple[Any, ...]) -> Any:
        if name == "record":
            return await self._source.record([Report(*one) for one in args[0]])
        if name == "pick":
            return [cells(one) for one in await self._source.pick(*args)]
        return await getattr(self._source, name)(*args)

    async def end(self) -> None:
        """The other process is gone: what it has handed in is written, what it asked for is dropped."""
        for task, name in self._tasks.items():
            if name == "pick":
                task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))


def named(problem: Exception) -> tuple[str, str]:
    """An exception as the name of its class among recrawl's errors, and its message."""
    if isinstance(problem, ParameterError):
        return ParameterError.__name__, str(problem)
    if isinstance(problem, RecrawlError):
        return type(problem).__name__, str(problem)
    traceback.print_exception(problem)
    return RecrawlError.__name__, f"{type(problem).__name__}: {problem}"


class _Forward(logging.Handler):
    """Sends log records to Scrapy's process."""

    def __init__(self, send: Callable[[object], None]) -> None:
        super().__init__(logging.INFO)
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        self._send((0, (record.name, record.levelno, text_of(record)), None))


async def _open(settings: Settings) -> DatabaseSource:
    """Open the database. The process of a Scrapy that was killed may have it for another moment.

    Kernels are loaded or compiled before, while the event loop passes on what is logged.
    """
    check_settings(settings)
    await rehearse()
    loop = asyncio.get_running_loop()
    until, waits = loop.time() + _PATIENCE, False
    while True:
        try:
            return await DatabaseSource.open(settings)
        except StoreInUseError as problem:
            if loop.time() >= until:
                raise
            if not waits:
                event(log, logging.INFO, "scrapy.waiting", reason=str(problem), seconds=_PATIENCE)
                waits = True
            await asyncio.sleep(_LOOK)


async def _close(source: DatabaseSource) -> tuple[str, str] | None:
    """Close the database; what went wrong."""
    try:
        await source.close()
    except RecrawlError as problem:
        return named(problem)
    return None


async def serve(connection: socket.socket) -> None:
    """Answer calls until the connection ends or ``close`` was called."""
    reader, writer = await asyncio.open_unix_connection(sock=connection, limit=BUFFER)
    loop = asyncio.get_running_loop()

    def send(value: object) -> None:
        loop.call_soon_threadsafe(writer.write, packed(value))

    logger = logging.getLogger("recrawl")
    logger.setLevel(logging.INFO)
    logger.addHandler(_Forward(send))
    compiling.say_by(lambda progress: log.info("%s", progress))
    compiling.announce()
    try:
        source = await _open(await read_message(reader))
    except RecrawlError as problem:
        writer.write(packed((1, None, named(problem))))
        await writer.drain()
        return
    send((1, source.n_pages, None))
    answers = Answers(source, send)
    try:
        while (message := await read_message(reader))[1] != "close":
            answers.call(*message)
        send((message[0], None, await _close(source)))
        await asyncio.sleep(0)
        await writer.drain()
    except _GONE:
        await answers.end()
        await _close(source)
    finally:
        writer.close()


if __name__ == "__main__":
    asyncio.run(serve(socket.socket(fileno=int(sys.argv[1]))))
