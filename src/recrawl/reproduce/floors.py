"""Floors: bounds of results, committed in experiments/<paper>/expected.json before the first run."""

from __future__ import annotations

import json
from pathlib import Path

from recrawl.errors import ParameterError
from recrawl.reproduce.figure import Result

Floors = dict[str, dict[str, float]]


def floors_of(id: str, folder: Path) -> Floors:
    """The floors of a figure: claim -> {"least": …, "most": …}."""
    paper, name = id.split("/")
    path = folder / paper / "expected.json"
    try:
        found: dict[str, Floors] = json.loads(path.read_text())
    except FileNotFoundError:
        raise ParameterError(f"{path}: there are no floors for {id}") from None
    except ValueError:
        raise ParameterError(f"{path}: not JSON") from None
    if name not in found:
        raise ParameterError(f"{path}: there are no floors for {id}")
    return found[name]


def misses(result: Result, folder: Path) -> list[str]:
    """One line for each floor that a result misses."""
    ours = {claim.key: claim.ours for claim in result.claims}
    lines = []
    for key, floor in floors_of(result.id, folder).items():
        value = ours.get(key)
        if value is None:
            lines.append(f"{result.id}: {key} has no figure")
        elif value < floor.get("least", value) or value > floor.get("most", value):
            bound = ", ".join(f"at {end} {limit:g}" for end, limit in floor.items())
            lines.append(f"{result.id}: {key} is {value:.5g}, must be {bound}")
    return lines
