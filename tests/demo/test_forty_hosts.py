"""Hosts with honest sitemaps and hosts that stamp everything, polled by the live crawler: the experiment, small."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from recrawl._compile.plain import plain
from recrawl.engine.signals import arrays, posterior

FOLDER = Path(__file__).parents[2] / "experiments" / "forty_hosts"


@pytest.fixture(scope="module")
def experiment():
    spec = importlib.util.spec_from_file_location("forty_hosts", FOLDER / "run.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.slow
def test_polls_take_at_most_half_of_the_requests(experiment):
    """Copies are all fresh at first, and the first crawl is worth next to nothing: polls leave requests for crawls."""
    drawn = experiment.draw(experiment.World(hosts=6, pages=15, budget=0.15, days=20.0), seed=1)
    options = experiment.ways(drawn)
    live = {
        name: experiment.replay_trace(drawn.trace, drawn.budget, options[name]) for name in ("learned", "no signals")
    }
    polls = sum(live["learned"].polls.values())
    assert 10 < polls < 0.5 * live["learned"].requests
    assert live["learned"].requests == live["no signals"].requests
    assert live["learned"].allowed - 1.0 <= live["learned"].requests <= live["learned"].allowed
    assert live["learned"].run.requests + polls == live["learned"].requests
    assert live["learned"].wrong == 0


@pytest.mark.full
def test_no_ten_days_lie_below_no_signals(experiment):
    runs = {}
    experiment.measure(experiment.World(), 1, runs, lambda: None)
    found = experiment.figures({"1": runs})
    assert found["worst_ten_days"] > -0.03  # of one seed; the experiment states means
    assert 0 < found["gain_learned"] < found["gain_known"] + 0.02


def test_the_known_engine_drops_what_stampers_say(experiment):
    drawn = experiment.draw(experiment.World(hosts=2, pages=3, days=10.0), seed=2)
    engine = experiment.ways(drawn)["known rates and qualities"].engine(drawn.budget, drawn.trace.start)
    ids = engine.add(list(drawn.trace.url), drawn.trace.start, fetched_at=np.full(6, drawn.trace.start))
    later = drawn.trace.start + 86400.0
    before = engine.scheduler.value(ids, later)
    engine.signal(ids, later)
    assert (engine.scheduler.value(ids, later) > before).tolist() == [True] * 3 + [False] * 3


def test_the_informed_engine_knows_gates_and_precisions(experiment):
    drawn = experiment.draw(experiment.World(hosts=2, pages=3, days=10.0), seed=2)
    engine = experiment.ways(drawn)["known qualities"].engine(drawn.budget, drawn.trace.start)
    ids = engine.add(list(drawn.trace.url), drawn.trace.start, fetched_at=np.full(6, drawn.trace.start))
    later = drawn.trace.start + 86400.0
    engine.signal(ids, later)
    signals = engine.beliefs.belief.signals
    assert [plain(arrays.is_open)(signals, host, 0) for host in (0, 1)] == [True, False]
    exact = [plain(posterior.host_factor)(signals, row, 0, 7, 0) for row in (0, 3)]
    assert exact[0] > 1e5
    assert exact[1] < 1e-5
