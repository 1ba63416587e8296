"""The loss of rate predictors: minus the log likelihood of "changed or not within an interval" (censored Poisson)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

_LOWEST, _HIGHEST = -60.0, 60.0  # of the logarithm of an expected number of changes


class Loss(NamedTuple):
    """Loss of each row, and its first and second derivative by ln rate."""

    value: Array
    gradient: Array
    hessian: Array


def censored_loss(log_rate: ArrayLike, interval: ArrayLike, changed: ArrayLike) -> Loss:
    """Minus the log likelihood of an outcome within an interval τ at rate e^f: P(changed) = 1 − exp(−e^f·τ).

    With m = e^f·τ and x = m/(e^m − 1): unchanged, the loss is m, gradient m, hessian m; changed, the loss is
    −ln(1 − e^{−m}), gradient −x, hessian x·(m + x − 1). Both hessians are at least 0: the loss is convex in f.

    >>> loss = censored_loss(np.log([0.5, 0.5]), 2.0, [False, True])
    >>> loss.value.round(4).tolist(), loss.gradient.round(4).tolist(), loss.hessian.round(4).tolist()
    ([1.0, 0.4587], [1.0, -0.582], [1.0, 0.3387])
    """
    f = np.asarray(log_rate, np.float64) + np.log(np.asarray(interval, np.float64))
    m = np.exp(np.clip(f, _LOWEST, _HIGHEST))
    small = np.minimum(m, 1e-3)
    with np.errstate(over="ignore"):
        x = np.where(m < 1e-3, 1.0 - small / 2.0 + small**2 / 12.0, m / np.expm1(m))
    curve = np.where(m < 1e-3, small / 2.0 + small**2 / 12.0, m + x - 1.0)  # m + x − 1 without cancellation
    hit = np.asarray(changed, np.bool_)
    value = np.where(hit, -np.log(-np.expm1(-m)), m)
    return Loss(value, np.where(hit, -x, m), np.where(hit, x * curve, m))


def expected_changes(log_rate: Array, interval: Array, changed: Flags) -> Array:
    """Expected number of changes in an interval, given whether there was any: 0, or m/(1 − e^{−m})."""
    m = np.exp(np.clip(log_rate + np.log(interval), _LOWEST, _HIGHEST))
    with np.errstate(over="ignore"):
        return np.where(changed, m / -np.expm1(-m), 0.0)
