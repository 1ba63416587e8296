"""Choice: what a policy of an engine is asked and given. The plain one chooses by value and keeps nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.model.pages import Pages

if TYPE_CHECKING:
    from recrawl.engine.core import Core

Array = NDArray[np.float64]
Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Ended(NamedTuple):
    """Crawls that ended: which fetched a copy, after how much time, which were compared, and which had changed."""

    rows: Ids
    fetched: Flags
    elapsed: Array
    compared: Flags
    changed: Flags


class Choice:
    """The choice by value: the scheduler knows all that it needs."""

    policy = "value"

    def added(self, engine: Core, rows: Ids) -> None:
        """Pages were added."""

    def begin(self, engine: Core, now: float) -> None:
        """Pages are about to be picked."""

    def picked(self, rows: Ids) -> None:
        """Pages were picked."""

    def recorded(self, engine: Core, ended: Ended) -> None:
        """Crawls ended."""

    def released(self, rows: Ids) -> None:
        """Crawls did not happen."""

    def budget_changed(self) -> None:
        """There is another budget."""

    def rates_at(self, engine: Core, pages: Pages, budget: float, rows: Ids) -> Array:
        """The crawl rates of the long run at a budget, if the believed rates are right."""
        from recrawl.engine.policies.plan import priced_rates

        return priced_rates(engine, pages, budget)

    def words(self, engine: Core, page: int | None = None) -> str:
        """How pages are chosen, or one page is; empty where the crawl value says it all."""
        return ""

    def columns(self, rows: Ids) -> dict[str, Array]:
        """What is saved of each page."""
        return {}

    def saved(self) -> dict[str, Any]:
        """What is saved beside the pages."""
        return {}

    def load(self, engine: Core, saved: Mapping[str, Any], pages: Mapping[str, Any]) -> None:
        """Go on with what was saved."""

    def state(self) -> dict[str, Any]:
        """Everything, to go on exactly."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on exactly; the scheduler knows the rates already."""


def choice_of(policy: str) -> Choice:
    """The choice by a policy's name."""
    from recrawl.engine.policies.bandits import ByBandit
    from recrawl.engine.policies.names import BANDITS, by_rates
    from recrawl.engine.policies.rates import ByRates

    if policy in BANDITS:
        return ByBandit(policy)
    return ByRates(policy) if by_rates(policy) else Choice()
