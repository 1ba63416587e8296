"""Loops in which the estimate chooses the next crawl: the 1 h / 57 h loop of Grimes et al., and rates that jump."""

from __future__ import annotations

from typing import Any

import numpy as np
from worlds import Array, outcomes

from recrawl.estimate import DriftStream, GammaPrior, RateStream
from recrawl.reproduce.grimes.figures import simulated_pages
from recrawl.simulate.learning.learning import crawls_by_estimate


def hours_loop(horizon: float, runs: int, ratio: float = 1 / 3, seed: int = 4) -> dict[str, Any]:
    """Pages of mean change time 24 h enter with no history; estimate with 1 h / 57 h, wait ratio/estimate, observe,
    repeat.

    Very stale: at the crawl that ends an interval the copy has been stale for 8 h or more (the known-rate interval). An
    interval counts when it ends within the horizon.
    """
    crawled = crawls_by_estimate(simulated_pages(runs, horizon, np.random.default_rng(seed)), ratio)
    stale = crawled.stale[crawled.whole]
    return {
        "horizon": horizon,
        "runs": runs,
        "very_stale": float(np.mean(stale >= 8.0)),
        "changed_share": float(np.mean(stale > 0)),
        "intervals": len(stale),
    }


def drift(
    factor: float, ratio: float, n: int = 10_000, before: int = 100, after: int = 20, seed: int = 5
) -> dict[str, Any]:
    """n pages of rate 1, crawled ``before`` times at ratio/estimate; the rate jumps by factor; ``after`` more crawls.

    The oracle is a stream restarted at the jump from a weak belief, shape 0.35 around the rate before. The informed
    stream is one too, but starts from what `DriftStream` believes of a jump: one in eight a rise, exponential.
    """
    rng = np.random.default_rng(seed)
    streams = {
        "drift": DriftStream(GammaPrior(0.35, 0.35), n),
        "half-life 10 crawls": RateStream(GammaPrior(0.35, 0.35), n, half_life=10.0 * ratio),
        "no forgetting": RateStream(GammaPrior(0.35, 0.35), n),
    }
    paths: dict[str, list[Array]] = {}
    for name, stream in streams.items():
        _follow(stream, 1.0, before, ratio, rng)
        paths[name] = _follow(stream, factor, after, ratio, rng)
    fresh = before + after if factor == 1 else after
    paths["oracle"] = _follow(RateStream(GammaPrior(0.35, 0.35), n), factor, fresh, ratio, rng)[-after:]
    paths["true prior"] = _follow(_true_prior(n), factor, fresh, ratio, rng)[-after:]
    row: dict[str, Any] = {"factor": factor, "ratio": ratio, "pages": n, "crawls_after": after}
    for name, path in paths.items():
        last = path[-1] / factor
        figures = {
            "median": np.median(last),
            "rmse": np.sqrt(np.mean((last - 1) ** 2)),
            "log_rmse": np.sqrt(np.mean(np.log(last) ** 2)),
        }
        row[name] = {key: float(value) for key, value in figures.items()}
        if factor == 1:
            row[name]["freshness_lost"] = freshness_lost(last / ratio)
        row[name]["median_path"] = [float(np.median(p) / factor) for p in path]
    for name in streams:
        for key in ("rmse", "log_rmse"):
            row[name][f"{key}_over_oracle"] = row[name][key] / row["oracle"][key]
            row[name][f"{key}_over_true_prior"] = row[name][key] / row["true prior"][key]
    return row


def _true_prior(n: int) -> RateStream:
    state = DriftStream(GammaPrior(1.0, 1.0), n, half_life=np.inf).state()
    state["pages"][:, :2] = [[1 / 8, 1.0, 1 / 4], [7 / 8, 1.0, 4.0]]  # type: ignore[index]
    return DriftStream.restore(state)


def freshness_lost(crawls: Array) -> float:
    """Freshness x·(1 − e^{−1/x}) lost by crawling pages of rate 1 at these rates x instead of all at their mean."""
    mean = crawls.mean()
    return float(-mean * np.expm1(-1 / mean) + np.mean(crawls * np.expm1(-1 / crawls)))


def _follow(stream: RateStream, rate: float, crawls: int, ratio: float, rng: np.random.Generator) -> list[Array]:
    n = len(stream)
    path = []
    for _ in range(crawls):
        interval = ratio / stream.change_rate
        stream.update(np.arange(n), interval, outcomes(rng, np.full(n, rate), interval))
        path.append(stream.change_rate)
    return path
