"""Explanations say what was observed: counts stay as they are while nothing is crawled, spans are readable."""

import re

import numpy as np
import pytest

from recrawl import Engine
from recrawl.engine.effects.kernels import ALONE, TOGETHER
from recrawl.model import format_span

N = 30
HOUR, DAY = 3600.0, 86400.0


@pytest.fixture(scope="module")
def engine():
    """Thirty pages of a folder, crawled in turn; siblings are used; of the last 29 crawls one found a change."""
    engine = Engine(N / DAY, sources=0)
    ids = engine.add([f"https://a.example/docs/{k}" for k in range(N)], 0.0, fetched_at=0.0)
    for turn in range(1, 5):
        for k in range(N):
            now = turn * DAY + k * HOUR / 2
            engine.record([ids[k]], now, changed=[k in (1, 7, 9) if turn < 4 else k == 7])
        if turn == 3:
            engine.effects.arrays.score[TOGETHER] = engine.effects.arrays.score[ALONE] + 1e3
            engine.beliefs.refit_at = engine.beliefs.crawls
            assert engine.refit_if_due()
    return engine


def test_siblings_are_told_as_they_were_observed(engine):
    found = engine.explain(0, engine.now).siblings
    assert (found.pages, found.crawled, found.changed) == (N - 1, N - 1, 1)
    assert f"1 of {N - 1} other pages crawled in" in str(engine.explain(0, engine.now))
    assert engine.explain(N - 1, engine.now).siblings.crawled == 0
    assert "no other page of" in str(engine.explain(N - 1, engine.now))


def test_counts_do_not_grow_after_crawling_has_stopped(engine):
    texts = {str(engine.explain(0, engine.now + days * DAY).siblings) for days in (0.0, 1.0, 30.0, 1000.0)}
    assert len(texts) == 1


@pytest.mark.parametrize("later", [0.0, 9.0, 1e4, 1e7, 1e12])
def test_spans_are_in_units_a_person_would_use(engine, later):
    text = str(engine.explain(3, engine.now + later))
    assert not re.search(r"\de[+-]?\d+ (s|min|h|d|days|years)\b|\b0\.000", text)


def test_a_page_that_is_never_worth_a_crawl():
    engine = Engine(1.0)
    engine.add(["https://a.example/", "https://b.example/"], 0.0, importance=[1.0, 0.0], fetched_at=0.0)
    assert "never worth a crawl at this budget" in str(engine.explain(1, 60.0))


def test_spans_keep_two_digits():
    sizes = {"s": 1.0, "min": 60.0, "h": 3600.0, "days": DAY, "years": 365.25 * DAY}
    for seconds in np.geomspace(0.05, 3e10, 200):
        amount, unit = format_span(seconds).split()
        assert float(amount) * sizes[unit] == pytest.approx(seconds, rel=0.05)
        assert len(amount) <= 5


@pytest.mark.slow
def test_intervals_hold_the_rates_where_siblings_are_used():
    """Pages of a folder have similar rates, so that siblings are used although each page changes on its own."""
    rng, n, budget, days = np.random.default_rng(2), 120, 60.0, 60
    rate = np.repeat(np.exp(rng.normal(-1.5, 1.2, 8)), 15) * np.exp(rng.normal(0.0, 0.4, n))
    changes = [np.sort(rng.uniform(0.0, days, rng.poisson(one * days))) for one in rate]
    engine, last = Engine(budget, day=1.0, sources=0), np.zeros(n)
    engine.add([f"https://a.example/{k // 15}/{k}" for k in range(n)], 0.0, fetched_at=0.0)
    for now in np.arange(1, days * budget) / budget:
        for page in engine.pick(now, 1).tolist():
            began, ended = np.searchsorted(changes[page], [last[page], now])
            engine.record([page], now, changed=[ended > began])
            last[page] = now
    assert engine.effects.level is not None
    found = [engine.explain(page, float(days)) for page in range(n)]
    intervals = np.array([one.change_rate_interval for one in found])
    assert np.mean((intervals[:, 0] <= rate) & (rate <= intervals[:, 1])) > 0.85
    believed = np.array([one.change_rate for one in found])
    assert ((intervals[:, 0] <= believed) & (believed <= intervals[:, 1])).all()
