"""Settings of an engine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from recrawl.engine.policies.names import by_rates, check_policy
from recrawl.errors import ParameterError
from recrawl.model.kinds import Objective

if TYPE_CHECKING:
    from recrawl.schedule.exact.scheduler import Schedule

REMOVED = ("priors", "bursts", "drift", "seasons")  # effects of earlier versions: settings saved then name them

_NO_COPY = 1e6  # days before time 0: a page without a copy counts as fetched then, so that it is worth most to crawl


class EngineOptions(TypedDict, total=False):
    """The keyword arguments of `Engine`, as type checkers see them; `Settings` has the defaults."""

    objective: Objective
    policy: str
    sources: int
    lease: float
    floor: float
    day: float
    half_life: float
    host_spacing: float | None
    host_concurrency: int | None
    min_change_probability: float
    price: float
    very_stale: float
    very_stale_share: float
    siblings: bool
    canonical_urls: bool


@dataclass(frozen=True)
class Settings:
    """How an engine works; ``half_life`` in days, other times in the engine's unit."""

    budget: float | None = None
    objective: Objective = "freshness"
    policy: str = "value"  # how pages are chosen: `engine.policies.names.POLICIES`
    sources: int = 1
    lease: float = 300.0
    floor: float = 0.0
    day: float = 86400.0
    half_life: float = 730.0
    host_spacing: float | None = None
    host_concurrency: int | None = None
    min_change_probability: float = 0.01  # a page less likely to have changed is not picked; 0: any page is
    price: float = 0.0  # of a crawl, in importance × time: a crawl that is worth less is not made; 0: none
    very_stale: float = 0.0  # with a price: a copy that is stale for so long is very stale
    very_stale_share: float = 0.0  # the share of very stale copies that crawls may find; 0: any
    siblings: bool = True
    canonical_urls: bool = True  # whether URLs are brought into canonical form; else any text names a page as it is

    def __post_init__(self) -> None:
        if self.sources not in range(17):
            raise ParameterError(f"sources is {self.sources}: must lie between 0 and 16")
        if not (self.half_life > 0 and 0 < self.day < math.inf):
            raise ParameterError("half_life and day must be above 0")
        if self.host_spacing is not None and not 0 <= self.host_spacing < math.inf:
            raise ParameterError(f"host_spacing is {self.host_spacing}: must be finite and at least 0")
        if self.host_concurrency is not None and not self.host_concurrency >= 1:
            raise ParameterError(f"host_concurrency is {self.host_concurrency}: must be at least 1")

        if not 0 <= self.min_change_probability < 1:
            raise ParameterError(
                f"min_change_probability is {self.min_change_probability}: must be at least 0 and below 1"
            )

        self._check_price()
        check_policy(self.policy, self.objective, self.price)

    def _check_price(self) -> None:
        for name in ("price", "very_stale"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ParameterError(f"{name} is {getattr(self, name)}: must be finite and at least 0")
        if not 0 <= self.very_stale_share < 1:
            raise ParameterError(f"very_stale_share is {self.very_stale_share}: must be at least 0 and below 1")
        if self.price and self.objective == "age":
            raise ParameterError("price does not go with the objective age: an age value is importance × time squared")
        if (self.very_stale > 0) != (self.very_stale_share > 0):
            raise ParameterError("very_stale and very_stale_share belong together: give both or none")
        if self.very_stale_share and not self.price:
            raise ParameterError("very_stale is a bound on what a price leaves stale: it needs a price")

    @property
    def uses_signals(self) -> bool:
        """Whether change signals count for the choice of pages."""
        return bool(self.sources) and self.schedule == "freshness" and self.policy != "no-signals"

    @property
    def schedule(self) -> Schedule:
        """What the scheduler orders pages by."""
        return "rates" if by_rates(self.policy) else self.objective

    @property
    def selective(self) -> bool:
        """Whether some pages are not picked although there is budget: hardly any chance of a change, or a price."""
        return self.min_change_probability > 0.0 or self.price > 0.0

    @property
    def by_protocol(self) -> bool:
        """Whether a compiled loop, which knows the crawl value alone, cannot drive the engine."""
        return self.selective or by_rates(self.policy)

    @property
    def no_copy_at(self) -> float:
        """The time of fetching that stands for "no copy" in the scheduler; elsewhere it is −infinity."""
        return -_NO_COPY * self.day

    def as_dict(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)


def without_removed(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Saved settings without those that no longer exist.

    >>> without_removed({"siblings": True, "bursts": False})
    {'siblings': True}
    """
    return {name: value for name, value in saved.items() if name not in REMOVED}
