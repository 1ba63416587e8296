"""Policy: what every decider can be asked, whether it is greedy, planned, learned or a rival."""

from __future__ import annotations

from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ids = NDArray[np.int64]


@runtime_checkable
class Policy(Protocol):
    """Decides which page to crawl next; does no input or output and reads no clock.

    Time is an argument and never runs backwards: a ``now`` below the largest one seen counts as that one, and is
    counted in ``stats`` where the policy has them. Ids are integers that ``add`` returns and that are never used
    again. A page that ``pick`` returns is leased: it is not returned again until it is recorded or released, or its
    lease ends. Wrong use (an id that is unknown or removed, a time or parameter that is not a number) raises
    ``ParameterError`` and leaves the state as it was. ``check_policy`` runs these rules against any policy.
    """

    def add(self, pages: Any, now: float, *, fetched_at: ArrayLike | None = None) -> Ids:
        """New pages, and the ids they get; ``fetched_at`` is when the copies that already exist were fetched."""
        ...

    def pick(self, now: float, n: int) -> Ids:
        """At most ``n`` eligible pages to crawl now, best first, all different; each is leased."""
        ...

    def record(
        self,
        ids: ArrayLike,
        now: float,
        *,
        changed: ArrayLike | None = None,
        as_of: ArrayLike | None = None,
        failed: ArrayLike | None = None,
        gone: ArrayLike | None = None,
    ) -> None:
        """Crawls that ended; ``as_of`` is when each fetch began (default ``now``), and records may come in any order.

        A copy is as fresh as its fetch's start, so signals received after ``as_of`` still stand. An ``as_of`` older
        than the page's last crawl changes nothing and is counted. A ``failed`` fetch ends the lease and leaves the copy
        as old as it was; a page that is ``gone`` is not picked again.
        """
        ...

    def release(self, ids: ArrayLike, now: float) -> None:
        """Leased crawls that did not happen: the pages are eligible again as if they had not been picked."""
        ...

    def signal(self, ids: ArrayLike, now: float, *, source: int = 0, changed_at: ArrayLike | None = None) -> None:
        """Change signals that arrived, one per id (a repeated id counts as often as it occurs)."""
        ...

    def update(self, ids: ArrayLike, **columns: ArrayLike) -> None:
        """New parameters of some pages: any columns of ``Pages``, one row per id or one value for all."""
        ...

    def remove(self, ids: ArrayLike) -> None:
        """Pages that are no longer to be crawled."""
        ...

    def next_at(self, now: float) -> float:
        """When ``pick`` can next return something (infinity: not without news): what a driver sleeps on."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere: numbers, strings, arrays, and dictionaries and lists of them."""
        ...

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """A policy that picks, from a saved state on, exactly what the saved one would have."""
        ...
