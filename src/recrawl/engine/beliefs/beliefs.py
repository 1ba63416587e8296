"""Beliefs: what is known of every page's changes and signals, and the prior that all pages share and teach."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.engine.beliefs.arrays import Belief
from recrawl.engine.beliefs.kernels import qualities
from recrawl.estimate.gamma import GammaPrior
from recrawl.model.pages import Pages

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_COUNTS = ("watched", "n_crawls", "n_changes", "own", "fixed_rate", "counted")
_PER_PAGE = ("gamma", "heard", "heard_at", "signals", *_COUNTS)
_WHOLE = ("prior", "half_life", "scores", "ledger")
_FIRST_REFIT, _REFIT_GROWTH = 50, 1.3  # crawls before the prior is fitted, and growth until it is fitted again
_SHAPES = (0.1, 100.0, 13)  # of the prior: from, to, how many are tried
_SOURCE_PRIOR = (1.0, 3.0)  # weight of a signal of an unknown source: precision 1/4, held as loosely as three signals


class Fit(NamedTuple):
    """A prior's shape and mean."""

    shape: float
    mean: float


class Beliefs:
    """Gammas per page, drawn from one prior that is fitted to all pages as they are crawled (empirical Bayes)."""

    def __init__(self, prior: GammaPrior, n_sources: int, half_life: float) -> None:
        first = [(float(prior.shape), float(prior.rate)), *[_SOURCE_PRIOR] * n_sources]
        self.belief = Belief(
            gamma=np.zeros((0, 1 + n_sources, 2)),
            heard=np.zeros((0, n_sources)),
            heard_at=np.zeros((0, min(n_sources, 1))),
            signals=np.zeros((0, n_sources)),
            watched=np.zeros(0),
            n_crawls=np.zeros(0, np.int64),
            n_changes=np.zeros(0, np.int64),
            own=np.zeros(0),
            fixed_rate=np.zeros(0, np.bool_),
            counted=np.zeros(0, np.bool_),
            prior=np.array(first),
            half_life=np.array([half_life]),
            shapes=np.geomspace(*_SHAPES),
            scores=np.zeros(_SHAPES[2]),
            ledger=np.zeros(2),
        )
        self.priors = [self.belief.prior[0].tolist()]  # every prior that there was, the newest last
        self.crawls = 0  # outcomes taken in so far
        self.refit_at = _FIRST_REFIT
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def prior(self) -> GammaPrior:
        """What is believed of a page that nothing is known of."""
        return GammaPrior(*self.belief.prior[0])

    def append(self, counted: NDArray[np.bool_], own: GammaPrior | None = None) -> None:
        """New pages, at the prior or at a belief of their own; which copies are new too."""
        n = len(counted)
        first, self._n = self._n, self._n + n
        if self._n > len(self.belief.watched):
            room = max(16, self._n, len(self.belief.watched) * 3 // 2)
            self.belief = self.belief._replace(
                **{name: _larger(getattr(self.belief, name), room) for name in _PER_PAGE}
            )
        self.belief.gamma[first : self._n] = self.belief.prior
        self.belief.counted[first : self._n] = counted
        self.belief.heard_at[first : self._n] = np.inf
        if own is not None:
            self.set_rate(np.arange(first, self._n), own)

    def set_rate(self, rows: Ids, own: GammaPrior) -> None:
        """Believe something else of pages' rates from now on, whatever the prior becomes."""
        self.belief.fixed_rate[rows] = True
        shape, rate = own.rows(len(rows))
        self.belief.gamma[rows, 0] = np.stack([shape, rate], axis=1)

    def hear(self, rows: Ids, heard: Array, at: ArrayLike) -> None:
        """Signals that came since the copies were fetched, from some time on."""
        self.belief.heard[rows] = heard
        self.belief.heard_at[rows] = np.where(heard.any(axis=1), at, np.inf)[:, None]

    def columns(self, rows: Ids, elapsed: Array) -> dict[str, Array]:
        """What `Pages` needs to know of pages, as of some time after their last crawl."""
        n, k = len(rows), self.belief.heard.shape[1]
        recall, false_rate, change_rate = np.zeros((n, k)), np.zeros((n, k)), np.zeros(n)
        qualities(self.belief, rows, elapsed, recall, false_rate, change_rate)
        if k <= 1:
            recall, false_rate = (c[:, 0] if k else np.zeros(n) for c in (recall, false_rate))
        used = recall.reshape(n, -1).any(axis=1)
        evidence = np.where(used, np.inf, self.belief.gamma[rows, 0, 0])
        return {"change_rate": change_rate, "recall": recall, "false_rate": false_rate, "evidence": evidence}

    def gamma(self, rows: Ids) -> GammaPrior:
        """The belief about pages' missed rates (without signals: their change rates)."""
        return GammaPrior(self.belief.gamma[rows, 0, 0], self.belief.gamma[rows, 0, 1])

    def fit(self, rows: Ids) -> Fit | None:
        """The prior that goes with what was found on pages so far; None while that is too little.

        Its shape a says how far a page's own past is to be believed against the others': the one that predicted the
        outcomes best so far, since real pages change in bursts and a likelihood that does not know it finds them too
        different. Its mean m is that of the pages' own rates (Cho and Garcia-Molina, from changes and crawls),
        each counting T/(T + a/m) for the time T it was watched.
        """
        self.refit_at = int(self.crawls * _REFIT_GROWTH) + 1
        return self.fit_now(rows)

    def fit_now(self, rows: Ids) -> Fit | None:
        """The same, whenever the next one is due."""
        b = self.belief
        seen = rows[(b.watched[rows] > 0) & ~b.fixed_rate[rows]]
        if len(seen) < 10:
            return None
        shape = float(b.shapes[np.argmax(b.scores)]) if b.scores.any() else 1.0
        return self._fit(seen, shape)

    def _fit(self, rows: Ids, shape: float) -> Fit:
        """Missed changes per time of a page, on average; half a change more than was seen, so that it is never 0."""
        b = self.belief
        crawls, time = b.n_crawls[rows].astype(np.float64), b.watched[rows]
        quiet = crawls - b.own[rows]
        rate = np.log((crawls + 0.5) / (quiet + 0.5)) * crawls / time
        mean = float(b.prior[0, 0] / b.prior[0, 1])
        for _ in range(50):
            trust = time / (time + shape / mean)
            last, mean = mean, float((trust * rate).sum() / trust.sum() + 0.5 / time.sum())
            if abs(mean - last) < 1e-6 * mean:
                break
        return Fit(shape, mean)

    def found(self, rows: Ids, prior: ArrayLike) -> Array:
        """(pages, 3): what each missed rate's gamma has over its prior, and changes that it explains."""
        over = self.belief.gamma[rows, 0] - np.asarray(prior)
        return np.column_stack([over, self.belief.own[rows]])

    def find(self, rows: Ids, found: Array, prior: ArrayLike) -> None:
        """Believe of missed rates what goes with a prior and what was found."""
        own = np.asarray(prior)
        self.belief.gamma[rows, 0] = np.maximum(own + found[:, :2], 1e-3 * own)
        self.belief.own[rows] = found[:, 2]

    def move(self, fit: Fit) -> None:
        """Take a prior over, and move the pages' beliefs along."""
        b = self.belief
        before, after = b.prior[0].copy(), np.array([fit.shape, fit.shape / fit.mean])
        moved = np.flatnonzero(~b.fixed_rate[: self._n])
        b.gamma[moved, 0] = moved_along(b.gamma[moved, 0], before, after)
        b.prior[0] = after
        self.priors.append(after.tolist())

    def saved(self) -> dict[str, Any]:
        """Everything, as plain arrays and numbers."""
        columns = {name: getattr(self.belief, name)[: self._n].copy() for name in _PER_PAGE}
        rest = {name: getattr(self.belief, name).copy() for name in _WHOLE}
        return {**columns, **rest, "priors": list(self.priors), "crawls": self.crawls, "refit_at": self.refit_at}

    def load(self, saved: dict[str, Any]) -> None:
        """Take over what was saved."""
        columns = {name: np.array(saved[name]) for name in _PER_PAGE}
        rest = {name: np.array(saved[name]) for name in _WHOLE}
        self.belief = Belief(**columns, **rest, shapes=self.belief.shapes)
        self.crawls, self.refit_at = int(saved["crawls"]), int(saved["refit_at"])
        self.priors = [list(prior) for prior in saved["priors"]]
        self._n = len(self.belief.watched)


def moved_along(gamma: Array, before: ArrayLike, after: ArrayLike) -> Array:
    """Beliefs about rates after their prior has moved."""
    goal = np.asarray(after)
    return np.asarray(np.maximum(gamma + goal - np.asarray(before), 1e-3 * goal))


def with_siblings(columns: dict[str, Array], more: Array) -> dict[str, Array]:
    """The columns of pages that change more often by what their siblings explain, of which no signal tells."""
    rate, recall = columns["change_rate"], columns["recall"]
    share = np.divide(rate, rate + more, out=np.ones(len(rate)), where=rate + more > 0)
    return {**columns, "change_rate": rate + more, "recall": recall * share.reshape(-1, *[1] * (recall.ndim - 1))}


def pages_of(columns: dict[str, Array], importance: ArrayLike, host: ArrayLike | None = None) -> Pages:
    """Pages with what is believed of them."""
    return Pages(importance=importance, host=host, **columns)


def _larger(column: NDArray[Any], room: int) -> NDArray[Any]:
    larger = np.zeros((room, *column.shape[1:]), column.dtype)
    larger[: len(column)] = column
    return larger
