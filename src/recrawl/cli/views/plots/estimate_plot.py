"""Plot of ``recrawl estimate``: rates, intervals, dispersion and seasons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from recrawl._system.files import whole_file
from recrawl.cli.views.estimate_report import WEEKDAYS, Findings


def draw_estimates(found: Findings, path: Path, scale: float, unit: str) -> None:
    """Draw four panels: distribution of rates, their intervals, whether they are constant, and when pages change."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.5), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2, 2)
    _rates(panels[0, 0], found, scale, unit)
    _intervals(panels[0, 1], found, scale, unit)
    _dispersion(panels[1, 0], found)
    _seasons(panels[1, 1], found)
    figure.suptitle(f"{len(found.rates)} pages, {len(found.log.observations.interval)} crawl intervals")
    with whole_file(path) as partial:
        figure.savefig(partial, dpi=120)


def _rates(panel: Any, found: Findings, scale: float, unit: str) -> None:
    rate = found.rates.change_rate[found.rates.n_crawls > 0] * scale
    rate = rate[rate > 0]
    if len(rate):
        low, high = np.floor(np.log10(rate.min())), np.ceil(np.log10(rate.max()) + 1e-9)
        panel.hist(rate, bins=np.logspace(low, high, 40), color="#4477aa")
        panel.set_xscale("log")
    panel.set(title="Estimated change rates", xlabel=f"changes per {unit}", ylabel="pages")


def _intervals(panel: Any, found: Findings, scale: float, unit: str) -> None:
    rates = found.rates
    chosen = np.flatnonzero((rates.n_crawls > 0) & (rates.change_rate > 0))
    chosen = chosen[np.argsort(rates.change_rate[chosen])]
    chosen = chosen[np.linspace(0, len(chosen) - 1, min(len(chosen), 60)).astype(int)] if len(chosen) else chosen
    centre = rates.change_rate[chosen] * scale
    low = np.maximum(rates.low[chosen] * scale, centre / 1e3)
    high = np.minimum(rates.high[chosen], rates.change_rate[chosen] * 1e3) * scale
    panel.vlines(np.arange(len(chosen)), low, high, color="#99bbdd")
    panel.plot(np.arange(len(chosen)), centre, ".", color="#225588")
    if len(chosen):
        panel.set_yscale("log")
    title = f"{rates.level:.0%} intervals of {len(chosen)} pages, slowest to fastest"
    panel.set(title=title, ylabel=f"changes per {unit}", xticks=[])


def _dispersion(panel: Any, found: Findings) -> None:
    tested = found.look.dispersion[found.look.dispersion > 0]
    if len(tested):
        panel.hist(np.minimum(tested, 6), bins=np.linspace(0, 6, 37), color="#4477aa", density=True, label="pages")
        from scipy.stats import chi2

        x = np.linspace(0.01, 6, 200)
        panel.plot(x, 7 * chi2.pdf(7 * x, 7), color="#cc3311", label="if rates were constant")
        panel.legend(frameon=False)
    title = f"Is the rate constant? Rejected for {found.look.rejected:.0%} of {found.look.n_tested} pages"
    panel.set(title=title, xlabel="dispersion over 8 blocks of the history (6 = 6 or more)", ylabel="density")


def _seasons(panel: Any, found: Findings) -> None:
    look = found.look
    if look.n_hour:
        panel.step(np.arange(25), np.append(look.by_hour, look.by_hour[-1]), where="post", label="hour (UTC)")
    if look.n_weekday:
        panel.plot(np.arange(7) * 24 / 7 + 12 / 7, look.by_weekday, "o", color="#ee7733", label="weekday, Mon … Sun")
        for k, day in enumerate(WEEKDAYS):
            panel.annotate(
                day, (k * 24 / 7 + 12 / 7, look.by_weekday[k]), (0, 6), textcoords="offset points", ha="center"
            )
    panel.axhline(1.0, color="#999999", linewidth=0.8)
    if look.n_hour or look.n_weekday:
        panel.legend(frameon=False)
    panel.set(title="When pages change", xlabel="hour of the day", ylabel="changes seen / expected", xlim=(0, 24))
    panel.set_ylim(bottom=0)
