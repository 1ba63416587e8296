"""The class that learns what signals are worth: gates, floods, refits, saved state."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from recrawl.engine.signals.arrays import is_open
from recrawl.engine.signals.signals import Outcome, Signals

Array = NDArray[np.float64]
RATES: Array = np.geomspace(0.003, 0.003 * 1.6**15, 16)
PRIOR: Array = np.exp(-RATES / 0.4)


class World:
    """Pages crawled every other day; source 0 tells of changes as they happen, or at random."""

    def __init__(self, n: int, n_sources: int = 1, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.signals = Signals(RATES, PRIOR, n_sources)
        self.totals = np.zeros((n, 5))
        self.now, self.n = 0.0, n

    def by_row(self) -> Array:
        return self.totals[self.signals.pages]

    def heard(self, page: int, source: int = 0, elapsed: float = 1.0, times: int = 1) -> None:
        for _ in range(times):
            self.signals.heard(page, 0, source, self.totals[page], elapsed)

    def crawled(self, page: int, changed: bool) -> None:
        self.totals[page] += (0.0, 1.0, math.log(2.0), 0.0, 0.0) if changed else (2.0, 0.0, 0.0, 0.0, 0.0)
        if page in self.signals.row:
            outcome = Outcome(self.now - 2.0, 2.0, changed, own=0.6)
            learned = self.signals.learn(page, self.totals[page], outcome, self.by_row(), self.now)
            for row, evidence in learned.settled.items():
                self.totals[self.signals.pages[row]] = (0.0, 0.0, 0.0, *evidence)

    def run(self, rounds: int, truthful: bool) -> None:
        for _ in range(rounds):
            self.now += 2.0
            changed = self.rng.random(self.n) < 0.45
            told = changed if truthful else self.rng.permutation(changed)
            for page in range(self.n):
                if told[page]:
                    self.heard(page)
                self.crawled(page, bool(changed[page]))
        self.refit()

    def refit(self) -> None:
        rows = self.by_row()
        self.signals.refit(PRIOR, rows, np.zeros(len(rows)))
        for row, totals in enumerate(rows):
            self.signals.refresh(row, totals, 0.0)


def test_a_gate_starts_shut_opens_on_proof_and_shuts_when_the_source_turns() -> None:
    world = World(12)
    world.heard(0)
    assert world.signals.components(0) is None
    world.run(8, truthful=True)
    assert is_open(world.signals.arrays, 0, 0)
    assert world.signals.components(1) is not None
    world.run(12, truthful=False)
    assert not is_open(world.signals.arrays, 0, 0)
    assert world.signals.components(1) is None


def test_useless_signals_never_count() -> None:
    world = World(12, seed=1)
    world.run(16, truthful=False)
    assert not is_open(world.signals.arrays, 0, 0)


@pytest.mark.parametrize("spread", [False, True])
def test_a_flood_from_a_trusted_source_does_not_starve_a_page(spread: bool) -> None:
    world = World(12, seed=2)
    world.run(8, truthful=True)
    before = world.signals.value(3, 4.0)
    for _ in range(4):
        world.now += 2.0
        world.heard(3, elapsed=0.001, times=1000 if spread else 1)
        assert world.signals.value(3, 0.01) >= 0.0
        world.crawled(3, changed=False)
    found = world.signals.components(3)
    assert found is not None
    told = found.signal_rate * -np.expm1(-found.signal_weight)
    assert float(found.weight @ (found.missed_rate + told)) < 10.0 * RATES[-1]
    assert world.signals.value(3, 4.0) > 0.5 * before


def test_a_refit_without_news_moves_little() -> None:
    world = World(12, seed=3)
    world.run(8, truthful=True)
    values = [world.signals.value(page, 3.0) for page in range(12)]
    world.refit()
    np.testing.assert_allclose([world.signals.value(page, 3.0) for page in range(12)], values, rtol=0.2)


def test_saved_state_opens_with_more_sources() -> None:
    world = World(12, seed=4)
    world.run(8, truthful=True)
    for n_sources in (1, 4):
        again = Signals(RATES, PRIOR, n_sources)
        again.load(world.signals.saved())
        for page in range(12):
            assert again.value(page, 3.0) == pytest.approx(world.signals.value(page, 3.0), rel=1e-6)
