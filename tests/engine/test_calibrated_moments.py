"""Probabilities are calibrated at crawls and at moments before them, so that they hold for copies that wait too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from recrawl.engine import Engine
from recrawl.simulate.run.policies import admit_unknown, learning
from recrawl.simulate.run.run import Contender, simulate

from .together import trace_of

_FADE = 0.9995  # of earlier outcomes at each crawl


def test_a_crawl_is_compared_with_what_was_computed_for_its_time_and_for_a_moment_before_it() -> None:
    rate = 0.1
    engine = Engine(1.0, day=1.0, siblings=False)
    ids = engine.add(["https://a.example/"], 0.0, fetched_at=0.0, change_rate=rate, evidence=1e9)
    engine.record(ids, 4.0, changed=False)
    first, second = (-math.expm1(-rate * 4.0 * share) for share in (1.0, 0.6180339887))
    recent = engine.calibration.recent.sum(axis=0)
    assert recent.tolist() == pytest.approx([first + second, 2.0, 0.0], rel=1e-6)
    engine.record(ids, 9.0, changed=True)
    third, fourth = (-math.expm1(-rate * 5.0 * share) for share in (1.0, 0.2360679775))
    expected = [_FADE * (first + second) + third + fourth, 2.0 * _FADE + 2.0, 1.0 + fourth / third]
    assert engine.calibration.recent.sum(axis=0).tolist() == pytest.approx(expected, rel=1e-6)
    assert engine.calibration.reliability.sum(axis=0)[1:].tolist() == [2.0, 1.0]  # what was reported: at crawls alone


def test_crawls_of_pages_that_never_change_are_compared_too() -> None:
    engine = Engine(1.0, day=1.0, siblings=False)
    ids = engine.add(["https://a.example/"], 0.0, fetched_at=0.0, change_rate=0.0)
    engine.record(ids, 4.0, changed=True)
    assert np.isfinite(engine.calibration.recent).all()
    assert np.isfinite(engine.calibration.knots).all()


@pytest.mark.slow
def test_what_is_believed_over_time_is_what_the_ledger_finds_where_folders_change_at_once() -> None:
    """Believed is 1.2 times the ledger (over 8 seeds), calibrated at crawls alone 1.3 times."""
    ratio = []
    for seed in range(6, 10):
        held: list[Engine] = []
        said: list[float] = []

        def keep(*given: Any, held: list[Engine] = held) -> Engine:
            held.append(learning()(*given))
            return held[0]

        def look(_: float, held: list[Engine] = held, said: list[float] = said) -> None:
            said.append(1.0 - float(held[0].fresh(held[0].ids(), held[0].now).mean()))

        trace = trace_of(np.random.default_rng(seed), 200.0, together=0.02, alone=0.002)
        simulate(Contender("learned", keep, admit_unknown), trace, 10.0, progress=look)
        ratio.append(np.mean(said) / held[0].ledger(trace.end).staleness)
    assert 0.9 < np.mean(ratio) < 1.25
