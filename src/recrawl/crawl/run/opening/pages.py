"""Pages of an engine: opened from a store, added under rules, saved."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.crawl.config.rules import Rules
from recrawl.crawl.feeds.cache import apply_notes
from recrawl.crawl.feeds.polling import PREFIX
from recrawl.crawl.polite.budget import MARK
from recrawl.crawl.run.opening.checkpoint import from_checkpoint
from recrawl.crawl.run.opening.pending import hear_pending, sources_setting, without_heard
from recrawl.crawl.run.opening.replay import replay_outcomes
from recrawl.engine import Engine
from recrawl.engine.names.addresses import host_of
from recrawl.engine.rows import PARTIAL, SIGNALLED, move_signal_times
from recrawl.engine.settings import REMOVED
from recrawl.logs import event
from recrawl.store.columns import TIMES
from recrawl.store.protocol import MarkedStore, Store, Totals

log = logging.getLogger(__name__)

Ids = NDArray[np.int64]

PAUSED_UNTIL = 253402300800.0  # the year 10000: the wait of pages that a user has paused
_MANY = 20_000  # pages written at a time
_YEAR = 365.0 * 86400.0
_TOLERANCE = 5.0  # seconds that clocks of two runs may differ


@dataclass(frozen=True)
class Part:
    """A part of a store's pages, for an engine with these pages and all that was learned of all pages together."""

    urls: Sequence[str]
    totals: Totals  # of all pages
    hosts: Container[str] = ()  # whose rules the engine has besides those of the pages' hosts


async def open_engine(
    store: Store,
    now: float,
    *,
    rules: Rules | None = None,
    part: Part | None = None,
    kinds: Collection[str] = (),
    save: bool = False,
    checkpoint: bool = False,
    **settings: Any,
) -> Engine:
    """The engine of a store as it was left, or a new one; ``settings`` are those of `Engine`.

    ``kinds`` are the kinds of signal sources that are switched on. Pending signals are given to the engine again.
    If the clock was set back since, all saved times move back with it. Observations that rows of earlier versions lack
    are filled in from stored outcomes; with ``save`` they are written, so that this is done once. With ``checkpoint``
    the engine continues from one, if there is one that fits; without it, ``save`` drops what was kept for one.
    """
    rules = rules or Rules()
    if save and not checkpoint and isinstance(store, MarkedStore):
        await store.drop_marks()
        store.checkpoint_path.unlink(missing_ok=True)
    engine = await _continued(store, now, rules, kinds, settings) if checkpoint else None
    if engine is None:
        engine = await _built(store, now, part, kinds, settings, save=save)
    apply_rules(engine, rules, engine.ids())
    apply_notes(engine, rules, await store.notes(PREFIX))
    return engine


async def _continued(
    store: Store, now: float, rules: Rules, kinds: Collection[str], settings: Mapping[str, Any]
) -> Engine | None:
    """The engine by its checkpoint; None if there is none that fits."""
    saved = await store.load([])
    if saved is None:
        return None
    sources = await sources_setting(store, kinds, saved)
    saved["settings"] = {**saved["settings"], **sources, **settings}
    _reset_host_rules(saved)
    return await from_checkpoint(store, saved, rules, now)


async def _built(
    store: Store, now: float, part: Part | None, kinds: Collection[str], settings: Mapping[str, Any], *, save: bool
) -> Engine:
    """The engine by the rows of its pages."""
    saved = await store.load(None if part is None else part.urls)
    settings = {**await sources_setting(store, kinds, saved), **settings}
    if saved is None:
        return Engine(start=now, **settings)
    newest = float(np.max(saved["fetched_at"], initial=now))
    if part is not None:
        newest = max(part.totals.fetched_at or now, now)
        mine = {host_of(url) for url in saved["url"]}
        saved["hosts"] = {host: rule for host, rule in saved["hosts"].items() if host in mine or host in part.hosts}
        saved[PARTIAL] = True
    ignored = [name for name in REMOVED if saved["settings"].get(name)]
    if ignored:
        event(log, logging.WARNING, "settings.ignored", settings=", ".join(ignored), reason="no longer exist")
    before, saved["settings"] = saved["settings"], {**saved["settings"], **settings}
    if any(saved["settings"].get(name) != before.get(name) for name in ("objective", "policy")):
        saved.pop("threshold", None)  # a value of another kind
    _clear_copies(saved, now)
    _move_times(saved, newest, (await store.notes(MARK)).get(MARK), now)
    _reset_host_rules(saved, now)
    replayed = await replay_outcomes(store, saved)
    pending = await store.signals(None if part is None else part.urls)
    if pending:
        without_heard(saved)
    engine = Engine.restore(saved, now)
    hear_pending(engine, pending, now)
    if replayed:
        event(log, logging.INFO, "beliefs.replayed", pages=len(replayed))
    if replayed and save:
        await save_pages(engine, store, engine.ids())
    return engine


def _reset_host_rules(saved: dict[str, Any], free_at: float = -math.inf) -> None:
    """Hosts have the rules of the settings, and are held as long as they were.

    Where the settings have no rules, hosts are left out that may be asked at ``free_at``.
    """
    spacing, most = (saved["settings"].get(name) for name in ("host_spacing", "host_concurrency"))
    rule = (spacing or 0.0, np.inf if most is None else most)
    free_at = free_at if rule == (0.0, np.inf) else -math.inf
    saved["hosts"] = {host: (*rule, until) for host, (*_, until) in saved["hosts"].items() if until >= free_at}


def _clear_copies(saved: dict[str, Any], now: float) -> None:
    """Pages that were never fetched: earlier versions saved them as fetched a year before they were added."""
    fetched = np.asarray(saved["fetched_at"], np.float64)
    never = (np.asarray(saved["n_crawls"]) == 0) & (fetched <= now - _YEAR + 1.0)
    saved["fetched_at"] = np.where(never, -np.inf, fetched)


def _move_times(saved: dict[str, Any], newest: float, mark: float | None, now: float) -> None:
    back = newest - now
    if mark is not None and back <= _TOLERANCE:
        back = min(mark - 86400.0 - now, back)
    if back <= _TOLERANCE:
        return
    for name in TIMES:
        saved[name] = np.asarray(saved[name]) - back
    if SIGNALLED in saved:
        move_signal_times(saved, back)
    saved["hosts"] = {host: (spacing, most, until - back) for host, (spacing, most, until) in saved["hosts"].items()}


def apply_rules(engine: Engine, rules: Rules, ids: Ids) -> None:
    """Apply rules to pages: importance, intervals, and which are never crawled."""
    paused = ids[engine.is_paused(ids)]
    never, importance, floors = [], list[tuple[int, float]](), defaultdict[float, list[int]](list)
    if rules.rules:
        for page, url in zip(ids.tolist(), engine.url(ids), strict=True):
            ruling = rules.of(url)
            if ruling.never:
                never.append(page)
            if ruling.importance is not None and engine.given[page] != ruling.importance:
                importance.append((page, ruling.importance))
            if ruling.max_interval is not None:
                floors[1.0 / ruling.max_interval].append(page)
    engine.resume(paused[~np.isin(paused, never)])
    engine.pause(np.setdiff1d(never, paused).astype(np.int64))
    if importance:
        engine.update([page for page, _ in importance], importance=[value for _, value in importance])
    for floor, pages in floors.items():
        engine.set_floor(pages, floor)


def add_pages(
    engine: Engine, rules: Rules, urls: Sequence[str], now: float, *, importance: ArrayLike = 1.0, **known: Any
) -> Ids:
    """Add pages to the engine, known ones unchanged; the ids of the new ones."""
    before = len(engine.addresses)
    if rules.rules:  # before they are added, so that equal pages stay in one cohort
        ruled = [rules.of(url).importance for url in urls]
        given = np.broadcast_to(np.asarray(importance, np.float64), (len(urls),)).tolist()
        importance = [one if rule is None else rule for one, rule in zip(given, ruled, strict=True)]
    ids = engine.add(urls, now, importance=importance, **known)
    new = np.unique(ids[ids >= before])
    apply_rules(engine, rules, new)
    return new


def set_importance(engine: Engine, rules: Rules, urls: Sequence[str], importance: float) -> Ids:
    """Set the importance of those pages whose importance is not given by a rule; their ids."""
    known = engine.addresses.known([url for url in urls if rules.of(url).importance is None])
    ids = np.unique(known[known >= 0])
    engine.update(ids, importance=np.full(len(ids), importance))
    return ids


def is_paused(engine: Engine, ids: ArrayLike) -> NDArray[np.bool_]:
    """Which pages are paused, by the user or by a rule."""
    return (engine.deferred_until(ids) >= PAUSED_UNTIL) | engine.is_paused(ids)


def pause_pages(engine: Engine, urls: Sequence[str], *, paused: bool) -> Ids:
    """Pause pages, or resume them; their ids. It is a wait without end: rules alone pause pages otherwise."""
    known = engine.addresses.known(urls)
    ids = np.unique(known[known >= 0])
    if paused:
        engine.defer(ids, PAUSED_UNTIL)
    else:
        engine.end_deferral(ids)
    return ids


async def save_pages(engine: Engine, store: Store, ids: Ids, **more: Any) -> None:
    """Write the rows of pages, many at a time; ``more`` is written with the last batch."""
    parts = [ids[k : k + _MANY] for k in range(0, len(ids), _MANY)] or [ids]
    for part in parts[:-1]:
        await store.save(rows=engine.rows(part))
    await store.save(rows=engine.rows(parts[-1]), **more)
