"""Rows: what must be saved of each page so that an engine can be built again, as columns by URL.

Names of columns are those of the stores; earlier names are read too (`_EARLIER`). ``prior_at`` is the fit of the tables
that a gamma goes with. Gammas of earlier fits are computed again. Rows of earlier versions have counts but no
observations (``seen``): unless the reader of the rows has filled them in from stored outcomes, they are estimated from
the counts, and the gammas stay. What rows of earlier versions say of signals (``heard``, ``signals``, gammas of
sources) is not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.beliefs.arrays import ALL
from recrawl.engine.beliefs.beliefs import estimated_seen
from recrawl.engine.names.addresses import host_of, urls_of
from recrawl.engine.signals.signals import moved_gates
from recrawl.errors import ParameterError
from recrawl.model.pages import Pages
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.engine.engine import Engine
    from recrawl.engine.questions import Questions

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_BELIEF = ("gamma", "watched", "n_crawls", "n_changes", "fixed_rate")
_ASKED = ("request_weight", "requested_at", "watched_from")
_WAITING = ("paused", "failures", "times_gone", "wait_until")
_DECIDING = ("change_rate", "importance", "cost", "evidence")  # the scheduler's parameters
COLUMNS = ("url", "given", "fetched_at", "prior_at", "own", *_DECIDING, *_BELIEF, *_ASKED, *_WAITING)
RATE_EVIDENCE = "rate_evidence"  # name in rows of `Belief.evidence`
SIGNALLED = "signalled"  # what was observed of a page with signals, None for others
_CALIBRATION = ("recent", "knots")
_WHOLE = ("settings", "prior", "crawls", "refit_at", "hosts")
PARTIAL = "partial"  # set by a reader of a part of the pages
# What earlier versions saved by another name, and its name now.
_EARLIER = {"told": "fixed_rate", "account": "ledger", "stated": "calibration", "lately": "recent"}
NO_FIT = -1  # ``prior_at`` of gammas that are to be computed in any case


def rows_of(engine: Questions, rows: Ids, *, all_hosts: bool) -> dict[str, Any]:
    """Columns with one row per page, and what belongs to the engine as a whole; hosts: all, or those of the pages.

    Rows that were saved at different times can be combined: each says which fit its gamma goes with (``prior_at``).
    """
    belief = engine.beliefs.belief
    return {
        "columns": [*COLUMNS, "seen", RATE_EVIDENCE, SIGNALLED, *engine.choice.columns(rows)],
        "policy": engine.choice.saved(),
        **engine.choice.columns(rows),
        "settings": engine.settings.as_dict(),
        "prior": belief.prior.copy(),
        "table": engine.beliefs.table.tolist(),
        "strength": belief.strength.tolist(),
        "fits": engine.beliefs.fits,
        "crawls": engine.beliefs.crawls,
        "refit_at": engine.beliefs.refit_at,
        "ledger": belief.ledger.tolist(),
        "calibration": {name: getattr(engine.calibration, name).tolist() for name in _CALIBRATION},
        "clocks": engine.clocks.fitted(),
        "signal_tables": engine.beliefs.signals.fitted(),
        "threshold": engine.threshold,
        "hosts": _hosts(engine, engine._ruled if all_hosts else {host_of(url) for url in engine.url(rows)}),
        "url": engine.url(rows),
        "given": engine.given[rows],
        "fetched_at": engine.fetched_at(rows),
        "prior_at": np.full(len(rows), engine.beliefs.fits),
        "seen": belief.seen[rows],
        RATE_EVIDENCE: belief.evidence[rows],
        SIGNALLED: engine.beliefs.signals.observed(rows),
        "own": belief.n_changes[rows].astype(np.float64),  # in earlier versions, those that no signal explained
        **_deciding(engine, rows),
        **{name: getattr(belief, name)[rows] for name in _BELIEF},
        **_asked(engine, rows),
        **engine.eligibility.columns(rows),
    }


def fill(engine: Engine, saved: Mapping[str, Any], now: float) -> None:
    """Fill an empty engine from rows; leases are over, pages that waited go on waiting."""
    saved = _renamed(saved)
    missing = [name for name in (*_WHOLE, *COLUMNS) if name not in saved]
    if missing:
        raise ParameterError(f"rows have no column {missing[0]}")
    n = len(saved["url"])
    for name in COLUMNS:
        if len(saved[name]) != n:
            raise ParameterError(f"rows: {name} has {len(saved[name])} rows but there are {n} URLs")
    _fill_whole(engine, saved)
    engine.set_host_rules(saved["hosts"])
    known = {"fetched_at": saved["fetched_at"], "importance": saved["given"]}
    ids = engine._add_named(urls_of(saved["url"]), now, **known, admit=False)
    if len(engine.addresses) != n:
        raise ParameterError("rows: a URL is there twice")
    engine.beliefs.signals.take(saved.get("signal_tables", {}), partial=bool(saved.get(PARTIAL)))
    free = _fill_pages(engine, ids, saved, now) if n else np.zeros(0, np.bool_)
    engine.choice.load(engine, saved.get("policy", {}), saved)
    if n:
        engine._admit(ids[free], _alike(saved)[free])
    if "threshold" in saved:
        access.set_threshold(engine.scheduler, float(saved["threshold"]))


def take_later(engine: Engine, saved: Mapping[str, Any], removed: Sequence[str], now: float) -> None:
    """Bring an engine that was restored from a state up to date: by rows that were saved since, and removed URLs.

    Leases are over. The pages of the rows become as the rows say, all others stay as they are. Tables that were fitted
    since are not taken over: a fit is due instead. The engine's policy is the one by value.
    """
    saved = _renamed(saved)
    leased = engine.ids()
    engine.release(leased[access.status(engine.scheduler, leased) == access.LEASED], now)
    here = set(saved["url"])
    gone = engine.addresses.known([url for url in dict.fromkeys(removed) if url not in here])
    engine.remove(gone[gone >= 0])
    fits = engine.beliefs.fits
    _fill_whole(engine, saved)
    engine.set_host_rules(saved["hosts"])
    engine.beliefs.signals.take_later(saved.get("signal_tables", {}))
    if saved["url"]:
        _take_later_pages(engine, saved, now)
    if engine.beliefs.fits != fits:
        engine.beliefs.refit_at = min(engine.beliefs.refit_at, engine.beliefs.crawls)
    if "threshold" in saved:
        access.set_threshold(engine.scheduler, float(saved["threshold"]))


def _take_later_pages(engine: Engine, saved: Mapping[str, Any], now: float) -> None:
    before = engine.addresses.known(saved["url"])
    fetched, there = engine._copies(saved["fetched_at"], len(before)), before >= 0
    engine._start_again(before[there], fetched[there])
    known = {"fetched_at": saved["fetched_at"], "importance": saved["given"]}
    ids = engine._add_named(urls_of(saved["url"]), now, **known, admit=False)
    engine.given[ids] = saved["given"]
    table = engine.beliefs.belief.tables[ALL].copy()
    free = _fill_pages(engine, ids, saved, now, everyone=False)
    engine.beliefs.belief.tables[ALL], engine.beliefs.belief.sizes[ALL] = table, table.sum()
    order = np.argsort(ids[free])
    engine._admit(ids[free][order], _alike(saved)[free][order])


def _renamed(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Rows of any version by the names of today."""
    earlier = {now: saved[name] for name, now in _EARLIER.items() if name in saved}
    return earlier | {name: value for name, value in saved.items() if name not in _EARLIER}


def _fill_whole(engine: Engine, saved: Mapping[str, Any]) -> None:
    """What was learned of all pages together, but for signals."""
    engine.beliefs.take_tables(saved, partial=bool(saved.get(PARTIAL)))
    engine.beliefs.belief.ledger[:] = saved.get("ledger", 0.0)
    calibration = _renamed(saved.get("calibration", {}))
    for name in _CALIBRATION:
        if name in calibration:
            getattr(engine.calibration, name)[:] = calibration[name]
    engine.clocks.take(saved.get("clocks", {}))


def _fill_pages(
    engine: Engine, ids: Ids, saved: Mapping[str, Any], now: float, *, everyone: bool = True
) -> NDArray[np.bool_]:
    """What is known of pages; which of them may be picked."""
    for name in _BELIEF:
        column = np.asarray(saved[name])
        getattr(engine.beliefs.belief, name)[ids] = column.reshape(len(ids), -1, 2)[:, 0] if name == "gamma" else column
    engine.beliefs.belief.counted[ids] = np.asarray(saved["n_crawls"]) > 0
    renewed = _fill_observed(engine, ids, saved)
    if np.any(saved["watched_from"]) or np.any(saved["request_weight"]):
        requests = engine.count_requests(0.0)
        requests.put(ids, *(saved[name] for name in ("watched_from", "request_weight", "requested_at")))
    access.write(engine.scheduler, ids, Pages(**{name: np.asarray(saved[name], np.float64) for name in _DECIDING}))
    engine._believe(renewed, now)
    _fill_signalled(engine, ids, saved, everyone=everyone)
    return engine.eligibility.fill(ids, saved, now)


def _fill_observed(engine: Engine, ids: Ids, saved: Mapping[str, Any]) -> Ids:
    """Observations of pages, as saved or estimated from counts; then the tables. The pages whose gammas are new."""
    belief = engine.beliefs.belief
    seen, given = (saved.get(name, [None] * len(ids)) for name in ("seen", RATE_EVIDENCE))
    there = known_rows(seen)
    if not there.all():
        counts = (np.asarray(saved[name], np.float64) for name in ("n_crawls", "n_changes", "watched"))
        belief.seen[ids] = estimated_seen(*counts)
    for column, values in ((belief.seen, _known_values(seen, 3)), (belief.evidence, _known_values(given, 2))):
        some = values.any(axis=1)  # zeros that are not written take no memory
        column[ids[there][some]] = values[some]
    older = ids[~there & belief.fixed_rate[ids]]
    belief.evidence[older], belief.seen[older] = belief.gamma[older], 0.0  # the gamma holds the observations too
    stale = there & (np.asarray(saved["prior_at"]) < engine.beliefs.fits)
    return engine.beliefs.recount(ids, ids[stale])


def known_rows(column: Any) -> NDArray[np.bool_]:
    """Which rows of a column are not None."""
    if isinstance(column, np.ndarray) and column.dtype != object:
        return np.ones(len(column), np.bool_)
    return np.fromiter((row is not None for row in column), np.bool_, len(column))


def _known_values(column: Any, width: int) -> Array:
    """The rows of a column that are not None."""
    if isinstance(column, np.ndarray) and column.dtype != object:
        return column
    return np.reshape([row for row in column if row is not None], (-1, width))


def _alike(saved: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Pages of which nothing but their importance and age is known: they may form cohorts."""
    unseen = np.asarray(saved["n_crawls"]) == 0
    plain = (np.asarray(saved["importance"]) == saved["given"]) & (np.asarray(saved["cost"]) == 1.0)
    silent = ~known_rows(saved.get(SIGNALLED, [None] * len(unseen)))
    never_waited = np.asarray(saved["wait_until"], np.float64) == -np.inf
    return np.asarray(unseen & plain & silent & never_waited & ~np.asarray(saved["fixed_rate"], np.bool_))


def _deciding(engine: Questions, rows: Ids) -> dict[str, Any]:
    if len(rows) == 0:
        return {name: np.zeros(0) for name in _DECIDING}
    return dict(zip(_DECIDING, access.deciding(engine.scheduler, rows), strict=True))


def _hosts(engine: Questions, some: set[str]) -> dict[str, tuple[float, float, float]]:
    """Per host with rules: spacing, how many at once, held until."""
    rules = {host: access.host_rules(engine.scheduler, host) for host in sorted(engine._ruled & some)}
    return {host: rule for host, rule in rules.items() if rule is not None}


def _asked(engine: Questions, rows: Ids) -> dict[str, Any]:
    if engine.requests is None:
        return {name: np.zeros(len(rows)) for name in _ASKED}
    state = engine.requests.state()
    return {name: state[column][rows] for name, column in zip(_ASKED, ("weight", "at", "start"), strict=True)}


def move_signal_times(saved: dict[str, Any], back: float) -> None:
    """Set the times in what rows say of signals back: when the first one since a copy came, when gates have shut."""
    saved[SIGNALLED] = [None if row is None else [*row[:-1], row[-1] - back] for row in saved.get(SIGNALLED, ())]
    tables = dict(saved.get("signal_tables", {}))
    if tables:
        tables["gate"] = moved_gates(tables["gate"], back)
        tables["host_gate"] = {host: moved_gates(gate, back) for host, gate in tables["host_gate"].items()}
        saved["signal_tables"] = tables


def _fill_signalled(engine: Engine, ids: Ids, saved: Mapping[str, Any], *, everyone: bool) -> None:
    """What was observed of pages with signals; for everyone, then the tables and gates that all pages have taught."""
    rows = saved.get(SIGNALLED, [None] * len(ids))
    there = known_rows(rows)
    if not engine.settings.uses_signals or not there.any():
        return
    engine.reserve_signals(ids[there])
    engine.beliefs.signals.fill(ids[there], [row for row in rows if row is not None])
    newest = float(np.max(engine.fetched_at(ids)))  # a crawl listens until about its last fetch
    if everyone:
        engine.refit_signals(everyone=True, heard_until=newest)
    else:
        engine.refresh_signals(ids[there], min(engine.now, newest))
    access.place_waiting(engine.scheduler, ids[there])
