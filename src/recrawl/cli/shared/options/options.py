"""Options that several commands have, and checks of their values."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.errors import ParameterError

if TYPE_CHECKING:
    from recrawl.cli.shared.logs.roles import LogOptions

Lenient = Annotated[bool, typer.Option("--lenient", help="Repair a bad log and count the repairs.")]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns", help="NAME=ROLE,…: what columns of the log are, such as checksum=digest.", metavar="NAME=ROLE"
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        help="Encoding of the log, such as cp1252.  [default: by byte order mark, else UTF-8]", metavar="NAME"
    ),
]
Processes = Annotated[int, typer.Option(help="Processes that read the parts of a table.", min=1)]
Ray = Annotated[
    str | None,
    typer.Option(help="Let a Ray cluster do the work: its address, auto, or local.", metavar="ADDRESS"),
]
Jobs = Annotated[
    Path | None, typer.Option(help="List of jobs of urlwatch.  [default: beside its store]", metavar="FILE")
]
Every = Annotated[
    str | None,
    typer.Option(help="How often a tool that keeps only changes has looked, such as 3h.", metavar="SPAN"),
]
AccessLog = Annotated[
    Path | None, typer.Option(help="Access log of the web server: importance is requests per page.", metavar="FILE")
]


class Group(StrEnum):
    """Pages that share a prior distribution of change rates."""

    host = "host"
    folder = "folder"
    all = "all"


def log_options(
    lenient: bool,
    columns: list[str] | None,
    encoding: str | None,
    jobs: Path | None = None,
    every: str | None = None,
    nameless: bool = True,
) -> LogOptions:
    """How a log is read. ParameterError for a bad role, encoding or span."""
    from recrawl.cli.shared.logs.roles import LogOptions, parse_columns
    from recrawl.cli.shared.logs.text_lines import check_encoding

    check_encoding(encoding)
    seconds = None
    if every is not None:
        from recrawl.crawl.config.rules import span

        seconds = span(every, "--every")
    return LogOptions(lenient, parse_columns(split_commas(columns or [])), encoding, jobs, seconds, nameless)


def check_level(level: float) -> None:
    """Raise ParameterError unless the level of an interval lies between 0 and 1."""
    if not 0 < level < 1:
        raise ParameterError(f"--level is {level}: must lie between 0 and 1")


def split_commas(texts: list[str]) -> list[str]:
    """The items of comma-separated lists, in order.

    >>> split_commas(["a,b", "c"])
    ['a', 'b', 'c']
    """
    return [item.strip() for text in texts for item in text.split(",") if item.strip()]


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that the user has set: those that are not None.

    >>> given({"days": 3.0, "start": None})
    {'days': 3.0}
    """
    return {name: value for name, value in options.items() if value is not None}


def refuse(options: dict[str, Any], goes_with: str) -> None:
    """Raise ParameterError if one of these options is set; without ``goes_with`` it would be ignored."""
    for name in given(options):
        raise ParameterError(f"{name} goes with {goes_with}")
