"""Results of ``recrawl estimate``: the analysis, its figures as a dictionary, as text and as a table of pages."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl._system.files import whole_file
from recrawl.cli.shared.files.short_urls import WIDTH, short_url
from recrawl.cli.shared.logs.crawl_log import CrawlLog, read_crawl_log, remarks
from recrawl.cli.shared.logs.log_parts import group_labels
from recrawl.cli.shared.logs.roles import LogOptions
from recrawl.estimate import (
    GammaPrior,
    GroupPriors,
    PoissonLook,
    RateEstimate,
    SignalQuality,
    estimate_change_rate,
    estimate_signal_quality,
    fit_group_priors,
    poisson_look,
)

Array = NDArray[np.float64]
Progress = Callable[[float, str], None]  # share done, from 0 to 1, and what is being done
_WIDTH = 150  # columns of a table that is not written to a terminal
_FIGURES = 60  # of them, beside the URL
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True)
class Findings:
    """A log, its rates, the quality of its signals (None without signals), and the tests of constant rates."""

    log: CrawlLog
    rates: RateEstimate
    quality: SignalQuality | None
    look: PoissonLook
    population: GammaPrior | None

    def as_dict(self, scale: float, unit: str, limit: int) -> dict[str, Any]:
        """All figures as plain numbers. Rates are per unit; pages with most crawls come first."""
        seen, rates = self.log.observations, self.rates
        known = rates.n_crawls > 0
        quantiles = np.quantile(rates.change_rate[known] * scale, [0.1, 0.5, 0.9]) if known.any() else np.zeros(3)
        return {
            "pages": len(seen),
            "pages_with_history": int(known.sum()),
            "crawls": len(seen.interval),
            "changes": int(rates.n_changes.sum()),
            "failed_crawls": self.log.n_failed,
            "duplicate_times": int((seen.interval == 0).sum()),
            "repairs": self.log.repairs,
            "computed": self.log.computed,
            "remarks": remarks(self.log),
            "method": rates.method,
            "level": rates.level,
            "unit": unit,
            "change_rate": dict(zip(("p10", "median", "p90"), map(float, quantiles), strict=True)),
            "prior": self._prior(scale),
            "poisson": self._poisson(),
            "signals": self._signals(),
            "rates": [self._page(i, scale) for i in np.argsort(-rates.n_crawls, kind="stable")[:limit]],
        }

    def _prior(self, scale: float) -> dict[str, float] | None:
        if self.population is None:
            return None
        return {"shape": float(self.population.shape), "mean": float(self.population.mean) * scale}

    def _poisson(self) -> dict[str, Any]:
        look = self.look
        tested = look.dispersion[look.dispersion > 0]
        return {
            "pages_tested": look.n_tested,
            "dispersion": float(np.median(tested)) if len(tested) else None,
            "rejected": look.rejected if look.n_tested else None,
            "burst": look.burst,
            "intervals_by_hour": look.n_hour,
            "intervals_by_weekday": look.n_weekday,
            "by_hour": look.by_hour.tolist() if look.n_hour else None,
            "by_weekday": look.by_weekday.tolist() if look.n_weekday else None,
        }

    def _signals(self) -> dict[str, dict[str, float]] | None:
        if self.quality is None:
            return None
        names = ("precision", "recall", "signal_rate", "false_rate")
        return {
            source: {name: float(np.median(getattr(self.quality, name)[:, k])) for name in names[:2]}
            for k, source in enumerate(self.log.sources)
        }

    def _page(self, i: int, scale: float) -> dict[str, Any]:
        rates = self.rates
        figures = {"change_rate": rates.change_rate, "low": rates.low, "high": rates.high}
        row: dict[str, Any] = {"url": self.log.urls[i]}
        row |= {name: float(min(column[i] * scale, 1e300)) for name, column in figures.items()}
        return row | {"n_crawls": int(rates.n_crawls[i]), "n_changes": int(rates.n_changes[i])}


def analyse(path: Path, method: str, group: str, level: float, options: LogOptions, report: Progress) -> Findings:
    """Read a log and estimate rates, signal quality and tests of constant rates."""
    log = read_crawl_log(path, options, progress=lambda share: report(0.5 * share, f"reading {path}"))
    groups = None
    if method == "posterior":
        report(0.5, f"fitting priors to {len(log.urls)} pages")
        groups = fit_group_priors(log.observations, group_labels(log, group))
    return findings_of(log, method, group, level, groups, report)


def findings_of(
    log: CrawlLog, method: str, group: str, level: float, groups: GroupPriors | None, report: Progress
) -> Findings:
    """Rates of a log's pages by the priors of their groups (method posterior), and all else that it says."""
    seen = log.observations
    prior = None if groups is None else groups.of(group_labels(log, group))
    population = None if groups is None else groups.population
    report(0.7, f"estimating {len(seen)} rates")
    rates = estimate_change_rate(seen, method, prior=prior, level=level)  # type: ignore[arg-type]
    quality = None
    if log.sources:
        report(0.85, f"estimating {len(log.sources)} signal sources")
        quality = estimate_signal_quality(seen, host=log.hosts, level=level)
    report(0.95, "comparing with Poisson")
    flat = estimate_change_rate(seen, "mle", level=None).change_rate
    look = poisson_look(seen, flat, log.ended_at)
    report(1.0, "done")
    return Findings(log, rates, quality, look, population)


def page_columns(found: Findings, scale: float, unit: str) -> dict[str, Any]:
    """One row per page, as ``recrawl solve`` reads it. ``believed_<source>`` is the precision of a signal source.

    ``recrawl solve`` takes rates of pages with signals as known. The gamma shape of such a table is therefore named
    ``shape``, which solve does not read, not ``evidence``.
    """
    rates, log = found.rates, found.log
    top = np.minimum(rates.high, 1e300) * scale
    columns: dict[str, Any] = {
        "url": log.urls,
        "change_rate": rates.change_rate * scale,
        "unit": [unit] * len(log.urls),
        "low": rates.low * scale,
        "high": top,
    }
    columns["evidence" if found.quality is None else "shape"] = np.maximum(rates.evidence, 1e-9)
    columns |= {"n_crawls": rates.n_crawls, "n_changes": rates.n_changes}
    if log.importance is not None:
        columns["importance"] = log.importance
    if found.quality is not None:
        for k, source in enumerate(log.sources):
            tail = "" if len(log.sources) == 1 else f"_{k + 1}"
            columns[f"recall{tail}"] = found.quality.recall[:, k]
            columns[f"false_rate{tail}"] = found.quality.false_rate[:, k] * scale
            columns[f"believed_{source}"] = found.quality.precision[:, k]
    return columns


def write_rates(found: Findings, path: Path, scale: float, unit: str) -> None:
    """Write the table of pages, CSV or Parquet by the suffix."""
    columns = page_columns(found, scale, unit)
    if path.suffix.lower() in (".parquet", ".pq"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        with whole_file(path) as partial:
            pq.write_table(pa.table(columns), partial)
        return
    with whole_file(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        cells = [c if isinstance(c, list) else [format(x, ".10g") for x in c] for c in columns.values()]
        writer.writerows(zip(*cells, strict=True))


def print_report(found: Findings, scale: float, unit: str, limit: int, files: list[Path]) -> None:
    """Print the figures as text."""
    figures = found.as_dict(scale, unit, limit)
    print_figures(figures, summary_lines(found, figures, unit), files)


def print_figures(figures: dict[str, Any], summary: list[str], files: list[Path]) -> None:
    """Print what was repaired, the summary and the rates of some pages."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    repaired = [f"repaired: {name}: {count}" for name, count in figures["repairs"].items()]
    for line in [*repaired, *figures["remarks"], *summary]:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if figures["rates"]:
        head = f"changes per {figures['unit']}", f"{figures['level']:.0%} interval"
        table = Table("url", *head, "crawls", "changed", box=None)
        width = min(WIDTH, max(console.width - _FIGURES, 20))
        for row in figures["rates"]:
            ends = f"{row['low']:.3g} … " + (f"{row['high']:.3g}" if row["high"] < 1e290 else "no bound")
            counts = str(row["n_crawls"]), str(row["n_changes"])
            table.add_row(short_url(row["url"], width), f"{row['change_rate']:.3g}", ends, *counts)
        console.print(table, markup=False)
    for file in files:
        console.print(f"wrote {file}", highlight=False, markup=False)


def count_lines(figures: dict[str, Any], unit: str) -> list[str]:
    """How much there is, and how often it changes."""
    rate = figures["change_rate"]
    return [
        f"{figures['pages']} pages, {figures['crawls']} intervals, {figures['changes']} changed, "
        f"{figures['failed_crawls']} failed crawls, {figures['duplicate_times']} duplicate times",
        f"changes per {unit}: median {rate['median']:.3g}, 10% below {rate['p10']:.3g}, 10% above {rate['p90']:.3g}",
    ]


def summary_lines(found: Findings, figures: dict[str, Any], unit: str) -> list[str]:
    """The summary, one sentence per line."""
    look, poisson = found.look, figures["poisson"]
    lines = count_lines(figures, unit)
    if look.n_tested:
        lines.append(
            f"constant rate: rejected for {look.rejected:.0%} of {look.n_tested} pages with enough history "
            f"(5% expected), median dispersion {poisson['dispersion']:.2f} (1 expected)"
        )
    else:
        lines.append("constant rate: no page has the 8 changed and 8 unchanged intervals a test needs")
    lines.append(f"right after a change: {look.burst:.2f} times as many changes as expected")
    if look.n_hour:
        high, low = int(np.argmax(look.by_hour)), int(np.argmin(look.by_hour))
        most, least = f"{high:02d}h ({look.by_hour[high]:.2f}x)", f"{low:02d}h ({look.by_hour[low]:.2f}x)"
        lines.append(f"by hour (UTC), seen over expected: most at {most}, least at {least}")
    if look.n_weekday:
        days = "  ".join(f"{day} {x:.2f}" for day, x in zip(WEEKDAYS, look.by_weekday, strict=True))
        lines.append(f"by weekday (UTC), seen over expected: {days}")
    for source, quality in (figures["signals"] or {}).items():
        lines.append(f"signals {source}: median precision {quality['precision']:.2f}, recall {quality['recall']:.2f}")
    return lines
