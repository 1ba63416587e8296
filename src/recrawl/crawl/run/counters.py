"""Counters: what a run has done so far, for a live view and for the end."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from recrawl.store.protocol import Outcome

_HOSTS = 10_000  # whose times are remembered
_SMOOTH = 0.1


@dataclass(slots=True)
class Counters:
    """Crawls by outcome; ``took`` is per host, in seconds, smoothed."""

    started: int = 0
    ended: int = 0
    requests: int = 0
    changed: int = 0
    unchanged: int = 0
    new: int = 0  # first copies, or copies that could not be compared
    flapping: int = 0  # returns to content seen before; unchanged too
    rolled_off: int = 0  # feeds with nothing left of the poll before
    not_modified: int = 0
    failed: int = 0
    gone: int = 0
    set_aside: int = 0
    errors: int = 0  # mistakes in a fetcher or detector; failures too
    n_bytes: int = 0
    acknowledged: int = 0
    took: dict[str, float] = field(default_factory=dict)

    def add(self, outcome: Outcome, n_bytes: int, host: str) -> None:
        """Count one crawl."""
        self.ended += 1
        self.requests += outcome.requests
        self.n_bytes += n_bytes
        self.gone += outcome.gone
        self.failed += outcome.failure is not None
        self.not_modified += outcome.status == 304
        if outcome.fetched:
            self.changed += outcome.changed is True
            self.unchanged += outcome.changed is False
            self.new += outcome.changed is None
            self.flapping += outcome.flapping
            self.rolled_off += outcome.rolled_off
        if host in self.took or len(self.took) < _HOSTS:
            before = self.took.get(host, outcome.took)
            self.took[host] = before + _SMOOTH * (outcome.took - before)

    def slowest(self, n: int) -> list[tuple[str, float]]:
        """The slowest hosts, with their seconds."""
        return sorted(self.took.items(), key=lambda item: -item[1])[:n]

    def as_dict(self) -> dict[str, Any]:
        """The counters by name."""
        return {name: value for name, value in asdict(self).items() if name != "took"}
