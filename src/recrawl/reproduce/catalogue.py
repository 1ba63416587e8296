"""All figures and tables that can be reproduced, by id."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib import import_module

from recrawl.errors import ParameterError
from recrawl.reproduce.figure import Figure

_MODULES = (
    "busafekete2025.figures", "busafekete2025.bing", "busafekete2025.truncation_budget_scale", "busafekete2025.rates",
    "busafekete2025.quality", "grimes.figures", "grimes.unknown", "grimes.shares", "kolobov2019", "azar2018",
    "han2020.figures", "han2020.bandits", "han2020.beyond_paper",
)  # fmt: skip
SETTINGS = ("tiny", "quick", "full")


@cache
def figures() -> dict[str, Figure]:
    """All figures by id, paper by paper."""
    modules = [import_module(f"recrawl.reproduce.{name}") for name in _MODULES]
    found = {figure.id: figure for module in modules for figure in module.FIGURES}
    papers = list(dict.fromkeys(id.split("/")[0] for id in found))
    return dict(sorted(found.items(), key=lambda item: (papers.index(item[0].split("/")[0]), *_natural(item[0]))))


def choose(ids: list[str]) -> list[Figure]:
    """The figures with these ids. The name of a paper stands for all its figures, an empty list for all papers.

    >>> [figure.id for figure in choose(["azar2018"])]
    ['azar2018/fig1', 'azar2018/fig2']
    """
    known = figures()
    chosen: list[Figure] = []
    for name in ids or list(known):
        found = [figure for id, figure in known.items() if name in (id, id.split("/")[0])]
        if not found:
            near = get_close_matches(name, [*known, *{id.split("/")[0] for id in known}], n=4, cutoff=0.4)
            raise ParameterError(f"{name!r} is not a figure; {'near it: ' + ', '.join(near) if near else 'see --list'}")
        chosen += [figure for figure in found if figure not in chosen]
    return chosen


def _natural(id: str) -> tuple[bool, int]:
    number = id.split("/")[1].removeprefix("fig")
    return (not number.isdigit(), int(number) if number.isdigit() else 0)
