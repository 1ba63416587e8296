"""Appendix E: precision and recall recovered from crawls, by the joint MLE, by the stream, and by counting shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from worlds import signalled_pages

from recrawl.estimate import QualityStream, estimate_signal_quality


def appendix_e(n: int = 300, horizon: float = 1e5, seed: int = 6) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Errors of precision and recall per method, and the points for the picture."""
    true, seen = signalled_pages(n, horizon, np.random.default_rng(seed))
    stream = QualityStream.from_quality([0.5], 0.1, n)
    stream.update(seen.page, seen.interval, seen.changed, seen.signals)
    found: dict[str, Any] = {m: estimate_signal_quality(seen, m) for m in ("naive", "mle", "shrunk")}  # type: ignore[arg-type]
    found["stream"] = stream
    rows = []
    for method, fit in found.items():
        for name in ("precision", "recall"):
            error = getattr(fit, name)[:, 0] - true[name]
            row = {"horizon": horizon, "pages": n, "crawls_median": float(np.median(seen.n_crawls)), "method": method}
            row |= {"quantity": name, "mean_error": float(error.mean()), "rmse": float(np.sqrt(np.mean(error**2)))}
            size = np.abs(error)
            for key, share in (("p10", 0.1), ("p90", 0.9), ("worst", 1.0)):
                row[key] = float(np.quantile(size, share))
            if hasattr(fit, "ends"):
                low, high = (end[:, 0] for end in fit.ends[name])
                row["coverage_90"] = float(np.mean((low <= true[name]) & (true[name] <= high)))
            rows.append(row)
    points = {
        name: {"true": true[name], **{m: getattr(f, name)[:, 0] for m, f in found.items()}}
        for name in ("precision", "recall")
    }
    return rows, points
