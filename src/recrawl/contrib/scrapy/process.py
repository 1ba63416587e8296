"""ProcessSource: the desk of a database in a process of its own, so that Scrapy's reactor does not wait for it."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any

from recrawl import errors
from recrawl.contrib.scrapy.messages import BUFFER, cells, packed, read_message
from recrawl.crawl.config.settings import Settings
from recrawl.desk import Picked, Report
from recrawl.errors import RecrawlError

_MODULE = "recrawl.contrib.scrapy.desk_process"


class ProcessSource:
    """Calls of `DatabaseSource` in another process, which ends with this one.

    Choosing pages, comparing them and writing take a core of their own; Ctrl-C does not reach the process.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process, self._reader, self._writer = process, reader, writer
        self.n_pages: int | None = None
        self._numbers, self._calls = count(1), dict[int, asyncio.Future[Any]]()
        self._reading = asyncio.ensure_future(self._read())

    @classmethod
    async def open(cls, settings: Settings) -> ProcessSource:
        """Start the process and open the database, which is made if there is none."""
        mine, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
            )
        source = cls(process, *await asyncio.open_unix_connection(sock=mine, limit=BUFFER))
        _, opened = source._expected()
        source._writer.write(packed(settings))
        try:
            source.n_pages = await opened
        except asyncio.CancelledError:  # it compiles or waits for the database: nothing is lost
            process.kill()
            await source._end()
            raise
        except BaseException:
            await source._end()
            raise
        return source

    async def pick(self, n: int, lease: float) -> list[Picked]:
        """At most n pages."""
        return [Picked(*one) for one in await self._call("pick", n, lease)]

    async def record(self, reports: Sequence[Report]) -> list[str]:
        """Take in outcomes."""
        return list(await self._call("record", [cells(report) for report in reports]))

    async def release(self, leases: Sequence[str]) -> list[str]:
        """Give leases back."""
        return list(await self._call("release", list(leases)))

    async def add(self, urls: Sequence[str]) -> int:
        """Add pages."""
        return int(await self._call("add", list(urls)))

    async def holds(self, lease: str) -> bool:
        """Whether a lease is held; what an earlier run has recorded or lost is not."""
        return bool(await self._call("holds", lease))

    async def close(self) -> None:
        """Write everything and end the process."""
        try:
            await self._call("close")
        finally:
            await self._end()

    async def _end(self) -> None:
        self._writer.close()
        await asyncio.wait([self._reading])
        await asyncio.get_running_loop().run_in_executor(None, self._process.wait)

    async def _call(self, name: str, *args: object) -> Any:
        if self._reading.done():
            raise self._gone()
        number, answer = self._expected()
        self._writer.write(packed((number, name, args)))
        with suppress(OSError):  # the process is gone: so says the answer
            await self._writer.drain()
        return await answer

    def _expected(self) -> tuple[int, asyncio.Future[Any]]:
        """The number of the next call, and what it will give; the first is that of the opening."""
        number, answer = next(self._numbers), asyncio.get_running_loop().create_future()
        self._calls[number] = answer
        return number, answer

    async def _read(self) -> None:
        """Pass answers to those who wait, and log records to the log, until the process is gone."""
        try:
            while True:
                number, found, problem = await read_message(self._reader)
                if number == 0:
                    logging.getLogger(found[0]).log(found[1], "recrawl: %s", found[2])
                    continue
                answer = self._calls.pop(number)
                if answer.cancelled():
                    continue
                if problem is None:
                    answer.set_result(found)
                else:
                    answer.set_exception(_error(*problem))
        except (asyncio.IncompleteReadError, OSError):
            for answer in self._calls.values():
                if not answer.done():
                    answer.set_exception(self._gone())

    def _gone(self) -> RecrawlError:
        return RecrawlError("the process of the desk was ended from outside, perhaps for lack of memory")


def _error(name: str, message: str) -> RecrawlError:
    kind = getattr(errors, name, RecrawlError)
    found: RecrawlError = kind(message)
    return found
