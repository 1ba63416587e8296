"""Pages that come and go while signals arrive: compiled runs equal runs by protocol, no page is lost."""

import numpy as np
import pytest

from recrawl import Pages
from recrawl.simulate import Signals, Trace, contender, simulate
from recrawl.simulate.run import run as run_module
from recrawl.simulate.run.runners import PlainRunner


def world(seed, n=40, end=60.0):
    """Pages that come and mostly stay, with signals from two sources that are not alike."""
    rng = np.random.default_rng(seed)
    created = np.sort(np.where(rng.random(n) < 0.3, 0.0, rng.uniform(0.0, end / 3, n)))
    deleted = np.where(rng.random(n) < 0.7, end, rng.uniform(created, end))
    rate = rng.uniform(0.1, 1.0, n)
    lives = zip(created, deleted, rng.poisson(rate * (deleted - created)), strict=True)
    changes = [np.sort(rng.uniform(*life)) for life in lives]
    offset, changed_at = np.cumsum([0, *map(len, changes)]), np.concatenate(changes)
    page = np.repeat(np.arange(n), np.diff(offset))
    wrong = rng.integers(0, n, 200)
    at = np.concatenate([changed_at, rng.uniform(created[wrong], deleted[wrong])])
    source = np.concatenate([rng.integers(0, 2, len(page)), np.zeros(200)])
    signals = Signals.of(at, np.concatenate([page, wrong]), source)
    pages = Pages(rate, rng.uniform(0.1, 2.0, n), recall=[[0.5, 0.5]] * n, false_rate=[[0.1, 0.001]] * n)
    life = {"created_at": created, "deleted_at": deleted, "importance": pages.importance}
    return Trace(0.0, end, offset=offset, changed_at=changed_at, pages=pages, signals=signals, **life)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("budget", [10.0, [(0.0, 8.0), (10.0, 0.0), (15.0, 12.0)]])
def test_compiled_scheduler_equals_driving_by_protocol(monkeypatch, seed, budget):
    trace = world(seed)
    fast = simulate(contender("signals"), trace, budget)
    monkeypatch.setattr(run_module, "runner_of", PlainRunner)
    plain = simulate(contender("signals"), trace, budget)
    assert fast.crawls.tolist() == plain.crawls.tolist()
    assert fast.staleness == plain.staleness


@pytest.mark.slow
@pytest.mark.parametrize("name", ["uniform", "signals", "heritrix"])
def test_a_page_that_never_lived_keeps_its_number(name):
    life = {"created_at": [0.0, 1.0, 2.0], "deleted_at": [10.0, 1.0, 10.0]}
    trace = Trace(0.0, 10.0, offset=[0, 1, 1, 2], changed_at=[3.0, 4.0], **life)
    assert simulate(contender(name), trace, 1.0).crawls[1] == 0


def test_pages_that_come_while_there_is_no_budget_are_crawled_later():
    trace = Trace(0.0, 30.0, offset=[0, 1, 2], changed_at=[3.0, 16.0], created_at=[0.0, 15.0])
    run = simulate(contender("no-signals"), trace, [(0.0, 1.0), (10.0, 0.0), (20.0, 1.0)])
    assert run.crawls[1] > 0
