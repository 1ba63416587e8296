"""Grimes et al.: staleness of copies at crawls if the rate must be estimated (very-stale, changed-share)."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.model.cost import bounded_ratio, very_stale_share
from recrawl.reproduce.figure import Claim, Figure, Params, Row, Task, bounded, column
from recrawl.reproduce.grimes.figures import CHUNK, INTERVAL, RATIO, n_parts, simulated_pages
from recrawl.simulate.learning.learning import CrawlIntervals, crawls_by_estimate, crawls_every

_READING = "the paper does not say how it counts; here an interval counts if its crawl falls within the horizon"
_BINS = 13
_TRIED = (0.15, 0.2, 0.25, 0.3, RATIO, 0.4, 0.5)


def _shares(params: Params, key: Row, rng: np.random.Generator) -> Row:
    """Shares of intervals that ended very stale (8 h or more) and that had a change; a histogram of staleness."""
    trace = simulated_pages(min(CHUNK, params["reps"]), key["horizon"], rng)
    row: Row = {}
    for name, crawled in (
        ("unknown", crawls_by_estimate(trace, RATIO)),
        ("known", crawls_every(trace, RATIO * INTERVAL)),
    ):
        stale = crawled.stale[crawled.whole]
        row |= {f"{name}_intervals": len(stale), f"{name}_very": int((stale >= RATIO * INTERVAL).sum())}
        row |= {f"{name}_changed": int((stale > 0).sum())}
        row[f"{name}_hours"] = np.bincount(np.minimum(stale[stale > 0], _BINS - 1).astype(int), minlength=_BINS)
    if key["horizon"] == params["horizons"][0]:
        row["very_by_ratio"] = [_very_stale(crawls_by_estimate(trace, ratio)) for ratio in _TRIED]
    return row


def _very_stale(crawled: CrawlIntervals) -> float:
    return float(np.mean(crawled.stale[crawled.whole] >= RATIO * INTERVAL))


def _share_tasks(params: Params) -> list[Task]:
    return [
        Task({"horizon": horizon, "part": part}, horizon * 1.5e-5)
        for horizon, runs in zip(params["horizons"], params["runs"], strict=True)
        for part in range(n_parts(runs))
    ]


def _share(rows: list[Row], name: str, what: str, horizon: float) -> tuple[float, float]:
    part, whole = (column(rows, f"{name}_{end}", horizon=horizon) for end in (what, "intervals"))
    share = float(part.sum() / whole.sum())
    return share, float(np.std(part - share * whole, ddof=1) * np.sqrt(len(part)) / whole.sum())


def _as_in_the_paper(key: str, text: str, ours: float, error: float, paper: float) -> Claim:
    """A share that must lie within four standard errors of the paper's."""
    most = 4 * error
    return bounded(key, text, ours, error, least=paper - most, most=paper + most, paper=paper, note=_READING)


def _judge_stale(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    short, long = (_share(rows, "unknown", "very", horizon) for horizon in params["horizons"])
    claims = [
        bounded("fall", "the share of very stale intervals falls with the horizon (by)", short[0] - long[0], least=0.0),
        bounded(
            "known",
            "it is 0 when the rate is known",
            _share(rows, "known", "very", params["horizons"][0])[0],
            most=0.0,
            paper=0.0,
        ),
    ]
    for horizon, (ours, error), paper in zip(params["horizons"], (short, long), (0.091, 0.038), strict=True):
        text = f"share of intervals stale for 8 h or more, {horizon:.0f} h"
        claims.append(_as_in_the_paper(f"share_{horizon:.0f}", text, ours, error, paper))
    shares = np.mean([row["very_by_ratio"] for row in rows if row["horizon"] == params["horizons"][0]], axis=0)
    kept = [ratio for ratio, share in zip(_TRIED, shares, strict=True) if share <= 0.05]
    sure = float(bounded_ratio(0.05, INTERVAL, RATIO * INTERVAL))
    text = f"largest ratio tried that keeps very stale intervals under 5% (with the rate known: {sure:.3f})"
    claims.append(Claim("bounded", text, max(kept, default=None)))
    hist = {
        name: np.sum([row[f"{name}_hours"] for row in rows if row["horizon"] == params["horizons"][0]], axis=0)
        for name in ("known", "unknown")
    }
    data: Row = {name: counts / max(counts.sum(), 1) for name, counts in hist.items()}
    formula = very_stale_share(np.array(_TRIED), INTERVAL, RATIO * INTERVAL)
    return claims, data | {"ratio": _TRIED, "very_stale": shares, "very_stale_known": formula}


def _draw_stale(canvas: Any, data: Row) -> None:
    axes, right = canvas.subplots(1, 2, width_ratios=(3, 2))
    right.plot(data["ratio"], data["very_stale"], "o-", color="#4477aa", label="rate unknown, 1000 h")
    right.plot(data["ratio"], data["very_stale_known"], "--", color="#888888", label="rate known, by formula")
    right.set(xlabel="crawl interval / (estimated) change interval", ylabel="share of intervals stale for 8 h or more")
    right.legend()
    right.grid(alpha=0.3)
    at = np.arange(_BINS)
    axes.bar(at - 0.2, data["known"], 0.4, color="#bbbbbb", label="rate known")
    axes.bar(at + 0.2, data["unknown"], 0.4, color="#4477aa", label="rate unknown")
    axes.axvline(7.5, color="#cc3311", ls="--", label="very stale from here")
    axes.set_xticks(at, [*map(str, at[:-1]), f"{_BINS - 1}+"])
    axes.set(
        xlabel="hours stale at the crawl", ylabel="share of intervals that saw a change", title="1000 h, ratio 1/3"
    )
    axes.legend()


def _judge_changed(params: Params, rows: list[Row]) -> tuple[list[Claim], Row]:
    first, last = params["horizons"]
    known = _share(rows, "known", "changed", first)
    claims = [
        bounded(
            "known",
            "intervals that saw a change, rate known (1 − e^{−1/3} = 0.2835)",
            *known,
            least=0.275,
            most=0.292,
            paper=0.283,
        )
    ]
    shares: dict[str, list[float]] = {"known": [], "unknown": []}
    for horizon, paper in ((first, 0.271), (last, 0.282)):
        ours, error = _share(rows, "unknown", "changed", horizon)
        text = f"the same, rate unknown, {horizon:.0f} h"
        claims.append(_as_in_the_paper(f"unknown_{horizon:.0f}", text, ours, error, paper))
        for name, found in shares.items():
            found += _share(rows, name, "changed", horizon)
    nearer = abs(shares["unknown"][2] - known[0]) <= abs(shares["unknown"][0] - known[0])
    claims.append(bounded("nearer", "with time it tends to the known case (1: yes)", float(nearer), least=1.0))
    return claims, {"horizons": [first, last], **shares}


def _draw_changed(canvas: Any, data: Row) -> None:
    axes = canvas.subplots()
    at = np.arange(2)
    for shift, name, colour in ((-0.2, "known", "#bbbbbb"), (0.2, "unknown", "#4477aa")):
        axes.bar(
            at + shift,
            data[name][::2],
            0.4,
            yerr=[2 * e for e in data[name][1::2]],
            capsize=4,
            color=colour,
            label=f"rate {name}",
        )
    axes.plot(at + 0.2, [0.271, 0.282], "D", color="#cc3311", label="the paper, unknown")
    axes.axhline(-np.expm1(-RATIO), color="#999999", ls="--", label="1 − e^(−1/3)")
    axes.set_xticks(at, [f"{h:.0f} h" for h in data["horizons"]])
    axes.set(ylabel="share of intervals that saw a change", ylim=(0.2, 0.34))
    axes.legend()


_SHARES: dict[str, Params] = {
    "tiny": {"horizons": [300.0, 900.0], "runs": [100, 100], "reps": 100},
    "quick": {"horizons": [1000.0, 12_000.0], "runs": [1000, 200], "reps": 1000},
    "full": {"horizons": [1000.0, 12_000.0], "runs": [1000, 1000], "reps": 1000},
}
FIGURES = [
    Figure(
        "grimes/very-stale", "Very stale intervals", _SHARES, _share_tasks, _shares, _judge_stale, _draw_stale,
        "shares", (11.0, 4.6),
    ),
    Figure(
        "grimes/changed-share", "Intervals that saw a change", _SHARES, _share_tasks, _shares, _judge_changed,
        _draw_changed, "shares",
    ),
]  # fmt: skip
