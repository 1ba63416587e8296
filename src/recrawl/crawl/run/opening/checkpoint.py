"""The engine of a database from a checkpoint beside it, and the rows that were saved since.

A checkpoint is used if this code wrote it, its mark is in the database, the settings of the engine and the rules are
the same (the budget may differ), and the clock was not set back. Otherwise the engine is built from all rows.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from recrawl._system.trees import DamagedFileError
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.run.opening.pending import hear_pending, without_heard
from recrawl.engine import Engine
from recrawl.engine.checkpoint import checkpoint_about, read_checkpoint
from recrawl.engine.rows import take_later
from recrawl.engine.settings import Settings, without_removed
from recrawl.logs import event
from recrawl.store.protocol import MarkedStore, Store

log = logging.getLogger(__name__)

_MOST_CHANGED = 0.5  # of the pages: with more, building the engine from all rows is quicker
_MOST_IDS = 1.5  # ids ever given, per page: beyond it, building the engine again saves memory
_TOLERANCE = 5.0  # seconds that clocks of two runs may differ


def rules_stamp(rules: Rules) -> str:
    """A text that differs for other rules."""
    return hashlib.blake2b(repr(rules.rules).encode(), digest_size=16).hexdigest()


def clean_up(path: Path) -> None:
    """Delete what checkpoints that were never completed have left."""
    for partial in path.parent.glob(f"{path.name}.*.part"):
        partial.unlink(missing_ok=True)


async def from_checkpoint(store: Store, saved: Mapping[str, Any], rules: Rules, now: float) -> Engine | None:
    """The engine of a store by its checkpoint; None if there is none, or it cannot be used.

    ``saved`` is what rows say of the engine as a whole, with the settings that it is to have.
    """
    if not isinstance(store, MarkedStore):
        return None
    clean_up(store.checkpoint_path)
    try:
        engine = await _resumed(store, saved, rules, now)
    except FileNotFoundError:
        return None
    except (DamagedFileError, OSError) as problem:
        event(log, logging.WARNING, "checkpoint.ignored", file=store.checkpoint_path, reason=str(problem))
        return None
    return engine


async def _resumed(store: Any, saved: Mapping[str, Any], rules: Rules, now: float) -> Engine:
    about = await asyncio.to_thread(checkpoint_about, store.checkpoint_path)
    if about["rules"] != rules_stamp(rules):
        raise DamagedFileError("there are other rules")
    changes = await store.changes_since(about["mark"])
    if changes is None:
        raise DamagedFileError("it is not about this database as it is")
    totals = await store.totals()
    if len(changes.urls) + len(changes.removed) > _MOST_CHANGED * max(totals.pages, 1):
        raise DamagedFileError("most pages were written since")
    engine = await asyncio.to_thread(read_checkpoint, store.checkpoint_path)
    _check(engine, saved, now)
    later = {**await store.load(changes.urls), "settings": saved["settings"], "hosts": saved["hosts"]}
    pending = await store.signals(changes.urls)
    if pending:
        without_heard(later)
    take_later(engine, later, changes.removed, now)
    hear_pending(engine, pending, now)
    if len(engine) != totals.pages:
        raise DamagedFileError(f"it leads to {len(engine)} pages, not {totals.pages}")
    event(log, logging.INFO, "checkpoint.used", pages=len(engine), replayed=len(changes.urls))
    return engine


def _check(engine: Engine, saved: Mapping[str, Any], now: float) -> None:
    """Refuse an engine of other settings or a later time, or one with many ids of removed pages."""
    wanted = Settings(**without_removed(saved["settings"]))
    if replace(engine.settings, budget=None) != replace(wanted, budget=None):
        raise DamagedFileError("the engine has other settings")
    if engine.now > now + _TOLERANCE:
        raise DamagedFileError("the clock was set back")
    if len(engine.addresses) > _MOST_IDS * max(len(engine), 1):
        raise DamagedFileError("most of its pages were removed")
