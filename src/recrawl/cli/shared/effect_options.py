"""Switches that leave parts of the engine out: what counts besides a page's own rate."""

from __future__ import annotations

from typing import Annotated

import typer

NoSiblings = Annotated[bool, typer.Option("--no-siblings", help="A change on one page says nothing of others.")]
NoPriors = Annotated[bool, typer.Option("--no-priors", help="Folder and host say nothing of a new page.")]
NoBursts = Annotated[bool, typer.Option("--no-bursts", help="A change says nothing of when the next comes.")]
NoDrift = Annotated[bool, typer.Option("--no-drift", help="How fast the past is forgotten is not learned.")]
NoSeasons = Annotated[bool, typer.Option("--no-seasons", help="All hours of the week are alike.")]


def without(policies: list[str], left_out: list[str]) -> list[str]:
    """Policies by name, ``learned`` with what it has by default or by name but for the parts left out.

    >>> without(["learned:siblings+drift", "uniform"], ["siblings"])
    ['learned:drift', 'uniform']
    """
    from recrawl.engine import EFFECTS
    from recrawl.engine.settings import Settings

    if not left_out:
        return policies
    usual = "learned:" + "+".join(part for part in EFFECTS if getattr(Settings(), part))
    return [_without(usual if name == "learned" else name, left_out) for name in policies]


def _without(name: str, left_out: list[str]) -> str:
    policy, chosen, parts = name.partition(":")
    if policy != "learned" or not chosen:
        return name
    return f"{policy}:{'+'.join(part for part in parts.split('+') if part and part not in left_out) or 'none'}"


def chosen(**flags: bool) -> list[str]:
    """The names of the switches that were set."""
    return [name for name, given in flags.items() if given]
