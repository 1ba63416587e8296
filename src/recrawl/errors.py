"""Every exception recrawl raises on purpose.

RecrawlError
├── ParameterError (also a ValueError)    a value, column, file or option the caller gave cannot be used
│   └── RowError                          the same of one row of many: `row` and `field` name it
├── PolicyError                           a policy cannot decide: every arm of a bandit failed
├── ServiceError                          a service cannot be reached, or refuses what it is asked
└── StoreError                            the database cannot be opened, read or written; nothing is half done
    ├── StoreInUseError                   another process has the database to itself
    ├── StoreMissingError                 there is no such database
    └── StoreUnreachableError             the server of the database does not answer, or the connection was lost
"""

from collections.abc import Sequence


class RecrawlError(Exception):
    """Base of all errors that recrawl raises on purpose."""


class ParameterError(RecrawlError, ValueError):
    """A value the caller gave cannot be used; the message names the column and the first bad row."""


class RowError(ParameterError):
    """A value in one row of many cannot be used; ``row`` counts from 0, ``field`` is the name of the value."""

    def __init__(self, row: int, field: str, why: str) -> None:
        super().__init__(f"row {row}, {field}: {why}")
        self.row, self.field = row, field


class ServiceError(RecrawlError):
    """A service cannot be reached or refuses a request; ``status`` is that of its answer, 0: none came."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class PolicyError(RecrawlError):
    """A policy cannot decide; the message says what its parts reported."""


class StoreError(RecrawlError):
    """The database cannot be opened, read or written; what was acknowledged before is kept."""


class StoreInUseError(StoreError):
    """Another process has the database to itself; the message names the process."""


class StoreMissingError(StoreError):
    """There is no such database; the message says what makes one."""


class StoreUnreachableError(StoreError):
    """The server of the database cannot be reached; what was written last may be written or not."""


def unknown(what: str, name: str, known: Sequence[str]) -> ParameterError:
    """The error for a name that is not known, with those that come near it.

    >>> str(unknown("policy", "nutsh", ["nutch", "uniform"]))
    "policy 'nutsh' is not one of nutch, uniform; did you mean nutch?"
    """
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return ParameterError(f"{what} {name!r} is not one of {', '.join(known)}{hint}")
