"""A contract suite for policies: what ``Policy`` promises, as checks that anyone can run on a policy of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from recrawl.model.pages import Pages
from recrawl.schedule.policy import Policy
from recrawl.schedule.testing import time as over_time
from recrawl.schedule.testing import use as in_use
from recrawl.schedule.testing.trial import Trial

Factory = Callable[[Pages, float], Policy]

# Name -> check; each takes a Trial and raises AssertionError with a message that says what was promised.
CHECKS: dict[str, Callable[[Trial], None]] = {
    "has the methods of a policy": in_use.has_all_methods,
    "add gives new ids": in_use.add_gives_new_ids,
    "pick returns distinct known ids, at most n": in_use.pick_is_distinct,
    "leased pages are not picked again": in_use.leased_pages_stay_away,
    "recorded pages come back": in_use.recorded_pages_return,
    "failed crawls end the lease": in_use.failed_pages_return,
    "released pages come back": in_use.released_pages_return,
    "removed pages never return": in_use.removed_pages_stay_away,
    "pages that are gone never return": in_use.gone_pages_stay_away,
    "ids are never reused": in_use.ids_are_not_reused,
    "wrong use raises and leaves the state": in_use.wrong_use_raises,
    "signals are accepted": in_use.signals_are_accepted,
    "updates are accepted": in_use.updates_are_accepted,
    "a lease ends": over_time.leases_end,
    "time going back stands still": over_time.time_stands_still,
    "records may come in any order": over_time.record_order_is_free,
    "an outdated record changes nothing": over_time.outdated_record_is_ignored,
    "a saved state is a copy": over_time.state_is_a_copy,
    "a restored policy picks the same": over_time.restored_policy_agrees,
    "next_at is not late": over_time.next_at_is_not_late,
}


def check_policy(
    factory: Factory, *, lease: float | None = 300.0, start: float = 0.0, names: Iterable[str] | None = None
) -> None:
    """Run the contract suite; the first promise that is not kept raises AssertionError.

    ``factory(pages, start)`` makes a policy whose pages have the ids 0, 1, … and whose leases have the length ``lease``
    (None: no end); it is called again for each check. Give it budget enough to come back to each of two pages before a
    lease ends. ``names`` chooses some of ``CHECKS``, for instance one per test:
    ``pytest.mark.parametrize("name", CHECKS)``.

    >>> from recrawl.schedule import RatePolicy
    >>> check_policy(lambda pages, start: RatePolicy(pages, budget=10.0, start=start, lease=300.0))
    """
    for name in CHECKS if names is None else names:
        try:
            CHECKS[name](Trial(partial(_make, factory), lease, start))
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


def _make(factory: Factory, n: int, start: float) -> Any:
    """A policy on n pages that differ."""
    rng = np.random.default_rng(n)
    return factory(Pages(rng.uniform(0.05, 0.95, n), rng.uniform(0.1, 1.0, n)), start)
