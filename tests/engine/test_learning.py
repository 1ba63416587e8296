"""Learning end to end: from uniform to what known rates give; compiled runs equal plain ones crawl by crawl."""

import numpy as np
import pytest
from profiles import few_tuples
from simulate.small import small_trace

from recrawl import Pages
from recrawl.simulate import Contender, World, contender, simulate
from recrawl.simulate.run import run
from recrawl.simulate.run.policies import admit_unknown, learning
from recrawl.simulate.run.runners import PlainRunner


@pytest.mark.slow
def test_staleness_approaches_that_of_known_rates():
    rng = np.random.default_rng(2)
    pages = Pages(rng.gamma(0.6, 1.0, 400) + 1e-3, rng.uniform(0.2, 1.0, 400))
    trace = World("drawn", pages).draw(120.0, rng)
    stale = {
        name: 1 - simulate(contender(name), trace, 200.0, bins=4, count_from=0.0).window_freshness
        for name in ("learned", "no-signals", "uniform")
    }
    lost = (stale["learned"] - stale["no-signals"]) / (stale["uniform"] - stale["no-signals"])
    assert lost[-1] < 0.25, lost
    assert lost[0] > lost[-1]
    assert (stale["learned"] < stale["uniform"])[1:].all()


def by_page(signals):
    """What is known of pages by their signals, in the order of their ids."""
    rows = signals.row_of[signals.row_of >= 0]
    found = {name: getattr(signals, name)[rows] for name in ("page", "statistics", "both", "heard", "components")}
    return {**found, "gate": signals.gate}


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"half_life": 5.0}], ids=["remembers", "forgets"])
@pytest.mark.parametrize(
    ("signals", "n", "seeds"),
    few_tuples([(True, 60, 2), (False, 60, 1), (True, 300, 1), (True, 60, 3), (False, 60, 3), (True, 300, 3)], 3),
)
def test_compiled_and_plain_runs_are_one(signals, n, seeds, settings, monkeypatch):
    for seed in range(seeds):
        trace = small_trace(seed, n=n, signals=signals)
        engines = []

        def make(trace, budget, rng, engines=engines):
            engines.append(learning(**settings)(trace, budget, rng))
            return engines[-1]

        learned = Contender("learned", make, admit_unknown)
        compiled = simulate(learned, trace, n / 5, bins=4)
        with monkeypatch.context() as patch:
            patch.setattr(run, "runner_of", PlainRunner)
            plain = simulate(learned, trace, n / 5, bins=4)
        assert compiled.crawls.tolist() == plain.crawls.tolist()
        assert compiled.found.tolist() == plain.found.tolist()
        assert compiled.staleness == plain.staleness
        one, other = (engine.beliefs.belief for engine in engines)
        assert engines[0].beliefs.crawls == engines[1].beliefs.crawls
        for name in ("gamma", "watched", "n_crawls", "n_changes", "prior"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, err_msg=name)
        first, second = (by_page(belief.signals) for belief in (one, other))
        for name, column in first.items():  # rows are numbered in another order, in which sums are rounded
            np.testing.assert_allclose(column, second[name], rtol=1e-4, atol=1e-6, err_msg=name)
        for engine in engines:
            engine.scheduler._check()
            engine.eligibility._check()


@pytest.mark.slow
def test_learning_from_signals_is_better_than_not_listening():
    rng = np.random.default_rng(6)
    pages = Pages(rng.uniform(0.05, 1.0, 300), recall=0.7, false_rate=0.1)
    trace = World("signalled", pages).draw(150.0, rng)
    listens, deaf = (
        simulate(Contender("learned", learning(**given), admit_unknown), trace, 60.0, count_from=50.0).staleness
        for given in ({}, {"sources": 0})
    )
    assert listens < deaf - 0.03
