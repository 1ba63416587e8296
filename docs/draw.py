"""Draw the pictures of docs/concepts with recrawl: `python docs/draw.py [NAME …]` writes docs/images/NAME.png."""

import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from recrawl import Engine, Pages, Scheduler, solve
from recrawl.model import crawl_value, fresh_probability, page_freshness

IMAGES = Path(__file__).parent / "images"
COLOURS = ["#1b6ca8", "#d1495b", "#2e8b57", "#edae49", "#6a4c93"]


def panels(rows: int, columns: int, width: float = 10.0, height: float = 3.8) -> tuple[Figure, list[Axes]]:
    """A figure with axes that have no frame at the top and the right."""
    figure, axes = plt.subplots(rows, columns, figsize=(width, height), layout="constrained", squeeze=False)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, list(axes.flat)


def draw_model() -> Figure:
    """The crawl value over elapsed time, and the freshness over the crawl rate."""
    figure, (left, right) = panels(1, 2)
    elapsed = np.linspace(0.0, 6.0, 400)
    for colour, rate in zip(COLOURS, (0.2, 1.0, 3.0, 10.0), strict=False):
        left.plot(elapsed, crawl_value(Pages([rate]), elapsed), color=colour, label=f"{rate:g} changes per day")
    left.axhline(0.2, color="black", lw=1, ls="--")
    left.text(6.0, 0.205, "threshold", ha="right", va="bottom")
    left.set(xlabel="days since the last crawl", ylabel="crawl value", ylim=(0, 1.05), xlim=(0, 6))
    left.legend(frameon=False)
    crawl_rate = np.linspace(0.0, 5.0, 400)
    for colour, rate in zip(COLOURS, (0.2, 1.0, 3.0), strict=False):
        pages = Pages(np.full(len(crawl_rate), rate))
        right.plot(crawl_rate, page_freshness(pages, crawl_rate), color=colour, label=f"{rate:g} changes per day")
    right.set(xlabel="crawls per day", ylabel="freshness", ylim=(0, 1.02), xlim=(0, 5))
    right.legend(frameon=False, loc="lower right")
    return figure


def draw_beliefs() -> Figure:
    """The belief about the change rate of one page after some crawls, and its mean with an interval."""
    from scipy.stats import gamma

    figure, (left, right) = panels(1, 2)
    true_rate, rng = 0.3, np.random.default_rng(5)
    engine = Engine(1.0, day=1.0, sources=0, siblings=False)
    page = engine.add(["https://docs.example/page"], 0.0, fetched_at=0.0)
    rates, beliefs = np.geomspace(1e-3, 10.0, 500), []
    for n in range(101):
        belief = engine.beliefs.gamma(page)
        shape, rate = float(belief.shape[0]), float(belief.rate[0])
        beliefs.append((shape, rate))
        if n in (0, 3, 10, 30, 100):
            colour = COLOURS[(0, 3, 10, 30, 100).index(n)]
            left.plot(rates, rates * gamma.pdf(rates, shape, scale=1 / rate), color=colour, label=f"{n} crawls")
        engine.record(page, n + 1.0, changed=[bool(rng.random() < -np.expm1(-true_rate))])
    left.set(xlabel="change rate per day", ylabel="density of the belief over ln rate", xscale="log", ylim=(0, None))
    left.legend(frameon=False)
    shape, rate = np.array(beliefs).T
    crawls = np.arange(len(beliefs))
    right.plot(crawls, shape / rate, color=COLOURS[0], label="mean of the belief")
    ends = [gamma.ppf(level, shape, scale=1 / rate) for level in (0.05, 0.95)]
    right.fill_between(crawls, *ends, color=COLOURS[0], alpha=0.2, lw=0, label="90% interval")
    right.set(xlabel="crawls", ylabel="change rate per day", xlim=(0, 100), ylim=(0, 1.0))
    right.legend(frameon=False)
    for line in (left.axvline, right.axhline):
        line(true_rate, color="black", lw=1, ls="--")
    return figure


def draw_scheduling() -> Figure:
    """Crawl values of four of 204 pages under `Scheduler`, and when each is crawled."""
    figure, (above, below) = panels(2, 1, height=5.2)
    rng, budget, begin, end = np.random.default_rng(1), 40.0, 20.0, 40.0
    change_rate = np.concatenate([[0.1, 0.5, 0.5, 20.0], rng.uniform(0.05, 1.0, 200)])
    pages = Pages(change_rate, importance=np.concatenate([[1.0, 1.0, 4.0, 1.0], rng.uniform(0.1, 2.0, 200)]))
    names = ["0.1 changes per day", "0.5 per day", "0.5 per day, importance 4", "20 per day"]
    scheduler, times = Scheduler(pages, budget=budget), np.arange(1, round(end * budget)) / budget
    values, crawls = np.empty((len(times), len(names))), [[] for _ in names]
    for k, now in enumerate(times):
        values[k] = scheduler.value(np.arange(len(names)), now)
        page = int(scheduler.pick(now, 1)[0])
        scheduler.record([page], now)
        if page < len(names):
            crawls[page].append(now - begin)
    for colour, name, value in zip(COLOURS, names, values.T, strict=False):
        above.plot(times - begin, value, color=colour, label=name)
    above.axhline(solve(pages, budget=budget).threshold, color="black", lw=1, ls="--")
    above.set(ylabel="crawl value", ylim=(0, None), xlim=(0, end - begin))
    above.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.2))
    for row, (colour, at) in enumerate(zip(COLOURS, crawls, strict=False)):
        below.scatter(at, np.full(len(at), row), color=colour, s=28, clip_on=True)
    below.set(xlabel="days", xlim=(0, end - begin), ylim=(3.6, -0.6), yticks=range(4), yticklabels=names)
    return figure


def draw_signals() -> Figure:
    """The chance that a copy is fresh, and the value of a crawl, with signals of three kinds."""
    figure, (left, right) = panels(1, 2)
    elapsed, at = np.linspace(0.0, 4.0, 800), np.array([0.9, 2.2, 2.9])
    n_signals = (elapsed[:, None] >= at).sum(axis=1)
    cases = [
        ("signals ignored", Pages([1.0]), 0 * n_signals),
        ("recall 0.5, precision 0.5", Pages.from_quality([1.0], precision=[0.5], recall=[0.5]), n_signals),
        ("recall 0.5, a signal is proof", Pages.from_quality([1.0], precision=[1.0], recall=[0.5]), n_signals),
    ]
    for colour, (name, pages, signals) in zip(COLOURS, cases, strict=False):
        left.plot(elapsed, fresh_probability(pages, elapsed, signals), color=colour, label=name)
        right.plot(elapsed, crawl_value(pages, elapsed, signals), color=colour, label=name)
    left.set(xlabel="days since the last crawl", ylabel="probability that the copy is fresh", ylim=(0, 1.02))
    right.set(xlabel="days since the last crawl", ylabel="crawl value", ylim=(0, 1.08))
    right.axhline(0.5, color="black", lw=1, ls="--")
    left.legend(frameon=False)
    for axis in (left, right):
        axis.set_xlim(0, 4)
        axis.vlines(at, 0, 0.03, color="black", lw=3)
        axis.text(at[0], 0.05, "signals", ha="center")
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "model": draw_model,
    "beliefs": draw_beliefs,
    "scheduling": draw_scheduling,
    "signals": draw_signals,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]().savefig(IMAGES / f"{name}.png", dpi=110)
