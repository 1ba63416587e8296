"""Rows: what must be kept of each page so that an engine can be built anew, as columns by URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError

if TYPE_CHECKING:
    from recrawl.engine.engine import Engine

Ids = NDArray[np.int64]

_BELIEF = ("gamma", "heard", "signals", "watched", "n_crawls", "n_changes")
COLUMNS = ("url", "importance", "fetched_at", *_BELIEF, "failures", "times_gone", "wait_until")


def rows_of(engine: Engine, rows: Ids) -> dict[str, Any]:
    """Columns with one row per page, and what belongs to the engine as a whole."""
    record, belief, waiting = engine.scheduler._memory.state.rec[rows], engine.beliefs.belief, engine.waiting
    return {
        "settings": engine.settings.as_dict(),
        "prior": belief.prior.copy(),
        "crawls": engine.beliefs.crawls,
        "refit_at": engine.beliefs.refit_at,
        "url": engine.url(rows),
        "importance": engine.given[rows],
        "fetched_at": record["last"].copy(),
        **{name: getattr(belief, name)[rows] for name in _BELIEF},
        "failures": np.array([waiting.failures(page) for page in rows.tolist()], np.int64),
        "times_gone": np.array([waiting.times_gone(page) for page in rows.tolist()], np.int64),
        "wait_until": np.array([waiting.until(page) for page in rows.tolist()]),
    }


def fill(engine: Engine, saved: Mapping[str, Any], now: float) -> None:
    """Fill an empty engine from rows; leases are over, pages that waited go on waiting."""
    missing = [name for name in ("prior", "crawls", "refit_at", *COLUMNS) if name not in saved]
    if missing:
        raise ParameterError(f"rows have no column {missing[0]}")
    n = len(saved["url"])
    for name in COLUMNS:
        if len(saved[name]) != n:
            raise ParameterError(f"rows: {name} has {len(saved[name])} rows but there are {n} URLs")
    engine.beliefs.belief.prior[:] = saved["prior"]
    ids = engine.add(list(saved["url"]), now, fetched_at=saved["fetched_at"], importance=saved["importance"])
    if len(np.unique(ids)) != n:
        raise ParameterError("rows: a URL is there twice")
    for name in _BELIEF:
        getattr(engine.beliefs.belief, name)[ids] = saved[name]
    engine.beliefs.crawls, engine.beliefs.refit_at = int(saved["crawls"]), int(saved["refit_at"])
    engine._believe(ids, now)
    _hear_again(engine, ids, now)
    for page, failures, gone, until in zip(
        ids.tolist(), saved["failures"], saved["times_gone"], saved["wait_until"], strict=True
    ):
        engine.waiting.put(page, int(failures), int(gone), float(until))
        if until > now:
            engine.scheduler.pause([page])


def _hear_again(engine: Engine, ids: Ids, now: float) -> None:
    """Tell the scheduler of the signals that came since each copy was fetched."""
    if engine.scheduler.policy != "signals":
        return
    heard = engine.beliefs.belief.heard[ids].astype(np.int64)
    for source in range(heard.shape[1]):
        engine.scheduler.signal(np.repeat(ids, heard[:, source]), now, source=source)
