"""Change rates from crawl outcomes: one function for all estimators of the papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.gamma import GammaPrior
from recrawl.estimate.observations import Observations

Array = NDArray[np.float64]
Method = Literal["naive", "regular", "mle", "smoothed", "prior-hours", "pseudo", "posterior", "complete"]
PseudoObservation = tuple[float, bool] | tuple[float, bool, float]

OPEN_END = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class RateEstimate:
    """Change rates per page with intervals; every column is finite.

    The true rate lies between ``low`` and ``high`` with probability ``level``. If the data give no upper bound (every
    crawl found a change, or there was no crawl), ``high`` is the largest float. ``evidence`` is the gamma shape behind
    the rate, 1/(relative variance): the argument of ``Pages(evidence=…)``.
    """

    change_rate: Array
    low: Array
    high: Array
    evidence: Array
    observations: Observations
    method: str
    level: float

    def __len__(self) -> int:
        return len(self.change_rate)

    @property
    def n_crawls(self) -> NDArray[np.int64]:
        """Number of intervals behind each rate."""
        return self.observations.n_crawls

    @property
    def n_changes(self) -> NDArray[np.int64]:
        """Number of changed intervals behind each rate."""
        return self.observations.n_changes

    def gamma(self) -> GammaPrior:
        """The estimates as gamma distributions, for a plan or as the prior of a stream."""
        shape = np.maximum(self.evidence, 1e-9)
        return GammaPrior(shape, shape / np.maximum(self.change_rate, 1e-300))


def estimate_change_rate(
    observations: Observations,
    method: Method = "posterior",
    *,
    prior: GammaPrior | None = None,
    pseudo: Sequence[PseudoObservation] = (),
    day: float = 86400.0,
    level: float | None = 0.9,
) -> RateEstimate:
    """Change rate of every page from (interval, changed) pairs, per unit of the intervals.

    - ``naive``: Σ changed/Σ interval; too low if two changes can fall into one interval.
    - ``regular``: −ln((n − X + ½)/(n + ½))/C, C the mean interval (Cho & Garcia-Molina; Grimes eq. 1).
    - ``mle``: the root of Σ_changed t/(e^{λt} − 1) = Σ_unchanged t (Grimes eq. 2, Kolobov eq. 10); 1/(total time) when
      nothing changed, 1/(shortest interval) when everything did, 0 without history.
    - ``smoothed``: the same with one changed and one unchanged pseudo-interval of half a day (Kolobov alg. 4).
    - ``prior-hours``: with "changed after 1 h" and "unchanged after 57 h" (Grimes §4.4).
    - ``pseudo``: with your own (interval, changed[, weight]) in ``pseudo``.
    - ``posterior``: mean and quantiles under a gamma prior; ``prior=None`` fits it to these very observations.
    - ``complete``: (U + ½)/(T + ½ day), for logs in which every single change is a row (Kolobov alg. 4, line 13).

    ``day`` is the length of a day in the intervals' unit (default: seconds). ``level=None`` skips intervals and
    evidence.

    >>> seen = Observations([0, 4], interval=[1.0, 1.0, 1.0, 1.0], changed=[True, True, True, False])
    >>> float(estimate_change_rate(seen, "mle").change_rate[0])  # ln 4
    1.3862943611198906
    """
    if method not in get_args(Method):
        raise ParameterError(f"method is {method!r}: must be one of {', '.join(get_args(Method))}")
    if level is not None and not 0 < level < 1:
        raise ParameterError(f"level is {level}: must lie between 0 and 1")
    if not 0 < day < np.inf:
        raise ParameterError(f"day is {day}: must be finite and above 0")
    if method == "posterior":
        return _posterior(observations, prior, day, level)
    if method in ("naive", "regular", "complete"):
        return _closed_form(observations, method, day, level)
    return _likelihood(observations, method, _pseudo_for(method, pseudo, day), level)


def _pseudo_for(method: str, pseudo: Sequence[PseudoObservation], day: float) -> Sequence[PseudoObservation]:
    hour = day / 24
    given: dict[str, Sequence[PseudoObservation]] = {
        "mle": (),
        "smoothed": ((day / 2, True), (day / 2, False)),
        "prior-hours": ((hour, True), (57 * hour, False)),
        "pseudo": pseudo,
    }
    if method == "pseudo" and not pseudo:
        raise ParameterError("pseudo is empty; method 'pseudo' needs at least one (interval, changed)")
    for row, entry in enumerate(given[method]):
        if not all(0 < x < np.inf for x in (entry[0], *entry[2:])):
            raise ParameterError(f"pseudo, row {row}: interval and weight must be finite and above 0")
    return given[method]


def _likelihood(
    observations: Observations, method: str, pseudo: Sequence[PseudoObservation], level: float | None
) -> RateEstimate:
    from recrawl.estimate.rates.counted_kernels import counted_rates
    from recrawl.estimate.rates.interval_kernels import likelihood_intervals
    from recrawl.estimate.rates.kernels import mle_rates

    seen = [(entry[0], entry[2] if len(entry) == 3 else 1.0) for entry in pseudo if entry[1]]
    unchanged = sum(entry[0] * (entry[2] if len(entry) == 3 else 1.0) for entry in pseudo if not entry[1])
    table = np.array(seen, dtype=np.float64).reshape(-1, 2)
    extra = (table[:, 0].copy(), table[:, 1].copy(), float(unchanged))
    columns = (observations.offset, observations.interval, observations.changed, observations.unit())
    n = len(observations)
    rate = np.zeros(n)
    if columns[-1] > 0 and not pseudo:
        counted_rates(*columns, rate)
    else:
        mle_rates(*columns, *extra, rate)
    if level is None:
        return _result(observations, method, rate, None)
    low, high, evidence = np.zeros(n), np.zeros(n), np.zeros(n)
    likelihood_intervals(*columns, *extra, rate, _drop(level), low, high, evidence)
    return _result(observations, method, rate, level, (np.minimum(low, rate), np.maximum(high, rate), evidence))


def _closed_form(observations: Observations, method: str, day: float, level: float | None) -> RateEstimate:
    n, x, time = observations.n_crawls, observations.n_changes, observations.total_time
    x = np.where(time > 0, x, 0)
    if method == "regular":
        step = np.divide(time, n, out=np.zeros(len(n)), where=n > 0)
        rate = np.divide(-np.log((n - x + 0.5) / (n + 0.5)), step, out=np.zeros(len(n)), where=step > 0)
    else:
        more = 0.5 if method == "complete" else 0.0
        time = time + more * day
        rate = np.divide(x + more, time, out=np.zeros(len(n)), where=time > 0)
    if level is None:
        return _result(observations, method, rate, None)
    tails = np.array([0.5 - level / 2, 0.5 + level / 2])
    low, high = _binomial_ends(n, x, step, tails) if method == "regular" else _count_ends(x, time, tails)
    ends = np.minimum(low, rate), np.maximum(high, rate), np.asarray(x + 0.5, np.float64)
    return _result(observations, method, rate, level, ends)


def _count_ends(x: NDArray[np.int64], time: Array, tails: Array) -> tuple[Array, Array]:
    """Jeffreys interval of a Poisson rate: quantiles of gamma(x + ½, time)."""
    known = time > 0
    gamma = GammaPrior(x + 0.5, np.where(known, time, 1.0))
    return np.where(known, gamma.quantile(tails[0]), 0.0), np.where(known, gamma.quantile(tails[1]), OPEN_END)


def _binomial_ends(n: NDArray[np.int64], x: NDArray[np.int64], step: Array, tails: Array) -> tuple[Array, Array]:
    """Jeffreys interval of the changed share p, carried over to −ln(1 − p)/C."""
    from scipy.special import betaincinv

    share = [-np.log(betaincinv(n - x + 0.5, x + 0.5, 1 - tail)) for tail in tails]
    known = step > 0
    ends = [np.divide(s, step, out=np.zeros(len(n)), where=known) for s in share]
    return ends[0], np.where(known, ends[1], OPEN_END)


def _posterior(observations: Observations, prior: GammaPrior | None, day: float, level: float | None) -> RateEstimate:
    from recrawl.estimate.rates.posterior import posterior_moments
    from recrawl.estimate.rates.priors import fit_prior

    prior = fit_prior(observations, day=day) if prior is None else prior
    tails = [] if level is None else [0.5 - level / 2, 0.5 + level / 2]
    found = posterior_moments(observations, prior, tails)
    if level is None:
        return _result(observations, "posterior", found.mean, None)
    low, high = found.quantile.T
    return _result(observations, "posterior", found.mean, level, (low, high, found.mean**2 / found.variance))


def _result(
    observations: Observations,
    method: str,
    rate: Array,
    level: float | None,
    ends: tuple[Array, Array, Array] | None = None,
) -> RateEstimate:
    """``ends`` is (low, high, evidence); None where no interval was asked for."""
    low, high, evidence = (np.asarray(column, np.float64) for column in ends or [()] * 3)
    return RateEstimate(np.abs(rate), low, high, evidence, observations, method, level or 0.0)


def _drop(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2) ** 2 / 2)
