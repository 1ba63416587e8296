"""Settings of an engine."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from recrawl.errors import ParameterError
from recrawl.model.kinds import Objective

EFFECTS = ("siblings", "priors", "bursts", "drift", "seasons")  # what may count besides a page's own rate


@dataclass(frozen=True)
class Settings:
    """How an engine works; ``half_life`` in days, other times in the engine's unit."""

    budget: float | None = None
    objective: Objective = "freshness"
    sources: int = 1
    lease: float = 300.0
    floor: float = 0.0
    day: float = 86400.0
    half_life: float = 730.0
    host_spacing: float | None = None
    host_concurrency: int | None = None
    siblings: bool = True
    priors: bool = False
    bursts: bool = False
    drift: bool = False
    seasons: bool = False

    def __post_init__(self) -> None:
        if self.sources not in range(17):
            raise ParameterError(f"sources is {self.sources}: must lie between 0 and 16")
        if not (self.half_life > 0 and 0 < self.day < math.inf):
            raise ParameterError("half_life and day must be above 0")
        if self.host_spacing is not None and not 0 <= self.host_spacing < math.inf:
            raise ParameterError(f"host_spacing is {self.host_spacing}: must be finite and at least 0")
        if self.host_concurrency is not None and not self.host_concurrency >= 1:
            raise ParameterError(f"host_concurrency is {self.host_concurrency}: must be at least 1")

    def as_dict(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)
