"""Rows: what must be saved of each page so that an engine can be built again, as columns by URL.

Names of columns are those of the stores and stay as they are: ``told`` is `Belief.fixed_rate`, ``account`` the
staleness ledger, ``stated`` the calibration, ``parts`` the effects and ``twin`` the alternative belief of a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.addresses import host_of
from recrawl.engine.beliefs.beliefs import moved_along
from recrawl.errors import ParameterError
from recrawl.estimate.importance import RequestRates
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.engine.engine import Engine

Ids = NDArray[np.int64]

_BELIEF = {name: name for name in ("gamma", "heard", "signals", "watched", "n_crawls", "n_changes", "own")}
FIXED_RATE = "told"  # name in rows of `Belief.fixed_rate`
_BELIEF[FIXED_RATE] = "fixed_rate"
_ASKED = ("request_weight", "requested_at", "watched_from")
_WAITING = ("paused", "failures", "times_gone", "wait_until")
_DECIDING = ("change_rate", "importance", "recall", "false_rate", "cost", "evidence")  # the scheduler's parameters
COLUMNS = ("url", "given", "fetched_at", "prior_at", *_DECIDING, *_BELIEF, *_ASKED, *_WAITING)
_RELATED = ("sibling_weight", "twin", "changed_at")  # with siblings
_WHOLE = ("settings", "prior", "priors", "scores", "crawls", "refit_at", "hosts")


def rows_of(engine: Engine, rows: Ids, *, all_hosts: bool) -> dict[str, Any]:
    """Columns with one row per page, and what belongs to the engine as a whole; hosts: all, or those of the pages.

    Rows that were saved at different times can be combined: each says which prior its belief belongs to (``prior_at``).
    """
    belief = engine.beliefs.belief
    return {
        "columns": [*COLUMNS, *(_RELATED if engine.effects.siblings else ()), *engine.choice.columns(rows)],
        "policy": engine.choice.saved(),
        **engine.choice.columns(rows),
        "settings": engine.settings.as_dict(),
        "prior": belief.prior.copy(),
        "priors": list(engine.beliefs.priors),
        "scores": belief.scores.copy(),
        "crawls": engine.beliefs.crawls,
        "refit_at": engine.beliefs.refit_at,
        "account": belief.ledger.tolist(),
        "stated": engine.effects.calibration(),
        "threshold": engine.threshold,
        "hosts": _hosts(engine, engine._ruled if all_hosts else {host_of(url) for url in engine.url(rows)}),
        "url": engine.url(rows),
        "given": engine.given[rows],
        "fetched_at": engine.fetched_at(rows),
        "prior_at": np.full(len(rows), len(engine.beliefs.priors) - 1),
        **_deciding(engine, rows),
        **{name: getattr(belief, mine)[rows] for name, mine in _BELIEF.items()},
        **_related(engine, rows),
        **_asked(engine, rows),
        **engine.eligibility.columns(rows),
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
    belief.ledger[:] = saved.get("account", 0.0)
    engine.effects.calibrate(saved.get("stated", {}))
    access.add_hosts(engine.scheduler, saved["hosts"])
    for host, (spacing, limit, until) in saved["hosts"].items():
        engine.host(host, spacing=spacing, concurrency=None if limit == np.inf else int(limit))
        engine.hold(host, until)
    ids = engine._add_named(list(saved["url"]), now, fetched_at=saved["fetched_at"], importance=saved["given"])
    if len(np.unique(ids)) != n:
        raise ParameterError("rows: a URL is there twice")
    if n:
        _fill_pages(engine, ids, saved, now)
    elif _has_siblings(engine, saved):
        engine.effects.fit(engine.scheduler, saved["parts"])
    engine.choice.load(engine, saved.get("policy", {}), saved)
    if "threshold" in saved:
        access.set_threshold(engine.scheduler, float(saved["threshold"]))


def _fill_pages(engine: Engine, ids: Ids, saved: Mapping[str, Any], now: float) -> None:
    for name, mine in _BELIEF.items():
        getattr(engine.beliefs.belief, mine)[ids] = saved[name]
    engine.beliefs.hear(ids, np.asarray(saved["heard"], np.float64).reshape(len(ids), -1), now)
    engine.beliefs.belief.counted[ids] = np.asarray(saved["n_crawls"]) > 0
    if _has_siblings(engine, saved):
        _fill_effects(engine, ids, saved)
    moved = ids[_move_along(engine, ids, saved)]
    engine.eligibility.cohorts.leave(engine.scheduler, ids[~_equal(engine, saved)])
    engine.scheduler.update(ids, **{name: saved[name] for name in _DECIDING})
    if np.any(saved["watched_from"]) or np.any(saved["request_weight"]):
        asked = (saved[name] for name in ("watched_from", "request_weight", "requested_at"))
        state = {"half_life": engine.request_half_life, **dict(zip(("start", "weight", "at"), asked, strict=True))}
        engine.requests = RequestRates.restore(state)
    engine._believe(moved, now)
    _hear_again(engine, ids, now)
    engine.eligibility.fill(ids, saved, now)


def _has_siblings(engine: Engine, saved: Mapping[str, Any]) -> bool:
    """Whether siblings are enabled and rows say what was learned of them."""
    return engine.effects.siblings and "parts" in saved and saved["parts"]["active"][0] >= 0


def _fill_effects(engine: Engine, ids: Ids, saved: Mapping[str, Any]) -> None:
    effects = engine.effects
    effects.fit(engine.scheduler, saved["parts"])
    there = [j for j, weight in enumerate(saved["sibling_weight"]) if weight is not None]  # older rows have no effects
    known = ids[there]
    access.set_changed_at(engine.scheduler, known, [saved["changed_at"][j] for j in there])
    effects.arrays.weight[ids] = effects.arrays.prior
    effects.arrays.weight[known] = np.reshape([saved["sibling_weight"][j] for j in there], (-1, 2))
    _fill_alternatives(engine, ids, saved)
    effects.join_groups(engine.scheduler, ids)


def _fill_alternatives(engine: Engine, ids: Ids, saved: Mapping[str, Any]) -> None:
    """Alternative beliefs of pages; whether siblings are used may have changed since a row was saved.

    It has where more of the changes are the page's own with siblings than without.
    """
    effects, beliefs = engine.effects.arrays, engine.beliefs
    alternatives, since = saved.get("twin", [None] * len(ids)), np.asarray(saved["prior_at"], np.int64)
    there = np.array([row is not None for row in alternatives], np.bool_)  # older rows do not have it
    own, alternative = beliefs.belief.own[ids], np.zeros((len(ids), 3))
    alternative[there] = np.reshape([row for row in alternatives if row is not None], (-1, 3))
    swapped = there & ((own > alternative[:, 2]) == effects.used[0]) & ~np.isclose(own, alternative[:, 2])
    effects.alternative[ids] = alternative
    for k in np.unique(since[swapped | ~there]).tolist():
        alike, mine = ~there & (since == k), swapped & (since == k)
        effects.alternative[ids[alike]] = beliefs.found(ids[alike], beliefs.priors[k])
        effects.alternative[ids[mine]] = beliefs.found(ids[mine], beliefs.priors[k])
        beliefs.find(ids[mine], alternative[mine], beliefs.priors[k])


def _move_along(engine: Engine, ids: Ids, saved: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Move beliefs that were saved under an earlier prior as it has moved since; which ones they are."""
    priors, since = engine.beliefs.priors, np.asarray(saved["prior_at"], np.int64)
    movable = ~np.asarray(saved[FIXED_RATE], np.bool_)
    gamma = engine.beliefs.belief.gamma
    for k in range(int(since.min()), len(priors) - 1):
        rows = ids[movable & (since <= k)]
        gamma[rows, 0] = moved_along(gamma[rows, 0], priors[k], priors[k + 1])
    return np.asarray(movable & (since < len(priors) - 1))


def _related(engine: Engine, rows: Ids) -> dict[str, Any]:
    effects = engine.effects
    if not effects.siblings:
        return {}
    return {
        "parts": effects.fitted(engine.scheduler),
        "sibling_weight": effects.arrays.weight[rows],
        "twin": effects.arrays.alternative[rows],
        "changed_at": access.changed_at(engine.scheduler, rows),
    }


def _equal(engine: Engine, saved: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Pages of which nothing but their importance and age is known: they may form cohorts."""
    unseen = np.asarray(saved["n_crawls"]) == 0
    gamma = engine.beliefs.belief.gamma[: len(unseen)]
    plain = (np.asarray(saved["importance"]) == saved["given"]) & (np.asarray(saved["cost"]) == 1.0)
    silent = ~(np.asarray(saved["heard"]) + np.asarray(saved["signals"])).any(axis=1)
    at_prior = np.isclose(gamma, engine.beliefs.belief.prior, rtol=1e-9, atol=0.0).all(axis=(1, 2))
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
    """Pass the signals that came since each copy was fetched to the scheduler."""
    if engine.scheduler.policy != "signals":
        return
    heard = engine.beliefs.belief.heard[ids].astype(np.int64)
    for source in range(heard.shape[1]):
        engine.scheduler.signal(np.repeat(ids, heard[:, source]), now, source=source)
