"""Rule: how a system decides when a page is due again, as a kernel's number and its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from recrawl.simulate.rivals import kernels

Cap = Literal["due", "score", "oldest"]
ORDERS: dict[str, int] = {"due": kernels.BY_DUE, "score": kernels.BY_SCORE, "oldest": kernels.BY_AGE}
DAY = 86_400.0


@dataclass(frozen=True)
class Rule:
    """When a page is due after a crawl.

    ``settings`` are the kernel's, in the order it names them; ``cap`` is what the system takes first when more is due
    than it may crawl; ``n_dates`` is how many dates of changes a crawl shows to it.
    """

    name: str
    code: int
    settings: Sequence[float]
    cap: Cap = "due"
    n_dates: int = 0
