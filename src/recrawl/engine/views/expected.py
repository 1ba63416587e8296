"""Expected freshness and rates as they are reported: beliefs moved to the prior whose mean fits all pages.

The prior by which pages are chosen has its mean from changes and crawls alone, which is too low where crawls come at
uneven times: harmless for the choice, where all pages share it, but a forecast would be too good. Here the mean is the
one that the pages' own beliefs have on average once they start from it (the fixed point of expectation maximisation).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.engine.beliefs.beliefs import moved_along, pages_of
from recrawl.engine.beliefs.staleness_kernels import fill_fresh
from recrawl.model.pages import Pages
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.engine.engine import Engine

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_LOOKED_AT = 100_000  # pages that the mean is taken from
_ROUNDS = 100


def expected_fresh(engine: Engine, ids: ArrayLike, now: float, mean: float | None = None) -> Array:
    """The probability that each page's copy is fresh, unbiased over all pages; 0 without a copy.

    ``mean`` is what `fitting_mean` returned shortly before, for callers that ask for a few pages many times.
    """
    rows = access.check_ids(engine.scheduler, ids)
    out = np.empty(len(rows))
    own = moved_gamma(engine, rows, mean)
    fill_fresh(access.header(engine.scheduler), engine.beliefs.belief, rows, own, now, out)
    return np.where(engine.copied(rows), out, 0.0)


def expected_pages(engine: Engine, rows: Ids, now: float, mean: float | None = None) -> Pages:
    """Pages with the rates that are reported: what siblings and signals explain included, unbiased over all pages.

    ``evidence`` is the shape of the belief about a page's missed rate; where siblings are used, of what the page's own
    crawls give alone. Rates of pages with signals count as known, because plans with signals take them so.
    """
    elapsed = np.maximum(now - access.last_fetched(engine.scheduler, rows), 0.0)
    columns = engine.beliefs.columns(rows, elapsed)
    signalled = columns["recall"].reshape(len(rows), -1) * columns["change_rate"][:, None]
    shape, missed = _shapes_and_means(moved_gamma(engine, rows, mean))
    own = missed + engine.effects.sibling_rate(engine.scheduler, rows)
    total = own + signalled.sum(axis=1)
    recall = (signalled / total[:, None]).reshape(columns["recall"].shape)
    if engine.effects.level is not None:  # how much siblings explain is not known exactly
        shape = engine.effects.alone(engine.beliefs, rows)[:, 0]
    evidence = np.where(np.isinf(columns["evidence"]), np.inf, shape)
    columns |= {"change_rate": total, "recall": recall, "evidence": evidence}
    columns |= access.cost_column(engine.scheduler, rows)
    return pages_of(columns, access.importance(engine.scheduler, rows))


def _shapes_and_means(gamma: Array) -> tuple[Array, Array]:
    return gamma[:, 0], gamma[:, 0] / gamma[:, 1]


def moved_gamma(engine: Engine, rows: Ids, mean: float | None = None) -> Array:
    """Shapes and rates of beliefs, moved to the mean that fits; of pages with a rate of their own, as they are."""
    belief = engine.beliefs.belief
    gamma: Array = belief.gamma[rows, 0].copy()
    before = belief.prior[0]
    mean = fitting_mean(engine) if mean is None else mean
    moved = ~belief.fixed_rate[rows]
    gamma[moved] = _moved(gamma[moved], before, mean)
    return gamma


def _moved(gamma: Array, before: Array, mean: float) -> Array:
    """Beliefs as they would be if their prior had this mean."""
    return moved_along(gamma, before, [before[0], before[0] / mean])


def fits_mean(engine: Engine) -> bool:
    """Whether `fitting_mean` depends on the single pages."""
    return len(engine.beliefs.priors) >= 2 and engine.effects.level is None


def fitting_mean(engine: Engine) -> float:
    """The mean of the prior that is also the mean of all beliefs that start from it.

    Before the prior was first fitted, and where siblings are used, the prior's own mean: with siblings the iteration
    over the pages' beliefs alone does not converge.
    """
    belief, rows = engine.beliefs.belief, engine.ids()
    before = belief.prior[0]
    mean = float(before[0] / before[1])
    if not fits_mean(engine):
        return mean
    if engine.mean_of_all is not None:
        return engine.mean_of_all
    seen = rows[(belief.watched[rows] > 0) & ~belief.fixed_rate[rows]]
    if len(seen) < 10:
        return mean
    some = seen[:: -(-len(seen) // _LOOKED_AT)]
    gamma, counts = belief.gamma[some, 0], _counts(engine, some)
    for _ in range(_ROUNDS):
        moved = _moved(gamma, before, mean)
        last, mean = mean, float(np.average(moved[:, 0] / moved[:, 1], weights=counts))
        if abs(mean - last) < 1e-6 * mean:
            break
    return mean


def _counts(engine: Engine, rows: Ids) -> Array:
    """How many pages each page stands for: one, except in a sample."""
    return np.ones(len(rows)) if engine.stands_for is None else engine.stands_for[rows]


def drawn_means(engine: Engine, n: int, rng: np.random.Generator) -> Array:
    """Draws of the prior mean, by how uncertain it is after a fit to these pages."""
    mean, belief, rows = fitting_mean(engine), engine.beliefs.belief, engine.ids()
    seen = rows[(belief.watched[rows] > 0) & ~belief.fixed_rate[rows]]
    known = float(belief.prior[0, 0]) * float(_counts(engine, seen).sum())
    if len(engine.beliefs.priors) < 2 or known == 0.0:
        return np.full(n, mean)
    return np.asarray(mean * rng.gamma(known, size=n) / known)
