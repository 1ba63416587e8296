"""Options that disable effects of the engine: siblings, priors, bursts, drift, seasons."""

from __future__ import annotations

from typing import Annotated

import typer

NoSiblings = Annotated[bool, typer.Option("--no-siblings", help="Ignore changes on sibling pages.")]
NoPriors = Annotated[bool, typer.Option("--no-priors", help="Give new pages no prior of their folder or host.")]
NoBursts = Annotated[bool, typer.Option("--no-bursts", help="Do not expect further changes after a change.")]
NoDrift = Annotated[bool, typer.Option("--no-drift", help="Do not learn how fast old outcomes lose weight.")]
NoSeasons = Annotated[bool, typer.Option("--no-seasons", help="Treat all hours of the week alike.")]


def without(policies: list[str], disabled: list[str]) -> list[str]:
    """Names of policies, with the disabled effects removed from ``learned`` and ``learned:…``.

    >>> without(["learned:siblings+drift", "uniform"], ["siblings"])
    ['learned:drift', 'uniform']
    """
    from recrawl.engine import EFFECTS
    from recrawl.engine.settings import Settings

    if not disabled:
        return policies
    usual = "learned:" + "+".join(effect for effect in EFFECTS if getattr(Settings(), effect))
    return [_without(usual if name == "learned" else name, disabled) for name in policies]


def _without(name: str, disabled: list[str]) -> str:
    policy, colon, effects = name.partition(":")
    if policy != "learned" or not colon:
        return name
    left = [effect for effect in effects.split("+") if effect and effect not in disabled]
    return f"{policy}:{'+'.join(left) or 'none'}"


def chosen(**flags: bool) -> list[str]:
    """The names of the flags that are set."""
    return [name for name, given in flags.items() if given]
