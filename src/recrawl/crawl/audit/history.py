"""History of a crawl: freshness, requests and changes over time, in a bounded number of points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

NOTE = "history"  # the name of the note that holds the points
MOST = 600  # points; beyond it the older half is merged in pairs


class Point(NamedTuple):
    """A moment: the freshness reported at it, and the counts since the point before. None: not known yet."""

    at: float
    now: float | None  # freshness, expected
    so_far: float | None  # freshness since the start, by what crawls found
    requests: int
    comparisons: int
    changes: int


class History:
    """The points of all runs. Counts of a run begin at 0.

    >>> history = History()
    >>> history.add(60.0, (0.5, None), (10, 4, 1))
    >>> history.add(120.0, (0.6, 0.7), (25, 10, 3))
    >>> history.points[-1]
    Point(at=120.0, now=0.6, so_far=0.7, requests=15, comparisons=6, changes=2)
    """

    def __init__(self) -> None:
        self.points: list[Point] = []
        self._before = (0, 0, 0)

    def add(self, at: float, fresh: tuple[float | None, float | None], counts: tuple[int, int, int]) -> None:
        """A further point; ``counts`` are requests, comparisons and changes of this run until now."""
        more = [max(n - before, 0) for n, before in zip(counts, self._before, strict=True)]
        self._before = counts
        now, so_far = map(_rounded, fresh)
        self.points = thinned([*self.points, Point(round(at, 1), now, so_far, *more)])

    def as_note(self) -> list[list[Any]]:
        """As plain values."""
        return list(map(list, self.points))

    def restore(self, note: Sequence[Sequence[Any]] | None) -> None:
        """Continue from the note of an earlier run."""
        self.points = points_of(note)


def points_of(note: Sequence[Sequence[Any]] | None) -> list[Point]:
    """The points of a note."""
    return [Point(*row) for row in note or ()]


def thinned(points: list[Point], most: int = MOST) -> list[Point]:
    """At most so many points: the older half in pairs, each pair as its later point with the counts of both."""
    if len(points) <= most:
        return points
    half = len(points) // 4 * 2
    pairs = zip(points[0:half:2], points[1:half:2], strict=True)
    merged = [Point(*late[:3], *(a + b for a, b in zip(early[3:], late[3:], strict=True))) for early, late in pairs]
    return merged + points[half:]


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 5)
