"""Crawls that ended in any way: what `Engine.record` does with those that did not end as most do.

The copies are set first. What was compared is learned from by the kernel that also records crawls that ended as most
do (`end_crawls`); copies without a comparison are new all the same. Then the policy and the waits of pages learn of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.engine.policies.choice import Choice, Ended
from recrawl.schedule.exact import access
from recrawl.schedule.table import flags_of

if TYPE_CHECKING:
    from recrawl.engine.core import Core

Ids = NDArray[np.int64]
Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Said(NamedTuple):
    """What is said of crawls of different pages that ended, a value per crawl; None: nothing."""

    rows: Ids
    here: float  # not before the engine's time
    changed: Flags | None
    as_of: Array | None
    failed: Flags | None
    gone: Flags | None


def optional(name: str, flags: ArrayLike | None, n: int) -> Flags | None:
    """A flag per crawl, or one for all; None where none are given."""
    if isinstance(flags, bool | np.bool_):
        return np.full(n, flags)
    return None if flags is None else flags_of(name, flags, n)


def one_by_one(said: Said) -> Iterator[Said]:
    """What is said of each crawl, where some are of the same page: in the order in which they began."""
    n = len(said.rows)
    for j in range(n) if said.as_of is None else np.argsort(said.as_of, kind="stable").tolist():
        columns = {name: column for name, column in said._asdict().items() if isinstance(column, np.ndarray)}
        given: dict[str, Any] = {name: column[j : j + 1] for name, column in columns.items()}
        yield said._replace(**given)


def record_crawls(engine: Core, said: Said) -> None:
    """Set copies, learn from what was compared, and let pages that failed or are gone wait."""
    rows, here, changed, as_of, failed, gone = said
    before, none = access.last_fetched(engine.scheduler, rows), np.zeros(len(rows), np.bool_)
    began = np.full(len(rows), here) if as_of is None else as_of
    engine.eligibility.cohorts.leave(engine.scheduler, rows)
    engine.scheduler.record(rows, here, as_of=as_of, failed=failed)
    valid, copied = began >= before, before > engine.no_copy_at  # not valid: there is a newer copy
    fetched = valid if failed is None else valid & ~failed
    found = fetched if gone is None else fetched & ~gone
    judged = none if changed is None else found & copied
    if judged.any():
        assert changed is not None
        engine.learn_crawls(rows[judged], _copies(before, began, judged), changed[judged], here)
    others = fetched & ~judged
    if others.any():
        engine.join_groups(rows[fetched & ~copied], here)
        engine.renew_copies(rows[others], _copies(before, began, others), here)
    engine.weigh_pages(rows[fetched], here)
    if type(engine.choice) is not Choice:
        elapsed, seen = np.where(copied, began - before, np.nan), none if changed is None else changed
        ended = Ended(rows[valid], found[valid], elapsed[valid], judged[valid], seen[valid])
        engine.choice.recorded(engine, ended)
    if failed is None and gone is None:
        engine.eligibility.fetched(rows[valid])
        engine.count_recorded(len(rows))
    else:
        _set_aside(engine, said, valid)


def _copies(before: Array, began: Array, which: Flags) -> Array:
    """The times of the copies before some crawls, and of their own."""
    copies = np.empty((np.count_nonzero(which), 2))
    copies[:, 0], copies[:, 1] = before[which], began[which]
    return copies


def _set_aside(engine: Core, said: Said, valid: Flags) -> None:
    """Let pages that failed or are gone wait, and others no longer; ``valid``: those without a newer copy."""
    none = np.zeros(len(said.rows), np.bool_)
    lost = none if said.gone is None else said.gone
    missed = none if said.failed is None else said.failed & ~lost
    engine.eligibility.settle(said.rows[valid], said.here, missed[valid], lost[valid])
    engine.count_recorded(len(said.rows), failed=int(missed[valid].sum()), gone=int(lost[valid].sum()))
