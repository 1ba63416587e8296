"""Rows: what must be kept of each page so that an engine can be built anew, as columns by URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.addresses import host_of
from recrawl.engine.beliefs.beliefs import moved_along, priors_of
from recrawl.engine.effects.effects import STATED
from recrawl.errors import ParameterError
from recrawl.estimate.importance import RequestRates
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.engine.engine import Engine

Ids = NDArray[np.int64]

_BELIEF = ("gamma", "heard", "signals", "watched", "n_crawls", "n_changes", "own", "told")
_ASKED = ("request_weight", "requested_at", "watched_from")
_WAITING = ("paused", "failures", "times_gone", "wait_until")
_DECIDING = ("change_rate", "importance", "recall", "false_rate", "cost", "evidence")  # what the scheduler goes by
COLUMNS = ("url", "given", "fetched_at", "prior_at", *_DECIDING, *_BELIEF, *_ASKED, *_WAITING)
_RELATED = ("sibling_weight", "twin", "changed_at", "factor")  # with siblings, bursts, group priors or seasons
_WHOLE = ("settings", "prior", "priors", "scores", "crawls", "refit_at", "hosts")


def rows_of(engine: Engine, rows: Ids, *, all_hosts: bool) -> dict[str, Any]:
    """Columns with one row per page, and what belongs to the engine as a whole; hosts: all, or those of the pages.

    Rows that were taken at different times go together: each says which prior its belief goes with (``prior_at``).
    """
    belief, waiting = engine.beliefs.belief, engine.waiting
    return {
        "columns": [*COLUMNS, *(_RELATED if engine.parts.any else ())],
        "settings": engine.settings.as_dict(),
        "prior": belief.prior.copy(),
        "priors": list(engine.beliefs.priors),
        "scores": belief.scores.copy(),
        "crawls": engine.beliefs.crawls,
        "refit_at": engine.beliefs.refit_at,
        "account": belief.account.tolist(),
        "stated": {name: getattr(engine.parts.arrays, name).tolist() for name in STATED},
        "threshold": engine.threshold,
        "hosts": _hosts(engine, engine._ruled if all_hosts else {host_of(url) for url in engine.url(rows)}),
        "url": engine.url(rows),
        "given": engine.given[rows],
        "fetched_at": access.last_fetched(engine.scheduler, rows),
        "prior_at": np.full(len(rows), len(engine.beliefs.priors) - 1),
        **_deciding(engine, rows),
        **{name: getattr(belief, name)[rows] for name in _BELIEF},
        **_related(engine, rows),
        **_asked(engine, rows),
        "paused": np.array([page in engine._paused for page in rows.tolist()], np.bool_),
        "failures": np.array([waiting.failures(page) for page in rows.tolist()], np.int64),
        "times_gone": np.array([waiting.times_gone(page) for page in rows.tolist()], np.int64),
        "wait_until": np.array([waiting.until(page) for page in rows.tolist()]),
    }


def fill(engine: Engine, saved: Mapping[str, Any], now: float) -> None:
    """Fill an empty engine from rows; leases are over, pages that waited go on waiting."""
    missing = [name for name in (*_WHOLE, *COLUMNS) if name not in saved]
    if missing:
        raise ParameterError(f"rows have no column {missing[0]}")
    n = len(saved["url"])
    for name in COLUMNS:
        if len(saved[name]) != n:
            raise ParameterError(f"rows: {name} has {len(saved[name])} rows but there are {n} URLs")
    belief = engine.beliefs.belief
    belief.prior[:], belief.scores[:] = saved["prior"], saved["scores"]
    engine.beliefs.crawls, engine.beliefs.refit_at = int(saved["crawls"]), int(saved["refit_at"])
    engine.beliefs.priors = [list(prior) for prior in saved["priors"]]
    belief.account[:] = saved.get("account", 0.0)
    for name, value in saved.get("stated", {}).items():
        getattr(engine.parts.arrays, name)[:] = value
    access.add_hosts(engine.scheduler, saved["hosts"])
    for host, (spacing, limit, until) in saved["hosts"].items():
        engine.host(host, spacing=spacing, concurrency=None if limit == np.inf else int(limit))
        engine.hold(host, until)
    ids = engine.add(list(saved["url"]), now, fetched_at=saved["fetched_at"], importance=saved["given"])
    if len(np.unique(ids)) != n:
        raise ParameterError("rows: a URL is there twice")
    if n:
        _fill_pages(engine, ids, saved, now)


def _fill_pages(engine: Engine, ids: Ids, saved: Mapping[str, Any], now: float) -> None:
    for name in _BELIEF:
        getattr(engine.beliefs.belief, name)[ids] = saved[name]
    engine.beliefs.hear(ids, np.asarray(saved["heard"], np.float64).reshape(len(ids), -1), now)
    engine.beliefs.belief.counted[ids] = np.asarray(saved["n_crawls"]) > 0
    if engine.parts.any and "parts" in saved:
        _fill_parts(engine, ids, saved)
    moved = ids[_move_along(engine, ids, saved)]
    engine.newcomers.leave(engine.scheduler, ids[~_alike(engine, saved)])
    engine.scheduler.update(ids, **{name: saved[name] for name in _DECIDING})
    if np.any(saved["watched_from"]) or np.any(saved["request_weight"]):
        asked = (saved[name] for name in ("watched_from", "request_weight", "requested_at"))
        state = {"half_life": engine.request_half_life, **dict(zip(("start", "weight", "at"), asked, strict=True))}
        engine.requests = RequestRates.restore(state)
    engine._believe(moved, now)
    _hear_again(engine, ids, now)
    engine.pause(ids[np.asarray(saved["paused"], np.bool_)])
    until = np.asarray(saved["wait_until"], np.float64)
    failures, gone = (np.asarray(saved[name], np.int64) for name in ("failures", "times_gone"))
    for j in np.flatnonzero((until > -np.inf) | (failures > 0) | (gone > 0)).tolist():
        engine.waiting.put(int(ids[j]), int(failures[j]), int(gone[j]), float(until[j]))
    engine.newcomers.leave(engine.scheduler, ids[until > now])
    engine.scheduler.pause(ids[until > now])
    if "threshold" in saved:
        access.set_threshold(engine.scheduler, float(saved["threshold"]))


def _fill_parts(engine: Engine, ids: Ids, saved: Mapping[str, Any]) -> None:
    parts = engine.parts
    parts.fit(engine.scheduler, saved["parts"])
    engine.beliefs.belief.half_life[0] = parts.half_life
    there = [j for j, factor in enumerate(saved["factor"]) if factor is not None]  # older rows know nothing of parts
    known = ids[there]
    engine.beliefs.belief.factor[known] = [saved["factor"][j] for j in there]
    if parts.related:
        access.set_changed_at(engine.scheduler, known, [saved["changed_at"][j] for j in there])
    if parts.siblings:
        parts.arrays.weight[ids] = parts.arrays.prior
        parts.arrays.weight[known] = np.reshape([saved["sibling_weight"][j] for j in there], (-1, 2))
        _fill_twins(engine, ids, saved)
        parts.gather(engine.scheduler, ids)
    fit = engine.beliefs.fit_now(ids)
    if fit is not None:
        parts.factors(fit, len(ids))  # for pages yet to come


def _fill_twins(engine: Engine, ids: Ids, saved: Mapping[str, Any]) -> None:
    """What would be believed the other way, heeding siblings or not; that may have changed since a row was written.

    It has where more of the changes are the page's own with siblings than without.
    """
    parts, beliefs = engine.parts.arrays, engine.beliefs
    twins, since = saved.get("twin", [None] * len(ids)), np.asarray(saved["prior_at"], np.int64)
    there = np.array([row is not None for row in twins], np.bool_)  # older rows do not know of it
    own, twin = beliefs.belief.own[ids], np.zeros((len(ids), 3))
    twin[there] = np.reshape([row for row in twins if row is not None], (-1, 3))
    swapped = there & ((own > twin[:, 2]) == parts.heeded[0]) & ~np.isclose(own, twin[:, 2])
    parts.twin[ids] = twin
    for k in np.unique(since[swapped | ~there]).tolist():
        alike, mine = ~there & (since == k), swapped & (since == k)
        parts.twin[ids[alike]] = beliefs.found(ids[alike], beliefs.priors[k])
        parts.twin[ids[mine]] = beliefs.found(ids[mine], beliefs.priors[k])
        beliefs.find(ids[mine], twin[mine], beliefs.priors[k])


def _move_along(engine: Engine, ids: Ids, saved: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Let beliefs that were written under an earlier prior go the way it has gone since; which ones they are."""
    priors, since = engine.beliefs.priors, np.asarray(saved["prior_at"], np.int64)
    movable = ~np.asarray(saved["told"], np.bool_)
    gamma = engine.beliefs.belief.gamma
    for k in range(int(since.min()), len(priors) - 1):
        rows = ids[movable & (since <= k)]
        factor = engine.beliefs.belief.factor[rows]
        gamma[rows, 0] = moved_along(gamma[rows, 0], priors_of(priors[k], factor), priors_of(priors[k + 1], factor))
    return np.asarray(movable & (since < len(priors) - 1))


def _related(engine: Engine, rows: Ids) -> dict[str, Any]:
    parts = engine.parts
    if not parts.any:
        return {}
    return {
        "parts": parts.fitted(engine.scheduler),
        "sibling_weight": parts.arrays.weight[rows] if parts.siblings else np.zeros((len(rows), 2)),
        "twin": parts.arrays.twin[rows] if parts.siblings else np.zeros((len(rows), 3)),
        "changed_at": access.changed_at(engine.scheduler, rows),
        "factor": engine.beliefs.belief.factor[rows],
    }


def _alike(engine: Engine, saved: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Pages of which nothing but their importance and age is known: they may stand in line."""
    unseen = np.asarray(saved["n_crawls"]) == 0
    gamma = engine.beliefs.belief.gamma[: len(unseen)]
    plain = (np.asarray(saved["importance"]) == saved["given"]) & (np.asarray(saved["cost"]) == 1.0)
    silent = ~(np.asarray(saved["heard"]) + np.asarray(saved["signals"])).any(axis=1)
    belief = engine.beliefs.belief
    prior = np.repeat(belief.prior[None], len(unseen), axis=0)
    prior[:, 0, 1] /= belief.factor[: len(unseen)]
    at_prior = np.isclose(gamma, prior, rtol=1e-9, atol=0.0).all(axis=(1, 2))
    return np.asarray(unseen & plain & silent & at_prior)


def _deciding(engine: Engine, rows: Ids) -> dict[str, Any]:
    if len(rows) == 0:
        return {name: np.zeros(0) for name in _DECIDING}
    pages = access.parameters(engine.scheduler, rows)
    return {name: np.array(getattr(pages, name)) for name in _DECIDING}


def _hosts(engine: Engine, some: set[str]) -> dict[str, tuple[float, float, float]]:
    """Per host with rules: spacing, how many at once, held until."""
    rules = {host: access.host_rules(engine.scheduler, host) for host in sorted(engine._ruled & some)}
    return {host: rule for host, rule in rules.items() if rule is not None}


def _asked(engine: Engine, rows: Ids) -> dict[str, Any]:
    if engine.requests is None:
        return {name: np.zeros(len(rows)) for name in _ASKED}
    state = engine.requests.state()
    return {name: state[column][rows] for name, column in zip(_ASKED, ("weight", "at", "start"), strict=True)}


def _hear_again(engine: Engine, ids: Ids, now: float) -> None:
    """Tell the scheduler of the signals that came since each copy was fetched."""
    if engine.scheduler.policy != "signals":
        return
    heard = engine.beliefs.belief.heard[ids].astype(np.int64)
    for source in range(heard.shape[1]):
        engine.scheduler.signal(np.repeat(ids, heard[:, source]), now, source=source)
