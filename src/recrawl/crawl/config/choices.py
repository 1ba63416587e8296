"""How pages are chosen, from settings written as text: the objective."""

from __future__ import annotations

from typing import Any

from recrawl.errors import unknown
from recrawl.model.kinds import OBJECTIVES


def choices_of(objective: str) -> dict[str, Any]:
    """Settings of the engine; what is empty is left out.

    >>> choices_of(""), choices_of("age")
    ({}, {'objective': 'age'})
    """
    if not objective.strip():
        return {}
    if objective not in OBJECTIVES:
        raise unknown("objective", objective, OBJECTIVES)
    return {"objective": objective}
