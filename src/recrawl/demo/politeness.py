"""Politeness as the server saw it: gaps between requests to a host, and requests that robots.txt forbids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from recrawl.demo.web import PRIVATE, ServedRequest

TOLERANCE = 0.005  # seconds by which a gap may be too short: what a network can take off it


@dataclass(frozen=True)
class Manners:
    """Counts of a log: requests, those that robots.txt forbids, those that came too soon after the one before.

    ``shortest`` is the least gap in units of its host's delay, ``worst`` by how many seconds a gap was too short at
    most (below 0: none was). ``before_robots`` counts pages asked for before the host's robots.txt.
    """

    requests: int
    hosts: int
    forbidden: int
    before_robots: int
    too_soon: int
    shortest: float
    worst: float

    @property
    def is_polite(self) -> bool:
        """Whether no rule was broken."""
        return not (self.forbidden or self.before_robots or self.too_soon)

    def as_dict(self) -> dict[str, Any]:
        """The figures by name."""
        return {**asdict(self), "is_polite": self.is_polite}


def manners(log: Iterable[ServedRequest], delay: Mapping[str, float], *, with_robots: bool = True) -> Manners:
    """The manners in a log of a crawler that must leave ``delay`` seconds between two requests to a host.

    ``with_robots`` counts the requests for robots.txt among them.
    """
    by_host: dict[str, list[ServedRequest]] = {}
    for request in sorted(log, key=lambda request: request.came_at):
        by_host.setdefault(request.host, []).append(request)
    forbidden = before_robots = requests = 0
    over: list[float] = []
    ratio: list[float] = []
    for host, served in by_host.items():
        forbidden += sum(request.path.startswith(PRIVATE) for request in served)
        known = next((k for k, request in enumerate(served) if request.path == "/robots.txt"), len(served))
        before_robots += known
        counted = [request for request in served if with_robots or request.path != "/robots.txt"]
        requests += len(counted)
        gap = np.diff([request.came_at for request in counted])
        if delay[host] > 0:
            over += (delay[host] - gap).tolist()
            ratio += (gap / delay[host]).tolist()
    return Manners(
        requests=requests,
        hosts=len(by_host),
        forbidden=forbidden,
        before_robots=before_robots,
        too_soon=sum(each > TOLERANCE for each in over),
        shortest=min(ratio, default=float("inf")),
        worst=max(over, default=-float("inf")),
    )
