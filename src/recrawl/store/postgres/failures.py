"""What PostgreSQL and the way to it can answer, as one line each; no line holds a password."""

from __future__ import annotations

import asyncpg

from recrawl.errors import RecrawlError, StoreError, StoreUnreachableError

LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # of a connection that the server ended while it was idle
    asyncpg.AdminShutdownError,
    OSError,
)
PROBLEMS = (asyncpg.PostgresError, *LOST, TimeoutError)
_AWAY = (
    *LOST,
    TimeoutError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.QueryCanceledError,
)
_WAIT = 10.0  # seconds for a connection


def failure(name: str, problem: BaseException) -> RecrawlError:
    """The error for what a call of asyncpg raised; ``name`` is the address as it is printed."""
    if isinstance(problem, RecrawlError):
        return problem
    kind = StoreUnreachableError if isinstance(problem, _AWAY) else StoreError
    return kind(f"{name}: {_words(problem)}")


def _words(problem: BaseException) -> str:
    if isinstance(problem, asyncpg.InvalidPasswordError | asyncpg.InvalidAuthorizationSpecificationError):
        return "the server refuses the user or its password"
    if isinstance(problem, asyncpg.InvalidCatalogNameError):
        return "there is no such database; createdb makes one"
    if isinstance(problem, asyncpg.DiskFullError):
        return "the disk is full; the last batch was not written, all before it was"
    if isinstance(problem, asyncpg.InsufficientPrivilegeError):
        return f"the user may not do this: {_line(problem)}"
    if isinstance(problem, asyncpg.CannotConnectNowError | asyncpg.TooManyConnectionsError):
        return f"the server takes no connection: {_line(problem)}"
    if isinstance(problem, TimeoutError):
        return f"the server does not answer (waited {_WAIT:g} s)"
    if isinstance(problem, asyncpg.ClientConfigurationError):
        return "is no address of a database: postgresql://user@host:port/database"
    if isinstance(problem, LOST) and not isinstance(problem, OSError):
        return "the connection to the server was lost; the last batch may not be written, all before it is"
    if isinstance(problem, OSError):
        return f"the server cannot be reached: {problem.strerror or _line(problem) or type(problem).__name__}"
    return _line(problem)


def _line(problem: BaseException) -> str:
    return " ".join(str(problem).split())
