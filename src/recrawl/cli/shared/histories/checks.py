"""Checks that found no change: tools that keep only changes do not keep them, but their number or distance is known."""

from __future__ import annotations

MOST = 5000  # unchanged checks of one page between the first and the last


def between(start: float, end: float, every: float) -> list[float]:
    """Times of checks between two that are known, without both, at equal distances of about ``every``.

    >>> between(0.0, 40.0, 10.0)
    [10.0, 20.0, 30.0]
    >>> between(0.0, 14.0, 10.0), between(0.0, 40.0, 1e9)
    ([], [])
    """
    n = max(round((end - start) / every), 1) if every > 0 else 1
    return [start + k * (end - start) / n for k in range(1, n)]


def bounded(every: float, span: float) -> float:
    """A distance of checks, made so large that at most MOST of them lie in a span.

    >>> bounded(10.0, 100.0), bounded(1.0, 50_000.0)
    (10.0, 10.0)
    """
    return max(every, span / MOST)
