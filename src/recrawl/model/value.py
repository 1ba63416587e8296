"""The value of crawling a page now, from its parameters, the time since its last crawl and the signals since then."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.model.kinds import Objective, one_if_constant
from recrawl.model.pages import Pages
from recrawl.model.signals import Source, lone_sources, matched_source, signal_weight

Array = NDArray[np.float64]

OBJECTIVES: dict[str, int] = {"freshness": 0, "harmonic": 1, "age": 2}
_MOST_COUNTS = 1_000_000


def staleness_exponent(pages: Pages, elapsed: ArrayLike, signals: ArrayLike = 0.0) -> Array:
    """s = missed_rate·elapsed + Σ_k weight_k·signals_k; the copy is fresh with probability e^{−s}.

    Busa-Fekete et al. 2025, eq. 1; ``signals`` has shape (n,), or (n, k) for k sources.

    >>> float(staleness_exponent(Pages(1.0, recall=0.5, false_rate=0.5), elapsed=2.0, signals=1)[0])
    1.6931471805599454
    """
    time, counts = _state(pages, elapsed, signals)
    if pages.has_signals:
        return pages.missed_rate * time + _signal_exponent(pages, counts)
    return pages.missed_rate * time


def fresh_probability(pages: Pages, elapsed: ArrayLike, signals: ArrayLike = 0.0) -> Array:
    """P(the copy equals the live page): e^{−s}, or (1 + Δ·elapsed/a)^{−a} for a rate with ``evidence`` a.

    >>> float(fresh_probability(Pages(0.5), elapsed=2.0)[0]) == float(np.exp(-1))
    True
    """
    s = staleness_exponent(pages, elapsed, signals)
    known = np.isinf(pages.evidence)
    if known.all():
        return np.exp(-s)
    _reject_uncertain_signals(pages)
    shape = np.where(known, 1.0, pages.evidence)
    return np.where(known, np.exp(-s), np.exp(-shape * np.log1p(s / shape)))


def crawl_value(
    pages: Pages,
    elapsed: ArrayLike,
    signals: ArrayLike = 0.0,
    *,
    objective: Objective = "freshness",
    terms: int | None = None,
    sources: Literal["matched", "exact"] = "matched",
) -> Array:
    """What crawling each page now is worth, in importance × time; a budget is best spent on the largest.

    V = importance · ∫₀^s e^{−u} ψ(u) du, where s is the staleness exponent and ψ(u) the expected time until it reaches
    u; without signals (importance/Δ)(1 − e^{−x}(1 + x)), x = Δ·elapsed. Busa-Fekete et al. 2025, Theorem 1. ``terms``
    keeps the first j terms of the sums (the paper's G-NCIS-APPROX-j). Several sources are matched by one, or summed
    over all count vectors with ``sources="exact"``.

    >>> crawl_value(Pages(1.0), elapsed=[0.0, np.inf]).tolist()
    [0.0, 1.0]
    """
    time, counts = _state(pages, elapsed, signals)
    if sources == "exact" and pages.n_sources > 1 and objective == "freshness":
        return _exact_sources(pages, time, counts, terms)
    return _fill(0, pages, time, counts, objective, terms)


def crawl_value_slope(
    pages: Pages,
    elapsed: ArrayLike,
    signals: ArrayLike = 0.0,
    *,
    objective: Objective = "freshness",
    terms: int | None = None,
) -> Array:
    """How fast the crawl value grows with time: importance · missed_rate · e^{−s} ψ(s) with signals.

    >>> crawl_value_slope(Pages(1.0), elapsed=1.0).tolist() == [np.exp(-1.0)]
    True
    """
    time, counts = _state(pages, elapsed, signals)
    return _fill(1, pages, time, counts, objective, terms)


def elapsed_at_value(
    pages: Pages,
    value: ArrayLike,
    signals: ArrayLike = 0.0,
    *,
    objective: Objective = "freshness",
    terms: int | None = None,
) -> Array:
    """The smallest elapsed time at which the crawl value reaches ``value``; infinity where it never does.

    >>> elapsed_at_value(Pages(1.0), value=[1.0, 0.0]).tolist()
    [inf, 0.0]
    """
    goal, counts = _state(pages, value, signals, name="value")
    return _fill(2, pages, goal, counts, objective, terms)


def crawl_interval(pages: Pages, exponent: ArrayLike) -> Array:
    """ψ: expected time between crawls when each page is crawled once its staleness exponent reaches ``exponent``.

    Busa-Fekete et al. 2025, Theorem 1 (crawl frequency 1/ψ). Several sources are matched by one.

    >>> crawl_interval(Pages([2.0]), exponent=1.0).tolist()
    [0.5]
    """
    from recrawl.model.kernels.pages import fill_intervals

    level, _ = _state(pages, exponent, 0.0, name="exponent")
    source = _source(pages)
    out = np.empty(_rows(pages, level))
    fill_intervals(
        one_if_constant(source.missed_rate),
        one_if_constant(source.signal_rate),
        one_if_constant(source.weight),
        one_if_constant(level),
        out,
    )
    return out


def value_limit(pages: Pages, objective: Objective = "freshness") -> Array:
    """The crawl value no page can exceed however long it waits: importance/Δ for freshness (0 where Δ = 0).

    With ``evidence`` a it is importance/Δ · a/(a − 1), infinite for a ≤ 1; the other objectives have no limit.

    >>> value_limit(Pages([0.5, 0.0])).tolist()
    [2.0, 0.0]
    """
    limit = np.full(len(pages), np.inf)
    if objective == "freshness":
        with np.errstate(divide="ignore", invalid="ignore"):
            slack = np.where(pages.evidence > 1, 1.0 / (1.0 - 1.0 / pages.evidence), np.inf)
            limit = pages.importance / pages.change_rate * slack
    return np.where((pages.change_rate > 0) & (pages.importance > 0), limit, 0.0)


def _fill(what: int, pages: Pages, given: Array, counts: Array, objective: Objective, terms: int | None) -> Array:
    from recrawl.model.kernels.pages import fill_states
    from recrawl.model.kernels.signals import ALL_TERMS

    if objective not in OBJECTIVES:
        raise ParameterError(f"objective {objective!r} is not one of {', '.join(OBJECTIVES)}")
    if terms is not None and terms < 1:
        raise ParameterError(f"terms is {terms}: at least one term is needed")
    source = _source(pages)
    _check_theory(pages, source, objective)
    columns = (pages.change_rate, pages.importance, pages.evidence, *source, given)
    counted = _matched_counts(pages, counts, source)
    arguments: Any = [one_if_constant(column) for column in (*columns, counted)]
    out = np.empty(_rows(pages, given, counts))
    tail = (ALL_TERMS if terms is None else terms, out)
    fill: Any = fill_states
    fill(what, OBJECTIVES[objective], *arguments, *tail)
    return out


def _check_theory(pages: Pages, source: Source, objective: Objective) -> None:
    _reject_uncertain_signals(pages)
    if objective == "freshness" or not pages.has_signals:
        return
    noisy = (source.weight > 0) & ~((source.missed_rate == 0) & np.isinf(source.weight))
    if objective == "age":
        noisy = source.weight > 0
    if noisy.any():
        kind = "signals" if objective == "age" else "noisy signals (neither absent nor complete)"
        raise ParameterError(
            f"recall, row {int(np.argmax(noisy))}: no {objective} value is known for pages with {kind}"
        )


def _reject_uncertain_signals(pages: Pages) -> None:
    if not pages.has_signals or np.isinf(pages.evidence).all():
        return
    both = np.isfinite(pages.evidence) & (_per_page(pages.recall) > 0)
    if both.any():
        raise ParameterError(
            f"evidence, row {int(np.argmax(both))}: a page with signals needs a known rate (evidence = inf)"
        )


def _exact_sources(pages: Pages, elapsed: Array, counts: Array, terms: int | None) -> Array:
    from recrawl.model.kernels.pages import sources_value

    if terms is not None:
        raise ParameterError("terms is not defined for several sources summed exactly")
    rates, weights = lone_sources(pages)
    exponent = staleness_exponent(pages, elapsed, counts)
    missed = pages.missed_rate
    out = np.empty(len(pages))
    for i in range(len(pages)):
        used = (rates[i] > 0) & (weights[i] > 0)  # a signal that weighs nothing changes nothing
        if not used.any():
            out[i] = _fill(0, pages[i : i + 1], elapsed[i : i + 1], np.zeros(1), "freshness", None)[0]
            continue
        rates_i, weights_i = rates[i][used], weights[i][used]
        value = sources_value(missed[i], rates_i, weights_i, pages.change_rate[i], exponent[i], _MOST_COUNTS)
        if value < 0:
            raise ParameterError(f"signals, row {i}: over a million signal counts to sum; use sources='matched'")
        out[i] = pages.importance[i] * value
    return out


def _source(pages: Pages) -> Source:
    if pages.has_signals:
        return matched_source(pages)
    zero = np.zeros(1)
    return Source(pages.change_rate, zero, zero)


def _signal_exponent(pages: Pages, counts: Array) -> Array:
    weight = signal_weight(pages)
    with np.errstate(invalid="ignore"):
        parts = np.where(counts > 0, weight * counts, 0.0)
    return parts if parts.ndim == 1 else parts.sum(axis=1)


def _matched_counts(pages: Pages, counts: Array, source: Source) -> Array:
    """Signals in units of the (matched) source's weight; one source: the counts themselves."""
    if pages.n_sources == 1 or not pages.has_signals:
        return counts
    exponent = _signal_exponent(pages, counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        units = exponent / source.weight
    proof = np.isinf(exponent)
    return np.where(proof, np.inf, np.where(exponent > 0, units, 0.0))


def _state(pages: Pages, time: ArrayLike, signals: ArrayLike, name: str = "elapsed") -> tuple[Array, Array]:
    first, counts = np.asarray(time, dtype=np.float64), np.asarray(signals, dtype=np.float64)
    n = len(pages)
    for label, column in ((name, first), ("signals", counts)):
        bad = ~(column >= 0)
        if bad.any():
            row = "" if column.ndim == 0 else f", row {int(np.argwhere(bad)[0][0])}"
            raise ParameterError(f"{label}{row}: must be at least 0")
        if column.ndim and len(column) != n and n != 1:
            raise ParameterError(f"{label} has {len(column)} rows but there are {n} pages")
    if pages.n_sources > 1:
        shape = (n, pages.n_sources)
        counts = np.broadcast_to(counts[:, None] if counts.ndim == 1 and len(counts) == n else counts, shape)
    elif counts.ndim == 2:
        counts = counts[:, 0]
    rows = max(n, len(first) if first.ndim else 1, len(counts) if counts.ndim else 1)
    first = np.broadcast_to(first, (rows,))
    return first, counts if counts.ndim == 2 else np.broadcast_to(counts, (rows,))


def _per_page(column: Array) -> Array:
    return column if column.ndim == 1 else column.max(axis=1)


def _rows(pages: Pages, *columns: Array) -> int:
    return max([len(pages), *(len(column) for column in columns)])
