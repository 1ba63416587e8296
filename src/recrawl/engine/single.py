"""The end of one crawl, without arrays of flags: what `Engine.record` does with one page that was fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.policies.choice import Choice, Ended
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.engine.core import Core

Ids = NDArray[np.int64]


def is_one_flag(changed: Any) -> bool:
    """Whether ``changed`` is None, a flag or an array of one flag."""
    if isinstance(changed, np.ndarray):
        return bool(changed.dtype == np.bool_ and changed.size == 1)
    return changed is None or isinstance(changed, bool | np.bool_)


def record_one(engine: Core, rows: Ids, here: float, changed: bool | None) -> None:
    """One page was fetched at ``here``, which is not before the engine's time; its copy is not newer."""
    before = float(access.last_fetched(engine.scheduler, rows)[0])
    copied = before > engine.no_copy_at
    engine.eligibility.cohorts.leave(engine.scheduler, rows)
    engine.scheduler.record(rows, here)
    copies = np.array([[before, here]])
    judged = copied and changed is not None
    if judged:
        engine._learn(rows, copies, np.array([changed]), here)
    else:
        if not copied:
            engine._join_groups(rows, here)
        engine._renew(rows, copies, here)
    engine._weigh(rows, here)
    if type(engine.choice) is not Choice:
        elapsed = np.array([here - before if copied else np.nan])
        seen = np.array([bool(changed)])
        engine.choice.recorded(engine, Ended(rows, np.ones(1, np.bool_), elapsed, np.array([judged]), seen))
    engine.eligibility.fetched(rows)
