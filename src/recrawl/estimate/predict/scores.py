"""Scores of predicted rates: loss, AUC, and calibration by bins and by slope."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.estimate.predict.loss import censored_loss

Array = NDArray[np.float64]


def auc(score: ArrayLike, hit: ArrayLike) -> float:
    """P(a changed row has a higher score than an unchanged one); ties count half. nan if all rows are of one kind.

    >>> auc([0.1, 0.4, 0.4, 0.9], [False, True, False, True])
    0.875
    """
    value, which = np.asarray(score, np.float64), np.asarray(hit, np.bool_)
    n_hit, n_miss = int(which.sum()), int((~which).sum())
    if n_hit == 0 or n_miss == 0:
        return float("nan")
    _, place, count = np.unique(value, return_inverse=True, return_counts=True)
    rank = np.cumsum(count) - (count - 1) / 2.0
    return float((rank[place][which].sum() - n_hit * (n_hit + 1) / 2.0) / (n_hit * n_miss))


def reliability(chance: ArrayLike, hit: ArrayLike, n_bins: int = 10) -> list[dict[str, float]]:
    """Bins of equal size by predicted probability: mean prediction and observed share of each.

    >>> reliability([0.1, 0.3], [False, True], n_bins=2)[1]
    {'rows': 1, 'predicted': 0.3, 'observed': 1.0}
    """
    value, which = np.asarray(chance, np.float64), np.asarray(hit, np.float64)
    order = np.argsort(value, kind="stable")
    parts = [part for part in np.array_split(order, n_bins) if len(part)]
    return [
        {"rows": len(part), "predicted": float(value[part].mean()), "observed": float(which[part].mean())}
        for part in parts
    ]


def calibration(log_rate: Array, interval: Array, changed: NDArray[np.bool_]) -> tuple[float, float]:
    """Offset a and slope b with which e^{a + b·f} predicts best: 0 and 1 for calibrated rates.

    f is centred at its mean, so that the offset is that of a typical row. Newton's method on a convex loss.
    """
    centre = float(log_rate.mean())
    shifted = log_rate - centre
    point = np.array([0.0, 1.0])
    for _ in range(50):
        loss = censored_loss(centre + point[0] + point[1] * shifted, interval, changed)
        gradient = np.array([loss.gradient.sum(), (loss.gradient * shifted).sum()])
        cross = (loss.hessian * shifted).sum()
        hessian = np.array([[loss.hessian.sum(), cross], [cross, (loss.hessian * shifted**2).sum()]])
        step = np.linalg.solve(hessian + 1e-9 * np.trace(hessian) * np.eye(2), gradient)
        point -= np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-8:
            break
    return float(point[0]), float(point[1])


def score(log_rate: Array, interval: Array, changed: NDArray[np.bool_]) -> dict[str, Any]:
    """All scores of some rows. The loss is per row, in nats, beside the loss of a single rate for all rows."""
    if len(log_rate) == 0:
        return {"rows": 0}
    chance = -np.expm1(-np.exp(log_rate) * interval)
    found: dict[str, Any] = {
        "rows": len(log_rate),
        "changed": float(changed.mean()),
        "predicted": float(chance.mean()),
        "loss": float(censored_loss(log_rate, interval, changed).value.mean()),
    }
    if changed.any() and not changed.all():
        one = calibration(np.full(len(log_rate), float(log_rate.mean())), interval, changed)[0] + log_rate.mean()
        found["loss_of_one_rate"] = float(censored_loss(one, interval, changed).value.mean())
        found["auc"] = auc(chance, changed)
        found["calibration_offset"], found["calibration_slope"] = calibration(log_rate, interval, changed)
        found["reliability"] = reliability(chance, changed)
    return found
