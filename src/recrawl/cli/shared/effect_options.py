"""Options that switch effects of the engine: siblings off, and priors, bursts, drift and seasons on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

NoSiblings = Annotated[bool, typer.Option("--no-siblings", help="Ignore changes on sibling pages.")]
Priors = Annotated[bool, typer.Option("--priors", help="Give new pages a prior of their folder and host.")]
Bursts = Annotated[bool, typer.Option("--bursts", help="Expect further changes after a change.")]
Drift = Annotated[bool, typer.Option("--drift", help="Learn how fast old outcomes lose weight.")]
Seasons = Annotated[bool, typer.Option("--seasons", help="Learn how hours of the week differ.")]


def switched(no_siblings: bool, **on: bool) -> dict[str, bool]:
    """The effects that flags switch off or on.

    >>> switched(True, drift=True, seasons=False)
    {'siblings': False, 'drift': True}
    """
    off = {"siblings": False} if no_siblings else {}
    return off | {name: True for name, given in on.items() if given}


def with_effects(policies: list[str], effects: Mapping[str, bool]) -> list[str]:
    """Names of policies, with effects switched on or off in ``learned`` and ``learned:…``.

    >>> with_effects(["learned:siblings+drift", "uniform"], {"siblings": False, "bursts": True})
    ['learned:bursts+drift', 'uniform']
    """
    return [_switched(name, effects) for name in policies] if effects else policies


def _switched(name: str, effects: Mapping[str, bool]) -> str:
    from recrawl.engine import EFFECTS
    from recrawl.engine.settings import Settings

    policy, colon, named = name.partition(":")
    if policy != "learned":
        return name
    before = named.split("+") if colon else [effect for effect in EFFECTS if getattr(Settings(), effect)]
    unknown = [effect for effect in before if effect not in (*EFFECTS, "none", "")]
    used = [effect for effect in EFFECTS if effects.get(effect, effect in before)]
    return f"{policy}:{'+'.join([*used, *unknown]) or 'none'}"
