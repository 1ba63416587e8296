"""What signals say about one page, and how far they are believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.plain import plain
from recrawl.engine.names.addresses import host_of
from recrawl.engine.signals.arrays import PRECISIONS, is_open, row_of
from recrawl.model.spans import count

if TYPE_CHECKING:
    from recrawl.engine.questions import Questions


@dataclass(frozen=True)
class SignalFacts:
    """A source of signals as a page knows it.

    ``heard`` is how many came since the copy; ``precision`` the probability that a change is behind one, by the
    outcomes of this page and of others; ``host_precision`` the same on its host. They bring crawls forward where they
    ``count``: where they have predicted outcomes better than no signals.
    """

    source: int
    heard: int
    precision: float
    host_precision: float
    host_pages: int
    counts: bool
    name: str = ""  # of the source, where sources have names

    @property
    def right(self) -> str:
        """How often it was right, in words."""
        right = f"right {100 * self.host_precision:.0f}% of the time on this host"
        if self.counts:
            return right
        return f"{right}, but not proven: not counted" if self.host_pages else "not proven: not counted"

    def __str__(self) -> str:
        return f"{count(self.heard, 'signal')} of {self.name or f'source {self.source}'} ({self.right})"


def signal_facts(engine: Questions, page: int) -> tuple[SignalFacts, ...]:
    """The sources that have signalled a page."""
    b = engine.beliefs.belief.signals
    row = plain(row_of)(b, page)
    if row < 0:
        return ()
    host = engine.beliefs.signals.host_number(host_of(engine.url([page])[0]))
    found = []
    for k in np.flatnonzero(b.rate[row] + b.heard[row]).tolist():
        pages = float(b.host_share[host, k].sum())
        precision = float(b.host_share[host, k] @ PRECISIONS) / pages if pages > 0 else 0.0
        own = -float(np.expm1(-b.mean_kappa[row, k]))
        found.append(SignalFacts(k, int(b.heard[row, k]), own, precision, round(pages), plain(is_open)(b, host, k)))
    return tuple(found)


def heard_since(engine: Questions, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Signals per page and source since the copies were fetched, and when the first of them came."""
    b, sources = engine.beliefs.belief.signals, engine.settings.sources
    heard, at = np.zeros((len(rows), sources)), np.full(len(rows), np.inf)
    if len(b.row_of):
        row = b.row_of[rows]
        heard[row >= 0], at[row >= 0] = b.heard[row[row >= 0]], b.heard_at[row[row >= 0]]
    return heard, at
