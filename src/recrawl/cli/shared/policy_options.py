"""Options that say how pages are chosen: the objective."""

from __future__ import annotations

from typing import Annotated

import typer

Objective = Annotated[
    str | None,
    typer.Option(
        help="What to keep low: staleness, changes not seen, or age.  [default: as before, at first freshness]",
        metavar="freshness|harmonic|age",
    ),
]
