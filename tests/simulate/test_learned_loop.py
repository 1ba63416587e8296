"""The engine in the compiled loop and driven by its protocol: the same crawls, beliefs and clocks."""

import numpy as np
import pytest
from profiles import few

from recrawl.engine.signals.arrays import OPEN
from recrawl.simulate import Contender, Signals, Trace, simulate
from recrawl.simulate.run import run as run_module
from recrawl.simulate.run.policies import admit_unknown, learning
from recrawl.simulate.run.runners import EngineRunner, PlainRunner

END = 40.0


class Plain(EngineRunner):
    """Drives an engine by its protocol, with room for the same pages with signals in the same order."""

    def run(self, anchor, period, slot, last, batch):
        self._reserve_signals()
        return PlainRunner.run(self, anchor, period, slot, last, batch)


def folders_that_change_together(seed, n=60, *, sources=0, equal=False, late=False):
    """Folders on two hosts, each with bursts; pages come and go, and for a while there are none.

    Signals that are late say when the change was.
    """
    rng = np.random.default_rng(seed)
    created = np.where(rng.random(n) < 0.6, 0.0, rng.uniform(0.0, END / 2, n))
    deleted = np.where(rng.random(n) < 0.8, 18.0, rng.uniform(created, END))
    deleted = np.where(created > 0.0, END, deleted)
    created = np.where((created > 0.0) & (created < 22.0), 22.0, created)
    order = np.argsort(created, kind="stable")
    created, deleted = created[order], np.maximum(deleted[order], created[order])
    bursts = [np.sort(rng.uniform(0.0, END, 12)) for _ in range(6)]
    changes = []
    for i in range(n):
        shared = bursts[i % 6][rng.random(12) < 0.7]
        own = rng.uniform(0.0, END, rng.poisson(2.0))
        at = np.sort(np.concatenate([shared + rng.uniform(0.0, 0.2, len(shared)), own]))
        changes.append(at[(at > created[i]) & (at < deleted[i])])
    offset, changed_at = np.cumsum([0, *map(len, changes)]), np.concatenate(changes)
    page = np.repeat(np.arange(n), np.diff(offset))
    heard = rng.random(len(page)) < 0.5
    url = np.array([f"https://h{i % 2}.example/f{i % 6}/{i}" for i in range(n)])
    life = {"created_at": created, "deleted_at": deleted, "importance": rng.uniform(0.1, 2.0, n), "url": url}
    if equal:
        life["importance"] = np.ones(n)
    drawn = None
    if sources:  # half of the changes by the last source; by the one before it, as many at any time
        at, who, n_told = changed_at[heard], page[heard], int(heard.sum())
        if sources > 1:
            who = np.concatenate([who, rng.integers(0, n, n_told)])
            at = np.concatenate([at, rng.uniform(created, deleted)[who[n_told:]]])
        source = np.where(np.arange(len(at)) < n_told, sources - 1, sources - 2)
        drawn = Signals.of(at, who, source)
        if late:
            come = np.minimum(at + rng.exponential(3.0, len(at)), deleted[who] - 1e-3)
            drawn = Signals.of(come, who, source, changed_at=np.minimum(at, come))
    return Trace(0.0, END, offset=offset, changed_at=changed_at, signals=drawn, **life)


def run(trace, budget, **settings):
    """The result of a simulation, and its engine."""
    held = []

    def make(*arguments):
        held.append(learning(**settings)(*arguments))
        return held[0]

    return simulate(Contender("learned", make, admit_unknown), trace, budget, bins=5), held[0]


def as_bytes(state):
    """A state with its arrays as bytes, so that two can be compared.

    Stated delays are left out: forecasts alone use them, and the compiled loop makes none.
    """
    if isinstance(state, dict):
        return {name: as_bytes(part) for name, part in state.items() if name != "stated_delays"}
    return state.tobytes() if isinstance(state, np.ndarray) else state


@pytest.mark.slow
@pytest.mark.parametrize("sources", few([0, 2, 1], 2))
@pytest.mark.parametrize("budget", [7.3, [(0.0, 16.0), (10.0, 2.0), (25.0, 20.0)]])
@pytest.mark.parametrize("settings", [{}, {"siblings": False}], ids=["clocks", "alone"])
def test_the_compiled_loop_learns_what_the_protocol_learns(monkeypatch, budget, sources, settings):
    opened = False
    for seed in (0, 1, 3):  # the last one with pages that are equal until they are crawled or signalled
        look = {"equal": seed == 3, "late": seed == 1}
        trace = folders_that_change_together(seed, 120 if seed == 3 else 60, sources=sources, **look)
        settings = {**settings, "sources": sources}
        compiled, fast = run(trace, budget, **settings)
        with monkeypatch.context() as patch:
            patch.setattr(run_module, "runner_of", Plain)
            plain, slow = run(trace, budget, **settings)
        assert compiled.crawls.tolist() == plain.crawls.tolist()
        assert compiled.staleness == plain.staleness
        assert slow.beliefs.fits > 0
        for part in ("beliefs", "calibration", "clocks"):
            assert as_bytes(fast.state()[part]) == as_bytes(slow.state()[part])
        for engine in (fast, slow):
            engine.scheduler._check()
        assert (fast.clocks.arrays.found.sum() > 0.0) == fast.clocks.enabled
        opened = opened or bool((fast.beliefs.belief.signals.gate[:, OPEN] > 0.0).any())
    assert opened == (sources > 0)
