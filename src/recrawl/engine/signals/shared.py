"""What signals are worth, learned by several engines: sums of one's own pages, and those of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.plain import plain
from recrawl.engine.outcomes.lessons import Lessons, SourceLessons
from recrawl.engine.signals.arrays import (
    ALONE,
    FOLLOWS,
    MOST_MOVED,
    N_EVIDENCE,
    N_STATISTICS,
    NEEDED,
    OPEN,
    OPENED,
    SCORE,
    SignalArrays,
)
from recrawl.engine.signals.gate import _CAP, _CLOSE, shut

Array = NDArray[np.float64]


@dataclass
class SignalSums:
    """Sums over pages, by source: statistics, posteriors, ln evidence, scores of gates."""

    statistics: Array  # (sources, N_STATISTICS)
    counts: Array  # (2, sources, bins, rates, classes)
    evidence: Array  # (N_EVIDENCE, sources)
    score: Array  # (sources, 2)

    @classmethod
    def empty(cls, b: SignalArrays) -> SignalSums:
        """Sums of nothing."""
        n = b.rate.shape[1]
        return cls(
            np.zeros((n, N_STATISTICS)), np.zeros(b.log_table.shape), np.zeros((N_EVIDENCE, n)), np.zeros((n, 2))
        )

    @classmethod
    def of(cls, b: SignalArrays, saved: Mapping[str, Array] | None) -> SignalSums | None:
        """Sums that were saved; those of other sources or an older version are dropped until the next refit."""
        shapes = b.log_table.shape, (N_EVIDENCE, b.rate.shape[1])
        return cls(**saved) if saved and (saved["counts"].shape, saved["evidence"].shape) == shapes else None

    def lessons(self, names: Sequence[str], gate: Array) -> dict[str, SourceLessons]:
        """The sums of the sources that have taught anything, by name."""
        found = {}
        for k, name in enumerate(names[: len(self.statistics)]):
            if self.statistics[k].any():
                score = gate[k, [SCORE, ALONE]]
                found[name] = SourceLessons(self.statistics[k], self.counts[:, k], self.evidence[:, k], score)
        return found

    def add(self, names: Sequence[str], others: Sequence[Lessons]) -> None:
        """Add the lessons of other engines, by the names of their sources."""
        for k, name in enumerate(names[: len(self.statistics)]):
            for one in (other.sources[name] for other in others if name in other.sources):
                self.statistics[k] += one.statistics
                self.counts[:, k] += one.counts
                self.evidence[: len(one.evidence), k] += one.evidence  # of an older version, there is less
                self.score[k] += one.score


def move_gates(b: SignalArrays, others: SignalSums, now: float) -> None:
    """Open or shut the gates of sources by what outcomes of all engines say; `Signals.take_moved` has the pages."""
    for k, gate in enumerate(b.gate):
        most = max(_CAP, gate[NEEDED])
        score, alone = np.clip(gate[[SCORE, ALONE]] + others.score[k], -_CAP, most)
        if gate[OPEN] != OPENED and score >= gate[NEEDED] and alone >= gate[NEEDED]:
            gate[OPEN] = OPENED
            _moved(b, k, has_shut=False)
        elif gate[OPEN] == OPENED and score < _CLOSE[1]:
            gate[OPEN] = FOLLOWS
            plain(shut)(b, -1, k, now)
            _moved(b, k, has_shut=True)


def _moved(b: SignalArrays, k: int, *, has_shut: bool) -> None:
    n = int(b.n_moved[0])
    if n < MOST_MOVED:
        b.moved[n] = -1, k, has_shut
    b.n_moved[0] += 1
