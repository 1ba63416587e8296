"""Parts of the engine: live path and compiled loop agree, what helps is learned, nothing else is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recrawl.engine import Engine
from recrawl.engine.effects.groups import folders
from recrawl.engine.effects.kernels import ALONE, TOGETHER
from recrawl.simulate.run.policies import admit_unknown, learning
from recrawl.simulate.run.run import Contender, simulate
from recrawl.simulate.run.runners import PlainRunner
from recrawl.simulate.trace import Trace

pytestmark = pytest.mark.slow

URLS = np.array([f"https://site{k // 200}.example/part/{k // 20}/page{k}" for k in range(400)])


def trace_of(rng: np.random.Generator, days: float, *, together: float, alone: float) -> Trace:
    """Pages in folders of twenty: sweeps change most of a folder at once, besides changes of single pages."""
    n = len(URLS)
    page, at = [], []
    for folder in range(n // 20):
        for when in rng.uniform(0, days, rng.poisson(together * days)):
            hit = folder * 20 + np.flatnonzero(rng.random(20) < 0.8)
            page.append(hit)
            at.append(np.full(len(hit), when))
    for k in range(n):
        own = rng.uniform(0, days, rng.poisson(alone * days))
        page.append(np.full(len(own), k))
        at.append(own)
    pages, times = np.concatenate(page), np.concatenate(at)
    order = np.lexsort((times, pages))
    offset = np.concatenate([[0], np.cumsum(np.bincount(pages, minlength=n))])
    return Trace(0.0, days, offset=offset, changed_at=times[order], url=URLS, day=1.0)


def run(trace: Trace, budget: float, **settings: Any) -> tuple[Any, Engine]:
    held: list[Engine] = []
    make = learning(**settings)

    def keep(trace: Trace, budget: float, rng: np.random.Generator) -> Engine:
        held.append(make(trace, budget, rng))
        return held[0]

    return simulate(Contender("learned", keep, admit_unknown), trace, budget), held[0]


def test_folders_of_a_url() -> None:
    assert folders("https://a.example/x/y/z/page?q=1/2") == (
        "a.example", "a.example/x", "a.example/x/y", "a.example/x/y/z",
    )  # fmt: skip
    assert folders("https://a.example/page") == ("a.example",) * 4
    assert folders("page:7") == ("page:7",) * 4


def test_the_live_path_and_the_compiled_loop_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = trace_of(np.random.default_rng(1), 60.0, together=0.02, alone=0.01)
    trace = replace(
        trace, importance=np.random.default_rng(2).uniform(0.9, 1.1, len(trace))
    )  # among equals, any is right
    compiled, engine = run(trace, 20.0)
    monkeypatch.setattr("recrawl.simulate.run.run.runner_of", PlainRunner)
    plain, live = run(trace, 20.0)
    assert plain.staleness == pytest.approx(compiled.staleness, rel=1e-9)
    assert live.effects.arrays.weight == pytest.approx(engine.effects.arrays.weight, rel=1e-9)
    assert live.effects.level == engine.effects.level
    engine.scheduler._check()
    live.scheduler._check()


def test_siblings_help_where_folders_change_together() -> None:
    gain = np.zeros(4)
    for k in range(4):
        trace = trace_of(np.random.default_rng(20 + k), 200.0, together=0.02, alone=0.002)
        together, engine = run(trace, 10.0, siblings=True)
        gain[k] = run(trace, 10.0, siblings=False)[0].staleness - together.staleness
    assert gain.mean() > 3 * gain.std(ddof=1) / 2  # three standard errors
    found = engine.explain(0, engine.now).siblings
    assert found.level == engine.effects.level
    assert str(found) in str(engine.explain(0, engine.now))


def test_nothing_is_lost_where_pages_are_independent() -> None:
    rng = np.random.default_rng(3)
    stale = np.zeros((3, 2))
    for k in range(3):
        trace = trace_of(rng, 150.0, together=0.0, alone=0.03)
        stale[k] = run(trace, 10.0, siblings=False)[0].staleness, run(trace, 10.0)[0].staleness
    mean, gap = stale[:, 0].mean(), (stale[:, 1] - stale[:, 0]).mean()
    assert gap < 0.01 * mean + 2 * np.std(stale[:, 1] - stale[:, 0], ddof=1) / np.sqrt(3)


def test_siblings_are_used_only_where_they_predict_better() -> None:
    ratios, unused = [], 0
    for seed in range(42, 30, -1):
        apart = trace_of(np.random.default_rng(seed), 100.0, together=0.0, alone=0.03)
        alone, _ = run(apart, 20.0, siblings=False)
        tried, engine = run(apart, 20.0, siblings=True)
        unused += engine.effects.level is None
        ratios.append(tried.staleness / alone.staleness)
    assert unused >= 10  # by chance they may seem to help
    assert np.mean(ratios) == pytest.approx(1.0, rel=0.01), ratios  # equals come in another order: one run says little
    assert engine.effects.level is None
    assert (engine.scheduler._memory.state.member["group"][: len(URLS)] == -1).all()
    assert str(engine.explain(0, engine.now)).count("\n") == 3
    together = trace_of(np.random.default_rng(32), 100.0, together=0.03, alone=0.001)
    assert run(together, 20.0, siblings=True)[1].effects.level is not None


def use_siblings(engine: Engine, used: bool) -> None:
    """Let siblings have predicted better, or pages alone; and fit, at a shape of 1."""
    engine.beliefs.belief.scores[:] = 0.0
    engine.effects.arrays.score[TOGETHER] = engine.effects.arrays.score[ALONE] + (100.0 if used else -100.0)
    engine.beliefs.refit_at = engine.beliefs.crawls
    assert engine.refit_if_due()
    assert engine.effects.arrays.used[0] == used


def test_when_siblings_are_no_longer_used_nothing_is_left_of_it() -> None:
    rng = np.random.default_rng(7)
    made = [Engine(100.0, day=1.0, siblings=siblings) for siblings in (True, False)]
    for engine in made:
        engine.add(URLS[:40].tolist(), 0.0, fetched_at=0.0)
        engine.beliefs.refit_at = 10**9
    rate = rng.gamma(1.0, 0.2, 40)
    for step in range(90):
        found = (rng.random(40) < -np.expm1(-rate)) | np.repeat(rng.random(2) < 0.1, 20)  # or its folder is swept
        for engine in made:
            ids = np.sort(engine.pick(step + 1.0, 40))
            assert len(ids) == 40
            engine.record(ids, step + 1.0, changed=found)
        if step == 9:
            use_siblings(made[0], True)
        if step == 79:
            rows, now = made[0].rows(), made[0].now
            assert (made[0].beliefs.belief.own[:40].sum()) < 0.95 * made[0].beliefs.belief.n_changes[:40].sum()
            use_siblings(made[0], False)
            late = {**rows, "parts": made[0].rows()["parts"], "priors": made[0].rows()["priors"]}
            restored = Engine.restore(late, now)  # no page was written since siblings counted
            assert restored.beliefs.belief.gamma[:40] == pytest.approx(made[0].beliefs.belief.gamma[:40])
            assert restored.beliefs.belief.own[:40] == pytest.approx(made[0].beliefs.belief.own[:40])
    for engine in made:
        engine.beliefs.belief.scores[:] = 0.0
        engine.beliefs.refit_at = engine.beliefs.crawls
        assert engine.refit_if_due()
    related, plain = (engine.beliefs.belief for engine in made)
    assert related.own[:40] == pytest.approx(plain.n_changes[:40])
    assert related.prior == pytest.approx(plain.prior, rel=0.01)
    assert related.gamma[:40] == pytest.approx(plain.gamma[:40], rel=0.05)
    assert made[0].effects.arrays.trial[:40, ALONE] == pytest.approx(related.gamma[:40, 0], rel=0.05)


def test_a_page_alone_in_its_group_has_no_siblings() -> None:
    engine = Engine(10.0, day=1.0)
    engine.add(["https://a.example/x/1", "https://a.example/x/2", "https://b.example/y/1"], 0.0, fetched_at=0.0)
    engine.effects.arrays.used[0] = True
    engine.effects.join_groups(engine.scheduler, engine.ids())
    groups = engine.scheduler._memory.state.member["group"][:3]
    assert groups[0] == groups[1] >= 0
    assert groups[2] == -1


def test_a_saved_engine_goes_on_as_it_would_have() -> None:
    engine = Engine(10.0, day=1.0, lease=1e-3)
    engine.add(URLS.tolist(), 0.0, fetched_at=0.0)
    rng, now = np.random.default_rng(4), 0.0
    found = rng.random(6000) < 0.2
    for k in range(3000):
        now += 0.1
        ids = engine.pick(now, 1)
        engine.record(ids, now, changed=found[k])
    copy = Engine.restore(engine.state())
    for k in range(3000, 3300):
        now += 0.1
        ids, same = engine.pick(now, 1), copy.pick(now, 1)
        assert engine.scheduler.value(ids, now) == pytest.approx(copy.scheduler.value(same, now))
        engine.record(ids, now, changed=found[k])
        copy.record(ids if ids[0] == same[0] else same, now, changed=found[k])
    rows = engine.rows()
    again = Engine.restore(rows, now)
    assert again.effects.arrays.weight[: len(URLS)] == pytest.approx(engine.effects.arrays.weight[: len(URLS)])
    assert again.effects.level == engine.effects.level
    again.scheduler._check()


@pytest.mark.parametrize(
    "urls",
    [["https://a.example/only"], URLS[:20].tolist(), [f"https://h{k}.example/" for k in range(20)]],
    ids=["one page", "one group", "every page alone"],
)
def test_corners(urls: list[str]) -> None:
    engine = Engine(1.0, day=1.0, lease=1e-3)
    engine.add(urls, 0.0, fetched_at=0.0)
    rng, now = np.random.default_rng(5), 0.0
    for k in range(900):
        now += 1.0 if k < 400 else 1.0 + 365.0 * (k == 500)  # the clock jumps a year ahead once
        ids = engine.pick(now, 1)
        if len(ids):
            engine.record(ids, now, changed=k < 200 and rng.random() < 0.5)  # and then nothing changes any more
        if k % 50 == 0:
            engine.scheduler._check()
    fresh = engine.fresh(engine.ids(), now)
    assert ((fresh > 0) & (fresh <= 1)).all()
    engine.remove(engine.ids()[:1])
    assert engine.add(["https://new.example/x"], now, fetched_at=now)[0] == len(urls)
    engine.pick(now + 1.0, 1)
    engine.scheduler._check()
