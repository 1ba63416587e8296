"""Signal quality: recall (share of changes that are signalled) and precision (share of signals with a change)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.observations import Observations
from recrawl.estimate.signals.prior import MAX_WEIGHT, QualityPrior, fit_quality_prior, fit_rows

Array = NDArray[np.float64]
QualityMethod = Literal["shrunk", "mle", "naive"]


@dataclass(frozen=True)
class SignalQuality:
    """Signal quality per page; columns of shape (n, k) are per source. All values are finite.

    ``ends[name]`` is (low, high) at ``level`` for precision, recall and false_rate.
    """

    missed_rate: Array
    weight: Array
    signal_rate: Array
    precision: Array
    recall: Array
    false_rate: Array
    change_rate: Array
    ends: dict[str, tuple[Array, Array]]
    method: str
    level: float

    def __len__(self) -> int:
        return len(self.missed_rate)


def estimate_signal_quality(
    observations: Observations,
    method: QualityMethod = "shrunk",
    *,
    prior: QualityPrior | None = None,
    host: ArrayLike | None = None,
    level: float = 0.9,
) -> SignalQuality:
    """Missed rate and signal weights of every page, jointly for all its sources, and the quality they imply.

    P(changed) = 1 − exp(−(α·τ + Σ κ_k·n_k)), maximised over α, κ ≥ 0 (Busa-Fekete et al., App. E); γ_k = signals/time;
    precision = 1 − e^{−κ}, false_rate = γ·e^{−κ}, change_rate = α + Σ precision·γ, recall = precision·γ/change_rate
    (exact when a change is signalled by at most one source). Weights are capped at 36, e^{−36} = 2e-16.

    - ``shrunk``: with ``prior``, or with a fitted prior that shrinks a page towards its host and a host towards the
      source.
    - ``mle``: no prior; 0 or the cap if the data give no bound.
    - ``naive``: shares of intervals with a signal and a change; biased, for comparison (App. E, fig. 10).

    >>> seen = Observations([0, 4], [1.0] * 4, [True, False, True, False], signals=[0, 0, 1, 1])
    >>> fit = estimate_signal_quality(seen, "mle")  # unsignalled: α = ln 2; signalled likewise: κ = 0
    >>> round(float(fit.missed_rate[0]), 9), round(float(fit.precision[0, 0]), 9)
    (0.693147181, 0.0)
    """
    if observations.signals is None:
        raise ParameterError("signals is missing; the quality of signals needs their counts per crawl")
    if not 0 < level < 1:
        raise ParameterError(f"level is {level}: must lie between 0 and 1")
    if method == "naive":
        return _naive(observations, observations.signals, level)
    if method == "shrunk":
        prior = fit_quality_prior(observations, host) if prior is None else prior
    elif method != "mle":
        raise ParameterError(f"method is {method!r}: must be one of shrunk, mle, naive")
    n, k = len(observations), observations.n_sources
    pseudo = np.zeros((n, k + 1, 3)) if method == "mle" else _checked(prior, n, k)
    amount = np.column_stack([observations.interval, observations.signals])
    fitted, information = fit_rows(observations.offset, amount, observations.changed, pseudo)
    return _from_parameters(observations, fitted, information, method, level)


def _checked(prior: QualityPrior | None, n: int, k: int) -> Array:
    assert prior is not None
    rows = prior.pseudo
    if rows.shape[1] != k + 1 or len(rows) not in (1, n):
        raise ParameterError(f"prior is for {rows.shape[1] - 1} sources and {len(rows)} pages, not {k} and {n}")
    return np.broadcast_to(rows, (n, k + 1, 3)).copy()


def signal_rates(observations: Observations) -> tuple[Array, Array]:
    """Signals per time and their counts, (n, k)."""
    assert observations.signals is not None
    k = observations.n_sources
    count = np.stack([observations.per_page(observations.signals[:, j]) for j in range(k)], axis=1)
    time = observations.total_time[:, None]
    return np.divide(count, time, out=np.zeros_like(count), where=time > 0), count


def quality_columns(missed: Array, weight: Array, rate: Array) -> tuple[Array, Array, Array, Array]:
    """Precision, recall, false rate and change rate that follow from (missed rate, weights, signal rates)."""
    precision = -np.expm1(-weight)
    true_rate = precision * rate
    change = missed + true_rate.sum(axis=1)
    recall = np.divide(true_rate, change[:, None], out=np.zeros_like(true_rate), where=change[:, None] > 0)
    return precision, recall, rate * np.exp(-weight), change


def _from_parameters(
    observations: Observations, fitted: Array, information: Array, method: str, level: float
) -> SignalQuality:
    missed, weight = fitted[:, 0], fitted[:, 1:]
    rate, count = signal_rates(observations)
    precision, recall, false_rate, change = quality_columns(missed, weight, rate)
    ends = _ends(missed, weight, rate, count, _covariance(fitted, information), level)
    return SignalQuality(missed, weight, rate, precision, recall, false_rate, change, ends, method, level)


def _covariance(fitted: Array, information: Array) -> Array:
    """Inverse information over the parameters away from 0; scaled first, so that units do not matter."""
    d = fitted.shape[1]
    size = np.sqrt(np.maximum(information[:, np.arange(d), np.arange(d)], 1e-300))
    inside = (size > 1e-140) & (fitted > 0)
    pair = inside[:, :, None] & inside[:, None, :]
    scaled = np.where(pair, information / size[:, :, None] / size[:, None, :], 0.0)
    scaled[:, np.arange(d), np.arange(d)] = 1.0 + 1e-10
    inverse = np.linalg.inv(scaled) / size[:, :, None] / size[:, None, :]
    return np.where(pair, inverse, 0.0)


def _ends(
    missed: Array, weight: Array, rate: Array, count: Array, covariance: Array, level: float
) -> dict[str, tuple[Array, Array]]:
    """Normal intervals: of κ itself, of ln(false rate), and of the log-odds of recall by the delta method."""
    from scipy.special import ndtri

    z = float(ndtri(0.5 + level / 2))
    k = weight.shape[1]
    spread = np.sqrt(covariance[:, np.arange(1, k + 1), np.arange(1, k + 1)])
    low, high = np.clip(weight - z * spread, 0, MAX_WEIGHT), np.clip(weight + z * spread, 0, MAX_WEIGHT)
    about_rate = 1.0 / np.maximum(count, 0.5)
    wide = np.exp(np.minimum(z * np.sqrt(np.minimum(spread, 1e6) ** 2 + about_rate), 100.0))
    false_rate = rate * np.exp(-weight)
    ends = {
        "precision": (-np.expm1(-low), -np.expm1(-high)),
        "false_rate": (false_rate / wide, np.minimum(false_rate * wide, np.maximum(rate * wide, false_rate))),
    }
    ends["recall"] = _recall_ends(missed, weight, rate, about_rate, covariance, z)
    return ends


def _recall_ends(
    missed: Array, weight: Array, rate: Array, about_rate: Array, covariance: Array, z: float
) -> tuple[Array, Array]:
    """ln(recall/(1 − recall)) = ln(P_k γ_k) − ln(α + Σ_{j≠k} P_j γ_j), its gradient, and back."""
    precision, recall, _, change = quality_columns(missed, weight, rate)
    true_rate = precision * rate
    rest = np.maximum(change[:, None] - true_rate, 1e-12 * np.maximum(change[:, None], 1e-280))
    slope = rate * np.exp(-weight)
    ends = []
    for k in range(weight.shape[1]):
        gradient = np.concatenate([-1 / rest[:, k : k + 1], -slope / rest[:, k : k + 1]], axis=1)
        gradient[:, 1 + k] = slope[:, k] / np.maximum(true_rate[:, k], 1e-280)
        scaled = np.clip(gradient * np.sqrt(np.einsum("nii->ni", covariance)), -1e100, 1e100)
        size = np.maximum(np.sqrt(np.einsum("nii->ni", covariance)), 1e-300)
        link = covariance / size[:, :, None] / size[:, None, :]
        variance = np.einsum("ni,nij,nj->n", scaled, link, scaled) + about_rate[:, k]
        ends.append(np.minimum(z * np.sqrt(np.maximum(variance, 0.0)), 700.0))
    wide = np.stack(ends, axis=1)
    odds = np.log(np.maximum(true_rate, 1e-300)) - np.log(rest)
    nothing = true_rate <= 0
    low, high = (1 / (1 + np.exp(-np.clip(odds + side * wide, -700, 700))) for side in (-1, 1))
    return np.where(nothing, 0.0, np.minimum(low, recall)), np.where(nothing, 1.0, np.maximum(high, recall))


def _naive(observations: Observations, signals: Array, level: float) -> SignalQuality:
    from scipy.special import betaincinv

    def per_source(mask: NDArray[np.bool_]) -> Array:
        return np.stack([observations.per_page(mask[:, j]) for j in range(mask.shape[1])], axis=1)

    some = signals > 0
    signalled, both = per_source(some), per_source(some & observations.changed[:, None])
    changes = np.broadcast_to(observations.n_changes[:, None].astype(np.float64), both.shape)
    rate, _ = signal_rates(observations)
    ends, shares = {}, {}
    for name, of in (("precision", signalled), ("recall", changes)):
        shares[name] = np.divide(both, of, out=np.zeros_like(both), where=of > 0)
        tails = (0.5 - level / 2, 0.5 + level / 2)
        low, high = (betaincinv(both + 0.5, of - both + 0.5, tail) for tail in tails)
        ends[name] = (np.minimum(low, shares[name]), np.maximum(high, shares[name]))
    false_rate = rate * (1 - shares["precision"])
    ends["false_rate"] = (rate * (1 - ends["precision"][1]), rate * (1 - ends["precision"][0]))
    time = observations.total_time
    change = np.divide(observations.n_changes, time, out=np.zeros(len(time)), where=time > 0)
    weight = np.minimum(-np.log1p(-np.minimum(shares["precision"], 1 - 1e-16)), MAX_WEIGHT)
    missed = change * np.maximum(0.0, 1 - shares["recall"].sum(axis=1))
    columns = (missed, weight, rate, shares["precision"], shares["recall"], false_rate, change)
    return SignalQuality(*columns, ends, "naive", level)
