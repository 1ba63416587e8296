"""Signals that come late: weighing them by a known delay distribution keeps copies fresher than the window rule."""

import numpy as np
import pytest
from profiles import few_tuples

from recrawl.model.pages import Pages
from recrawl.schedule.exact.scheduler import Scheduler

END = 400.0
DELAY = ([0.2, 2.0, 8.0], [0.3, 0.4, 0.3])
WINDOWS = (0.2, 2.0, 8.0)


def make_world(seed, n_pages=150, recall=0.8, false_rate=0.05, delay=DELAY):
    """Pages, the times at which each changes, and all signals (time, page) in the order in which they arrive."""
    rng = np.random.default_rng(seed)
    change_rate = rng.gamma(2.0, 0.1, n_pages)
    pages = Pages(change_rate, rng.uniform(0.5, 1.5, n_pages), recall=recall, false_rate=false_rate)
    changes = [np.sort(rng.uniform(0, END, rng.poisson(rate * END))) for rate in change_rate]
    times, about = [], []
    for page, moments in enumerate(changes):
        true = moments[rng.random(len(moments)) < recall]
        true = true + rng.choice(delay[0], len(true), p=delay[1])
        false = rng.uniform(0, END, rng.poisson(false_rate * END))
        times += [true, false]
        about += [np.full(len(true) + len(false), page)]
    times, about = np.concatenate(times), np.concatenate(about)
    order = np.argsort(times)
    return pages, changes, times[order], about[order]


def freshness(world, budget, **options):
    """Share of (importance-weighted) time in which the copies were current."""
    pages, changes, times, about = world
    scheduler = Scheduler(pages, lease=1.0, **options)
    crawls = [[0.0] for _ in range(len(pages))]
    heard = 0
    for now in np.arange(1 / budget, END, 1 / budget).tolist():
        until = int(np.searchsorted(times, now))
        for k in range(heard, until):
            scheduler.signal(about[k : k + 1], times[k])
        heard = until
        ids = scheduler.pick(now, 1)
        scheduler.record(ids, now)
        for i in ids.tolist():
            crawls[i].append(now)
    fresh = np.empty(len(pages))
    for page, fetches in enumerate(crawls):
        begin, end = np.array(fetches), np.array([*fetches[1:], END])
        after = np.append(changes[page], END)
        first = after[np.searchsorted(changes[page], begin, side="right")]
        fresh[page] = (np.minimum(first, end) - begin).sum() / END
    return float(np.average(fresh, weights=pages.importance))


def compare(seed, budget, **world_options):
    """Freshness by treatment: the delay modelled, ignored, and the best of several windows."""
    world = make_world(seed, **world_options)
    delay = world_options.get("delay", DELAY)
    windows = [freshness(world, budget, policy="signals-delayed", delay_window=window) for window in WINDOWS]
    return {
        "model": freshness(world, budget, delay=delay),
        "ignored": freshness(world, budget),
        "window": max(windows),
        "windows": windows,
        "none": freshness(world, budget, policy="no-signals"),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("budget", "options"),
    few_tuples(
        [
            (30.0, {}),
            (40.0, {"recall": 1.0, "false_rate": 0.0}),
            (30.0, {"delay": ([1.0, 20.0], [0.5, 0.5])}),
        ],
        2,
    ),
)
def test_modelled_delay_beats_the_window_and_ignoring_it(budget, options):
    """Common random numbers; the window is the best of three, chosen afterwards."""
    reached = compare(1, budget, **options)
    assert reached["model"] > reached["window"] + 0.003
    assert reached["model"] > reached["ignored"] + 0.01
    assert reached["model"] > reached["none"] + 0.01


def test_a_delay_of_zero_is_no_delay():
    world = make_world(2, n_pages=40, delay=([0.0], [1.0]))
    assert freshness(world, 10.0, delay=([0.0], [1.0])) == freshness(world, 10.0)
