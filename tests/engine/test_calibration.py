"""Reported probabilities are calibrated against what crawls found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recrawl.engine import Engine
from recrawl.simulate.run.policies import admit_unknown, learning
from recrawl.simulate.run.run import Contender, simulate

from .together import run, trace_of


@pytest.mark.parametrize("mistake", [0.5, 1.0, 2.0])
def test_probabilities_are_calibrated_even_where_rates_are_wrong(mistake: float) -> None:
    rng = np.random.default_rng(3)
    n, days, true_rate = 300, 120, 0.02
    engine = Engine(100.0, day=1.0, siblings=False)
    urls = [f"https://a.example/{k}" for k in range(n)]
    engine.add(urls, 0.0, fetched_at=0.0, change_rate=mistake * true_rate, evidence=1e9)  # no outcome changes it
    copied, reported, found = np.zeros(n), [], []
    for now in range(1, days + 1):
        ids = rng.choice(n, 40, replace=False)
        chance = 1.0 - engine.fresh(ids, float(now))
        changed = rng.random(len(ids)) < -np.expm1(-true_rate * (now - copied[ids]))
        if now > days // 2:
            reported.append(chance)
            found.append(changed)
        engine.record(ids, float(now), changed=changed)
        copied[ids] = now
    given, seen = np.concatenate(reported), np.concatenate(found)
    error = np.sqrt(seen.mean() * (1 - seen.mean()) / len(seen))
    assert abs(given.mean() - seen.mean()) < 3 * error
    raw = -np.expm1(-mistake * true_rate * 7.5)
    assert mistake == 1.0 or abs(raw - seen.mean()) > 3 * error  # the computed one differs from it


def test_the_calibration_is_monotone_and_saved() -> None:
    trace = trace_of(np.random.default_rng(5), 60.0, together=0.02, alone=0.01)
    _, engine = run(trace, 20.0)
    knots = engine.calibration.knots
    assert knots[0].tolist() == [0.0, 0.0]
    assert knots[-1].tolist() == [1.0, 1.0]
    assert (np.diff(knots[:, 0]) > 0).all()
    assert (np.diff(knots[:, 1]) >= 0).all()
    whole, by_rows = Engine.restore(engine.state()), Engine.restore(engine.rows(), engine.now)
    assert whole.fresh(whole.ids(), engine.now).tolist() == engine.fresh(engine.ids(), engine.now).tolist()
    assert by_rows.calibration.knots.tolist() == knots.tolist()


def test_what_is_believed_of_copies_over_time_is_near_the_truth() -> None:
    """It lies above: sweeps are feared where pages change by nothing else (over 20 seeds by 2.1 times)."""
    true, believed = [], []
    for seed in range(6, 10):
        trace = trace_of(np.random.default_rng(seed), 200.0, together=0.02, alone=0.002)
        held: list[Engine] = []
        said: list[float] = []

        def keep(*given: Any, held: list[Engine] = held) -> Engine:
            held.append(learning()(*given))
            return held[0]

        def look(_: float, held: list[Engine] = held, said: list[float] = said) -> None:
            said.append(1.0 - float(held[0].fresh(held[0].ids(), held[0].now).mean()))

        true.append(simulate(Contender("learned", keep, admit_unknown), trace, 10.0, progress=look).staleness)
        assert len(said) >= 5
        believed.append(np.mean(said))
    assert 0.5 * np.mean(true) < np.mean(believed) < 2.5 * np.mean(true)
