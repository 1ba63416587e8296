"""One picture per question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

COLOURS = {
    "naive": "#bbbbbb", "regular": "#ccbb44", "mle": "#4477aa", "smoothed": "#66ccee", "prior-hours": "#228833",
    "posterior": "#ee6677", "stream": "#aa3377", "shrunk": "#ee6677", "drift": "#aa3377", "oracle": "#000000",
    "half-life 10 crawls": "#4477aa", "no forgetting": "#bbbbbb",
}  # fmt: skip


def draw_all(figures: dict[str, Any], points: dict[str, Any], folder: Path) -> None:
    """Write bias.png, drift.png, appendix-e.png and closeness.png."""
    draw_bias(figures["bias"], folder / "bias.png")
    draw_drift(figures["drift"], folder / "drift.png")
    draw_signals(points, folder / "appendix-e.png")
    draw_closeness(figures["closeness"], folder / "closeness.png")


def draw_bias(rows: list[dict[str, Any]], path: Path) -> None:
    """Bias above, RMSE below, one column per pattern of intervals."""
    patterns = list(dict.fromkeys(row["pattern"] for row in rows))
    figure, panels = plt.subplots(2, len(patterns), figsize=(15, 7), sharex=True, sharey="row", layout="constrained")
    for column, pattern in enumerate(patterns):
        for method in dict.fromkeys(row["method"] for row in rows):
            chosen = [row for row in rows if row["pattern"] == pattern and row["method"] == method]
            x = [row["rate"] for row in chosen]
            for line, key in enumerate(("bias", "rmse")):
                y = np.clip([row[key] for row in chosen], -1, 2)
                style = "--" if method == "stream" else "-"
                panels[line, column].plot(x, y, style, marker="o", markersize=4, color=COLOURS[method], label=method)
        panels[0, column].set_title({"two decades": "spread over two decades"}.get(pattern, f"{pattern} intervals"))
        panels[1, column].set_xlabel("true changes per day")
        panels[0, column].axhline(0, color="#999999", linewidth=0.7)
    panels[0, 0].set(xscale="log", ylabel="relative bias")
    panels[1, 0].set(ylabel="relative RMSE", ylim=(0, 1.2))
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside right upper", frameon=False)
    figure.suptitle(f"Estimators after {rows[0]['crawls']} crawls of {rows[0]['pages']} pages")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_drift(rows: list[dict[str, Any]], path: Path) -> None:
    """Median estimate over the crawls after a jump."""
    jumps = [row for row in rows if row["factor"] != 1]
    ratios = list(dict.fromkeys(row["ratio"] for row in jumps))
    figure, panels = plt.subplots(2, len(ratios), figsize=(13, 7), sharex=True, sharey=True, layout="constrained")
    for row in jumps:
        panel = panels[0 if row["factor"] > 1 else 1, ratios.index(row["ratio"])]
        for name in ("no forgetting", "half-life 10 crawls", "drift", "oracle"):
            medians = row[name]["median_path"]
            style = "--" if name == "oracle" else "-"
            panel.plot(np.arange(1, len(medians) + 1), medians, style, color=COLOURS[name], label=name)
        panel.axhspan(0.7, 1.3, color="#eeeeee", zorder=0)
        error = row["drift"]
        title = f"jump x{row['factor']:g}, interval = {row['ratio']:.2f}/estimate\ndrift: RMSE "
        title += f"{error['rmse_over_oracle']:.2f}, of ln {error['log_rmse_over_oracle']:.2f} times the oracle's"
        panel.set_title(title, fontsize=9)
        panel.set_yscale("log")
    for panel in panels[1]:
        panel.set(xlabel="crawls after the jump", xticks=[1, 5, 10, 15, 20])
    for panel in panels[:, 0]:
        panel.set_ylabel("median estimate / new rate")
    panels[0, 0].legend(frameon=False, fontsize=9)
    figure.suptitle("A rate that jumps tenfold after 100 crawls (grey: within 30%)")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_signals(points: dict[str, Any], path: Path) -> None:
    """Figures 10 and 11: estimated against true precision and recall."""
    figure, panels = plt.subplots(2, 3, figsize=(12, 8), sharex=True, sharey=True, layout="constrained")
    for line, name in enumerate(("precision", "recall")):
        for column, method in enumerate(("naive", "mle", "stream")):
            panel = panels[line, column]
            true, found = points[name]["true"], points[name][method]
            panel.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
            panel.plot(true, found, ".", markersize=4, color=COLOURS[method] if method != "naive" else "#cc3311")
            panel.set_title(f"{name}, {method}: mean error {np.mean(found - true):+.4f}")
            panel.set(xlim=(0, 1), ylim=(0, 1), xlabel="true", ylabel="estimated")
    figure.suptitle("Signal quality recovered from crawls, horizon 100 000 (Appendix E, figures 10 and 11)")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_closeness(rows: list[dict[str, Any]], path: Path) -> None:
    """How far the stream is from the exact posterior as history grows."""
    figure, panel = plt.subplots(figsize=(7, 4.5), layout="constrained")
    patterns = list(dict.fromkeys(row["pattern"] for row in rows))
    for pattern, colour in zip(patterns, ("#4477aa", "#228833", "#aa3377"), strict=True):
        chosen = [row for row in rows if row["pattern"] == pattern]
        x = [row["crawls"] for row in chosen]
        for key, style, what in (("posterior_median_sd", "-o", "median"), ("posterior_p99_sd", "--s", "99%")):
            panel.plot(x, [row[key] for row in chosen], style, color=colour, label=f"{pattern}, {what}")
    panel.set(xscale="log", yscale="log", xlabel="crawls per page")
    panel.set_ylabel("|stream − exact posterior mean|, in posterior sd")
    panel.set_title("Streaming beside the exact batch posterior")
    panel.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)
