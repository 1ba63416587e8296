"""``recrawl estimate`` of a log in several files: a sample of all fits the priors, then each part is estimated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from recrawl.cli.shared.files.part_calls import calling, check_folder
from recrawl.cli.shared.logs.log_parts import SAMPLE, LogPart, fitted, sample_of
from recrawl.cli.shared.logs.roles import LogOptions
from recrawl.cli.views.estimate_report import count_lines, findings_of, print_figures, write_rates
from recrawl.estimate import GroupPriors

_BINS = np.logspace(-12.0, 12.0, 4801)  # of change rates: 1.2% wide
_SUMS = ("pages", "pages_with_history", "crawls", "changes", "failed_crawls", "duplicate_times")


@dataclass(frozen=True)
class Ask:
    """What is asked of every part: as the options say."""

    method: str
    group: str
    level: float
    scale: float
    unit: str
    limit: int
    folder: Path | None


def estimate_parts(
    paths: Sequence[Path], ask: Ask, options: LogOptions, places: tuple[int, str | None], *, as_json: bool
) -> None:
    """Estimate the pages of all parts, write and report."""
    from rich.console import Console

    check_folder(ask.folder)
    parts = [LogPart(path.resolve(), options, ask.group) for path in paths]
    with Console(stderr=True).status(f"reading {len(paths)} files") as status, calling(*places) as call:
        groups = None
        if ask.method == "posterior":
            groups = fitted(call(partial(sample_of, -(-SAMPLE // len(parts))), parts))
            status.update(f"estimating the pages of {len(paths)} files")
        found = call(partial(_estimated, ask, groups), parts)
    figures = _joined(found, groups, ask)
    if as_json:
        files = {"files": [str(path) for path in paths], "output": ask.folder and str(ask.folder)}
        typer.echo(json.dumps({**files, **figures}, allow_nan=False))
        return
    print_figures(figures, count_lines(figures, ask.unit), [] if ask.folder is None else [ask.folder])


def _estimated(ask: Ask, groups: GroupPriors | None, part: LogPart) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """The figures of a part, and how many of its pages have which rate."""
    found = findings_of(part.log(), ask.method, ask.group, ask.level, groups, lambda share, what: None)
    if ask.folder is not None:
        suffix = part.path.suffix if part.path.suffix.lower() in (".parquet", ".pq") else ".csv"
        write_rates(found, ask.folder.resolve() / (part.path.stem + suffix), ask.scale, ask.unit)
    rates = found.rates.change_rate[found.rates.n_crawls > 0] * ask.scale
    places = np.clip(np.searchsorted(_BINS, rates), 0, len(_BINS) - 1)
    return found.as_dict(ask.scale, ask.unit, ask.limit), np.bincount(places, minlength=len(_BINS))


def _joined(
    found: Sequence[tuple[dict[str, Any], NDArray[np.int64]]], groups: GroupPriors | None, ask: Ask
) -> dict[str, Any]:
    """The figures of all parts. Tests of hours, bursts and signals are left to single files."""
    figures = [one for one, _ in found]
    tested = [one["poisson"] for one in figures if one["poisson"]["pages_tested"]]
    n_tested = sum(one["pages_tested"] for one in tested)
    rejected = sum(one["pages_tested"] * one["rejected"] for one in tested) / n_tested if n_tested else None
    rows = sorted((row for one in figures for row in one["rates"]), key=lambda row: -row["n_crawls"])
    prior = None
    if groups is not None:
        prior = {"shape": float(groups.population.shape), "mean": float(groups.population.mean) * ask.scale}
    return {
        **{name: sum(one[name] for one in figures) for name in _SUMS},
        "repairs": summed(one["repairs"] for one in figures),
        "computed": summed(one["computed"] for one in figures),
        "remarks": list(dict.fromkeys(line for one in figures for line in one["remarks"])),
        "method": figures[0]["method"],
        "level": figures[0]["level"],
        "unit": ask.unit,
        "change_rate": _quantiles(np.sum([bins for _, bins in found], axis=0)),
        "prior": prior,
        "poisson": {"pages_tested": n_tested, "rejected": rejected},
        "rates": rows[: ask.limit],
    }


def summed(counts: Any) -> dict[str, int]:
    """Counts by name, added up."""
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)


def _quantiles(bins: NDArray[np.int64]) -> dict[str, float]:
    """Quantiles of rates, to the width of a bin."""
    if not bins.sum():
        return {"p10": 0.0, "median": 0.0, "p90": 0.0}
    ends = np.cumsum(bins) / bins.sum()
    centres = _BINS / np.sqrt(_BINS[1] / _BINS[0])
    places = np.searchsorted(ends, [0.1, 0.5, 0.9])
    return dict(zip(("p10", "median", "p90"), map(float, np.where(places, centres[places], 0.0)), strict=True))
