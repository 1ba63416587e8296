"""Session: a thread with an event loop and one connection; each piece of work is one transaction.

The loop of a store is not the loop of its callers: a store is used by several loops, and by programs without one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import asyncpg

from recrawl._system.worker import Worker
from recrawl.errors import StoreError
from recrawl.store.postgres.address import Address
from recrawl.store.postgres.failures import _WAIT, LOST, PROBLEMS, failure
from recrawl.store.postgres.owner import Ownership

T = TypeVar("T")
Connection = Any  # asyncpg has no types
Work = Callable[[Connection], Awaitable[T]]


class Session:
    """Runs work in order. A connection that was lost is made again before the next work, by ``prepare`` as at first.

    ``reading``: transactions see the database at one moment and write nothing. ``patience`` is for how many seconds a
    statement may take; None: for as long as it takes.
    """

    def __init__(
        self, address: Address, name: str, prepare: Work[None], *, reading: bool, patience: float | None = None
    ) -> None:
        self._address, self._prepare, self._reading, self._patience = address, prepare, reading, patience
        self._worker = Worker(name)
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._connection: Connection = None
        self._closed = False
        try:
            self._worker.wait(lambda: self._run(self._opened()))
        except BaseException:
            self.end()
            raise

    async def call(self, work: Work[T]) -> T:
        """Run work on the connection, in a transaction: committed at its end, undone where anything raises."""
        self._check_open()
        return await self._worker.call(lambda: self._run(self._transaction(work)))

    def wait(self, work: Work[T]) -> T:
        """The same, for callers that do not await."""
        self._check_open()
        return self._worker.wait(lambda: self._run(self._transaction(work)))

    def end(self) -> None:
        """The same as close, for callers that do not await."""
        self._closed = True
        self._worker.wait(self._end)
        self._worker.close()

    async def close(self) -> None:
        """End the connection after all calls made before; further calls are refused."""
        if not self._closed:
            self._closed = True
            try:
                await self._worker.call(self._end)
            finally:
                self._worker.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self._address.name}: is closed")

    # --- in the thread -----------------------------------------------------------------------------------------------

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return self._runner.run(work)
        except PROBLEMS as problem:
            raise failure(self._address.name, problem) from None

    async def _transaction(self, work: Work[T]) -> T:
        transaction = await self._begun()
        try:
            found = await work(self._connection)
        except BaseException:
            await self._undo(transaction)
            raise
        try:
            await transaction.commit()
        except TimeoutError:
            self._connection.terminate()
            raise
        return found

    async def _undo(self, transaction: Any) -> None:
        """Undo a transaction; a connection on which this fails is of no more use: the server undoes it then."""
        if self._connection.is_closed():
            return
        try:
            await transaction.rollback()
        except PROBLEMS:
            self._connection.terminate()

    async def _begun(self) -> Any:
        """A transaction; a connection that was lost since the last one is made again, once."""
        for last in (False, True):
            connection = await self._opened()
            transaction = (
                connection.transaction(isolation="repeatable_read", readonly=True)
                if self._reading
                else connection.transaction()
            )
            try:
                await transaction.start()
                return transaction
            except (*LOST, TimeoutError):
                connection.terminate()
                if last:
                    raise
        raise AssertionError

    async def _opened(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            settings = {"search_path": self._address.schema, "application_name": "recrawl", "jit": "off"}
            wait = _WAIT if self._patience is None else min(_WAIT, self._patience)
            self._connection = await asyncpg.connect(
                self._address.dsn, timeout=wait, server_settings=settings, command_timeout=self._patience
            )
            try:
                await self._prepare(self._connection)
            except BaseException:
                with suppress(*PROBLEMS):  # the server takes its time to notice that a connection has ended
                    await self._connection.execute("SELECT pg_advisory_unlock_all()")
                self._connection.terminate()
                raise
        return self._connection

    def _end(self) -> None:
        if self._connection is not None and not self._connection.is_closed():
            self._runner.run(self._closing())
        self._runner.close()

    async def _closing(self) -> None:
        try:
            await self._connection.close(timeout=_WAIT)
        except PROBLEMS:
            self._connection.terminate()


class Sessions(Protocol):
    """What a store needs of a session."""

    async def call(self, work: Work[T]) -> T:
        """Run work in a transaction."""

    def wait(self, work: Work[T]) -> T:
        """The same, for callers that do not await."""

    def end(self) -> None:
        """The same as close, for callers that do not await."""

    async def close(self) -> None:
        """Take no further calls."""


class Access(Protocol):
    """An owner and two sessions for one schema, given by those who share connections among schemas."""

    @property
    def owner(self) -> Ownership:
        """Who may write."""

    @property
    def writer(self) -> Sessions:
        """For transactions that write."""

    @property
    def reader(self) -> Sessions:
        """For transactions that read."""


class SchemaSession:
    """One schema's transactions on a session that other schemas use as well; closing it leaves the session open."""

    def __init__(self, session: Session, schema: str) -> None:
        self._session, self._schema = session, schema

    async def call(self, work: Work[T]) -> T:
        """Run work in a transaction of the schema."""
        return await self._session.call(lambda connection: self._within(connection, work))

    def wait(self, work: Work[T]) -> T:
        """The same, for callers that do not await."""
        return self._session.wait(lambda connection: self._within(connection, work))

    async def _within(self, connection: Connection, work: Work[T]) -> T:
        await connection.execute(f"SET LOCAL search_path = {self._schema}")
        return await work(connection)

    def end(self) -> None:
        """Nothing ends: the session is others' too."""

    async def close(self) -> None:
        """Nothing ends: the session is others' too."""
