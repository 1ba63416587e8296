"""The figures as Markdown tables, with what was asked for beside what was found."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write_tables(figures: dict[str, Any], path: Path) -> None:
    """All tables in one file."""
    parts = [
        "# Estimation: measured figures\n",
        "Written by `python experiments/estimate/run.py`; the same figures are in results.json.\n",
        _bias(figures["bias"]),
        _coverage(figures["coverage"]),
        _closeness(figures["closeness"]),
        _hours(figures["hours_loop"]),
        _drift(figures["drift"]),
        _signals(figures["appendix_e"]),
    ]
    path.write_text("\n".join(parts))


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


def _bias(rows: list[dict[str, Any]]) -> str:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cells: dict[tuple[str, float], dict[str, str]] = {}
    for row in rows:
        place = cells.setdefault((row["pattern"], row["rate"]), {})
        place[row["method"]] = f"{row['bias']:+.2f} / {row['rmse']:.2f}"
    body = [[p, f"{r:g}", *(found[m] for m in methods)] for (p, r), found in cells.items()]
    title = (
        f"## Bias and RMSE, relative, after {rows[0]['crawls']} crawls ({rows[0]['pages']} pages each)\n\n"
        "Rates per day; posterior and stream under gamma(0.5, 0.5 day); intervals of 1 day on average, or chosen by "
        "the stream's own estimate (interval = 1/estimate).\n\n"
    )
    return title + _table(["intervals", "rate", *methods], body)


def _coverage(rows: list[dict[str, Any]]) -> str:
    body = [[r["pattern"], str(r["crawls"]), r["method"], f"{r['coverage']:.3f}"] for r in rows]
    title = f"## Coverage of 90% intervals, {rows[0]['pages']} pages drawn from gamma(0.8, 2 days)\n\n"
    wanted = "Wanted of the posterior: .88 to .92.\n\n"
    return title + wanted + _table(["intervals", "crawls", "method", "coverage"], body)


def _closeness(rows: list[dict[str, Any]]) -> str:
    keys = ["posterior_median_sd", "posterior_p90_sd", "posterior_p99_sd", "mle_median_sd", "mle_p90_sd"]
    keys += ["mle_median_relative", "batch_posterior_to_mle_median_sd", "merged_median_sd", "merged_p90_sd"]
    body = [[r["pattern"], str(r["crawls"]), *(f"{r[key]:.3f}" for key in keys)] for r in rows]
    head = ["intervals", "crawls", "stream − posterior: median", "90%", "99%", "stream − MLE: median", "90%"]
    head += ["relative", "posterior − MLE: median", "two merged halves − posterior: median", "90%"]
    title = "## The stream beside the batch estimates, in posterior standard deviations\n\n"
    return title + _table(head, body)


def _hours(rows: list[dict[str, Any]]) -> str:
    paper = {1000.0: ("9.1%", "27.1%"), 12000.0: ("3.8%", "28.2%")}
    spec = {1000.0: ("5.6%", "31.0%"), 12000.0: ("1.5%", "28.8%")}
    body = []
    for row in rows:
        horizon = row["horizon"]
        for name, key, k in (("very stale (≥ 8 h)", "very_stale", 0), ("changed share", "changed_share", 1)):
            others = [spec[horizon][k], paper[horizon][k]]
            body.append([f"{horizon:g} h", str(row["runs"]), name, f"{row[key]:.1%}", *others])
    title = "## The 1 h / 57 h loop, change time 24 h, wait 1/3 of the estimated change time\n\n"
    known = "With the rate known: 0% very stale, 28.3% changed.\n\n"
    return title + known + _table(["horizon", "runs", "figure", "here", "earlier reading", "paper"], body)


def _drift(rows: list[dict[str, Any]]) -> str:
    body = []
    for row in rows:
        for name in ("drift", "half-life 10 crawls", "no forgetting", "oracle", "true prior"):
            found = row[name]
            lost = f"{found['freshness_lost']:.4f}" if "freshness_lost" in found else ""
            ratios = [f"{found[k]:.2f}" if k in found else "" for k in ("rmse_over_oracle", "log_rmse_over_oracle")]
            cells = [f"{row['ratio']:.2f}", f"x{row['factor']:g}", name, f"{found['median']:.3f}"]
            body.append([*cells, f"{found['rmse']:.3f}", ratios[0], f"{found['log_rmse']:.3f}", ratios[1], lost])
    head = ["interval·estimate", "jump", "estimator", "median/true", "RMSE", "/oracle", "RMSE of ln", "/oracle"]
    title = f"## A jump after 100 crawls: {rows[0]['crawls_after']} crawls later, {rows[0]['pages']} pages\n\n"
    note = "x1: no jump, 120 crawls. Freshness lost: by planning on the estimates, at the same crawls per time.\n\n"
    return title + note + _table([*head, "freshness lost"], body)


def _signals(rows: list[dict[str, Any]]) -> str:
    body = [
        [f"{r['horizon']:g}", f"{r['crawls_median']:g}", r["method"], r["quantity"], f"{r['mean_error']:+.4f}"]
        + [f"{r[k]:.4f}" for k in ("rmse", "p10", "p90", "worst")]
        + [f"{r['coverage_90']:.3f}" if "coverage_90" in r else ""]
        for r in rows
    ]
    head = [
        "horizon",
        "crawls",
        "method",
        "quantity",
        "mean error",
        "RMSE",
        "10% below",
        "90% below",
        "worst",
    ]
    return "## Appendix E: precision and recall recovered\n\n" + _table([*head, "90% interval covers"], body)
