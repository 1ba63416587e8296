"""Bias and error of every estimator over rates × interval patterns, coverage of intervals, streaming beside batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from worlds import Array, fixed_pattern, outcomes, self_chosen, table

from recrawl.estimate import GammaPrior, Observations, RateStream, estimate_change_rate, posterior_moments

METHODS = ("naive", "regular", "mle", "smoothed", "prior-hours", "posterior", "stream")
RATES = (0.05, 0.2, 1.0, 5.0)
PATTERNS = ("daily", "exponential", "two decades", "self-chosen")
PRIOR = GammaPrior(0.5, 0.5)


def estimates(seen: Observations) -> dict[str, Array]:
    """Every estimator's rates per day on the same observations."""
    found = {
        m: estimate_change_rate(seen, m, day=1.0, prior=PRIOR, level=None).change_rate  # type: ignore[arg-type]
        for m in METHODS[:-1]
    }
    stream = RateStream(PRIOR, len(seen))
    stream.update(seen.page, seen.interval, seen.changed)
    return found | {"stream": stream.change_rate}


def bias_and_error(n: int = 4000, k: int = 30, seed: int = 1) -> list[dict[str, Any]]:
    """Relative bias and RMSE after k crawls of n pages with the same rate, per day, for each pattern of intervals."""
    rng = np.random.default_rng(seed)
    rows = []
    for pattern in PATTERNS:
        for rate in RATES:
            true = np.full(n, rate)
            if pattern == "self-chosen":
                seen = self_chosen(RateStream(PRIOR, n), true, k, rng)
            else:
                interval = fixed_pattern(pattern, n, k, rng)
                seen = table(interval, outcomes(rng, true[:, None], interval))
            for method, found in estimates(seen).items():
                error = found / rate - 1
                rmse, log_rmse = (
                    np.sqrt(np.mean(error**2)),
                    np.sqrt(np.mean(np.log(np.maximum(found / rate, 1e-3)) ** 2)),
                )
                row = {"pattern": pattern, "rate": rate, "method": method, "crawls": k, "pages": n}
                rows.append(
                    row
                    | {
                        "bias": float(error.mean()),
                        "median": float(np.median(error)),
                        "rmse": float(rmse),
                        "log_rmse": float(log_rmse),
                    }
                )
    return rows


def coverage(n: int = 20_000, seed: int = 2) -> list[dict[str, Any]]:
    """Share of 90% intervals that hold the true rate, pages drawn from the prior."""
    rng = np.random.default_rng(seed)
    prior = GammaPrior(0.8, 2.0)
    rows = []
    for pattern, k in (
        ("exponential", 5),
        ("exponential", 20),
        ("exponential", 98),
        ("daily", 20),
        ("self-chosen", 20),
    ):
        true = rng.gamma(0.8, 1 / 2.0, n)
        if pattern == "self-chosen":
            seen = self_chosen(RateStream(prior, n), true, k, rng)
        else:
            interval = fixed_pattern(pattern, n, k, rng)
            seen = table(interval, outcomes(rng, true[:, None], interval))
        stream = RateStream(prior, n)
        stream.update(seen.page, seen.interval, seen.changed)
        ends = {"stream": stream.interval(0.9)}
        for method, given in (("posterior", prior), ("posterior, fitted prior", None), ("mle", None)):
            found = estimate_change_rate(seen, method.split(",")[0], prior=given, day=1.0)  # type: ignore[arg-type]
            ends[method] = (found.low, found.high)
        for method, (low, high) in ends.items():
            held = float(np.mean((low <= true) & (true <= high)))
            rows.append({"pattern": pattern, "crawls": k, "pages": n, "method": method, "coverage": held})
    return rows


def closeness(n: int = 5000, seed: int = 3) -> list[dict[str, Any]]:
    """Streaming mean beside the exact posterior mean and the MLE, in posterior standard deviations."""
    rng = np.random.default_rng(seed)
    prior = GammaPrior(0.8, 2.0)
    rows = []
    for pattern in ("daily", "exponential", "two decades"):
        for k in (5, 20, 98, 1000):
            true = rng.gamma(0.8, 1 / 2.0, n if k < 1000 else n // 5)
            interval = fixed_pattern(pattern, len(true), k, rng)
            seen = table(interval, outcomes(rng, true[:, None], interval))
            exact = posterior_moments(seen, prior)
            stream = RateStream(prior, len(true))
            stream.update(seen.page, seen.interval, seen.changed)
            mle = estimate_change_rate(seen, "mle", level=None).change_rate
            both = (seen.n_changes > 0) & (seen.n_changes < k)
            scale = np.sqrt(exact.variance)
            row: dict[str, Any] = {"pattern": pattern, "crawls": k, "pages": len(true)}
            for name, other, keep in (
                ("posterior", exact.mean, np.ones(len(true), bool)),
                ("mle", mle, both),
            ):
                apart = (np.abs(stream.change_rate - other) / scale)[keep]
                relative = (np.abs(stream.change_rate / np.maximum(other, 1e-300) - 1))[keep]
                row |= {f"{name}_median_sd": float(np.median(apart)), f"{name}_p90_sd": float(np.quantile(apart, 0.9))}
                row |= {
                    f"{name}_p99_sd": float(np.quantile(apart, 0.99)),
                    f"{name}_median_relative": float(np.median(relative)),
                }
            halves = [RateStream(prior, len(true)) for _ in range(2)]
            for half, stream_ in enumerate(halves):
                rows_ = (np.arange(len(seen.page)) % k < k // 2) == (half == 0)
                stream_.update(seen.page[rows_], seen.interval[rows_], seen.changed[rows_])
            apart = np.abs(halves[0].merge(halves[1]).change_rate - exact.mean) / scale
            row |= {"merged_median_sd": float(np.median(apart)), "merged_p90_sd": float(np.quantile(apart, 0.9))}
            apart = (np.abs(exact.mean - mle) / scale)[both]
            rows.append(row | {"batch_posterior_to_mle_median_sd": float(np.median(apart))})
    return rows
