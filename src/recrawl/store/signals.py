"""Pending signals: what sources said about pages since the newest copies."""

from __future__ import annotations

from typing import NamedTuple


class PendingSignal(NamedTuple):
    """The newest signal of a source about a page; times are seconds since 1970.

    ``source`` is the engine's number of the source. The page changed at ``changed_at`` or up to ``resolution`` seconds
    later, as the source says; None: it does not say when.
    """

    url: str
    source: int
    at: float
    changed_at: float | None = None
    resolution: float = 0.0

    def about(self) -> float:
        """The latest time at which the change can have been: not after the signal itself.

        >>> PendingSignal("https://a.example/", 0, at=90000.0, changed_at=86400.0, resolution=86400.0).about()
        90000.0
        """
        return self.at if self.changed_at is None else min(self.changed_at + self.resolution, self.at)
