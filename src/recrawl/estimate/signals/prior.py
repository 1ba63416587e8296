"""Priors of signal quality: a page starts from the quality of its host, a host from that of the source."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.observations import Observations

Array = NDArray[np.float64]

MAX_WEIGHT = 36.0


@dataclass(frozen=True, init=False)
class QualityPrior:
    """Pseudo-observations per parameter: (amount, weight of "changed", weight of "unchanged"), rows (1 or n, 1 + k, 3).

    A precision p of strength s counts as s lone signals, of which a share p was followed by a change; a missed rate
    m of strength s as s intervals of length ln 2/m, of which half saw one. Both put the prior's peak at the value
    given.

    >>> prior = QualityPrior(precision=[0.25], strength=4.0, missed_rate=0.1)
    >>> prior.pseudo[0, 1].tolist()  # one signal, followed by a change once, three times not
    [1.0, 1.0, 3.0]
    """

    pseudo: Array

    def __init__(
        self,
        precision: ArrayLike,
        strength: ArrayLike = 4.0,
        missed_rate: ArrayLike = 1.0 / 86400.0,
        missed_strength: float = 1.0,
    ) -> None:
        share = np.atleast_2d(np.asarray(precision, dtype=np.float64))
        power = np.broadcast_to(np.asarray(strength, dtype=np.float64), share.shape)
        missed = np.atleast_1d(np.asarray(missed_rate, dtype=np.float64))
        _check("precision", share, (share > 0) & (share < 1), "must lie between 0 and 1")
        _check("strength", power, (power > 0) & (power < np.inf), "must be finite and above 0")
        _check("missed_rate", missed, (missed > 0) & (missed < np.inf), "must be finite and above 0")
        n = max(len(share), len(missed))
        pseudo = np.empty((n, 1 + share.shape[1], 3))
        pseudo[:, 0, 0] = np.log(2) / missed
        pseudo[:, 0, 1:] = missed_strength / 2
        pseudo[:, 1:, 0] = 1.0
        pseudo[:, 1:, 1] = power * share
        pseudo[:, 1:, 2] = power * (1 - share)
        object.__setattr__(self, "pseudo", pseudo)

    @property
    def precision(self) -> Array:
        """The precision at the prior's peak, (1 or n, k)."""
        return np.asarray(self.pseudo[:, 1:, 1] / self.pseudo[:, 1:, 1:].sum(axis=2))

    @property
    def missed_rate(self) -> Array:
        """The missed rate at the prior's peak, (1 or n,)."""
        return np.asarray(np.log(2) / self.pseudo[:, 0, 0])


def _check(name: str, column: Array, good: NDArray[np.bool_], rule: str) -> None:
    if not good.all():
        place = tuple(int(i) for i in np.argwhere(~good)[0])
        raise ParameterError(f"{name}, row {place[0]} is {column[place]}: {rule}")


def fit_rows(
    offset: NDArray[np.int64],
    amount: Array,
    changed: NDArray[np.bool_],
    pseudo: Array,
    *,
    base: Array | None = None,
    start: Array | None = None,
) -> tuple[Array, Array]:
    """Fit the parameters of every page or group; returns them and their information matrices."""
    from recrawl.estimate.signals.kernels import fit_weights

    n, d = len(offset) - 1, amount.shape[1]
    base = np.zeros(len(amount)) if base is None else base
    shortest = np.where(amount > 0, amount, np.inf).min(axis=0, initial=np.inf)
    shortest = np.minimum(shortest, np.where(pseudo[:, :, 1] > 0, pseudo[:, :, 0], np.inf).min(axis=0, initial=np.inf))
    upper = np.broadcast_to(MAX_WEIGHT / np.where(shortest < np.inf, shortest, 1.0), (n, d)).copy()
    out = _starts(offset, amount, changed, pseudo) if start is None else start.copy()
    out = np.minimum(out, upper)
    information = np.zeros((n, d, d))
    fit_weights(offset, np.ascontiguousarray(amount), base, changed, pseudo, upper, out, information)
    return out, information


def _starts(offset: NDArray[np.int64], amount: Array, changed: NDArray[np.bool_], pseudo: Array) -> Array:
    """Starting values inside the bounds: changes divided equally among the parameters."""
    n, d = len(offset) - 1, amount.shape[1]
    page = np.repeat(np.arange(n), np.diff(offset))
    changes = np.bincount(page, weights=changed.astype(np.float64), minlength=n) + 0.5
    total: Array = np.stack([np.bincount(page, weights=amount[:, j], minlength=n) for j in range(d)], axis=1)
    total = total + pseudo[:, :, 0] * (pseudo[:, :, 1] + pseudo[:, :, 2])
    return np.where(total > 0, changes[:, None] / d / np.where(total > 0, total, 1.0), 0.0)


def fit_quality_prior(
    observations: Observations,
    host: ArrayLike | None = None,
    *,
    strength: float = 4.0,
    host_strength: float = 10.0,
    n_rounds: int = 8,
) -> QualityPrior:
    """The prior of every page: the precision of each source on its host, shrunk towards the source's on all hosts.

    Shared precisions and one missed rate per page are fitted in turns; each turn and the whole problem are concave.
    The prior of a page counts as ``strength`` signals, the prior of a host as ``host_strength`` signals.
    """
    assert observations.signals is not None
    n, k = len(observations), observations.n_sources
    time = float(observations.total_time.sum())
    typical = (float(observations.n_changes.sum()) + 0.5) / time if time > 0 else 1.0 / 86400.0
    everyone = np.zeros(n, dtype=np.int64)
    flat = QualityPrior(np.full((1, k), 0.5), 2.0, typical)
    source, missed = _shared(observations, everyone, flat.pseudo[:, 1:], np.full(n, typical), typical, n_rounds)
    precision = np.broadcast_to(_inside(source), (n, k))
    if host is not None:
        names, member = np.unique(np.asarray(host), return_inverse=True)
        if len(member) != n:
            raise ParameterError(f"host has {len(member)} rows but there are {n} pages")
        shrunk = QualityPrior(np.repeat(_inside(source), len(names), axis=0), host_strength, typical)
        shared, missed = _shared(observations, member, shrunk.pseudo[:, 1:], missed, typical, max(1, n_rounds // 2))
        precision = _inside(shared)[member]
    centre = max(float(np.exp(np.mean(np.log(np.maximum(missed, 1e-300))))), 1e-3 * typical) if n else typical
    return QualityPrior(precision, strength, np.full(max(n, 1), centre) if n else centre)


def _inside(weight: Array) -> Array:
    return np.clip(-np.expm1(-weight), 0.01, 0.99)


def _shared(
    observations: Observations,
    member: NDArray[np.int64],
    pseudo: Array,
    missed: Array,
    typical: float,
    n_rounds: int,
) -> tuple[Array, Array]:
    """Signal weights per group and one missed rate per page, fitted in turns."""
    assert observations.signals is not None
    page = observations.page
    order = np.argsort(member[page], kind="stable")
    groups = len(pseudo)
    offset = np.concatenate([[0], np.cumsum(np.bincount(member[page], minlength=groups))])
    own = QualityPrior(np.full((1, 1), 0.5), 1.0, np.full(max(len(missed), 1), typical)).pseudo[: len(missed), :1]
    weight = None
    for _ in range(n_rounds):
        base = (missed[page] * observations.interval)[order]
        rows = observations.signals[order]
        weight, _ = fit_rows(offset, rows, observations.changed[order], pseudo, base=base, start=weight)
        base = (weight[member[page]] * observations.signals).sum(axis=1)
        time = observations.interval[:, None]
        fitted, _ = fit_rows(observations.offset, time, observations.changed, own, base=base, start=missed[:, None])
        missed = fitted[:, 0]
    assert weight is not None
    return weight, missed
