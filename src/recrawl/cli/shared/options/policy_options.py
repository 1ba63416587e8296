"""Options that say how pages are chosen: objective, policy, price, bound on very stale copies."""

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
Policy = Annotated[
    str | None,
    typer.Option(
        help="How pages are chosen: value, deadline, poisson, lambda, uniform, kab5 …  [default: as before, at first "
        "value]",
        metavar="NAME",
    ),
]
Price = Annotated[
    str | None,
    typer.Option(help="Staleness, times importance, that a crawl must save, such as 2h; 0 for none.", metavar="TIME"),
]
VeryStale = Annotated[
    str | None, typer.Option(help="With --price: a copy stale for so long is very stale.", metavar="TIME")
]
VeryStaleShare = Annotated[
    str | None, typer.Option(help="Share of very stale copies that crawls may find, such as 5%.", metavar="SHARE")
]
