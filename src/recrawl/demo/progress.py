"""Progress of a demo, for a live view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """The progress of a demo, for a live view."""

    phase: str  # "first copies" or "crawling"
    elapsed: float
    seconds: float
    requests: int
    changes_found: int
    failures: int
    expected: float  # freshness now, as the engine expects it
    true: float  # freshness now
    over_time: tuple[tuple[float, float], ...]  # expected and true so far


OnProgress = Callable[[Progress], None]


def nothing(progress: Progress) -> None:
    """The default callback."""
