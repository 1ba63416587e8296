"""Clocks of folders: equal to a plain twin, faster while pages change together, and harmless where they do not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.folder_clocks import FolderClock, Group, fitted_weights, log_chance
from profiles import examples

from recrawl._compile.plain import plain
from recrawl.engine import Engine
from recrawl.engine.clocks.arrays import LEVELS, TERMS, Clocks
from recrawl.engine.clocks.clocks import FolderClocks
from recrawl.engine.clocks.folders import folder_names, folders
from recrawl.engine.clocks.kernels import add_to_groups, bin_of, fill_paces, fit_weights, weigh_terms
from recrawl.engine.settings import Settings
from recrawl.schedule.exact import access
from recrawl.schedule.exact.access_kernels import BINS
from recrawl.simulate.run.runners import PlainRunner

from .together import URLS, run, trace_of

TWO = ["https://a.example/x/1", "https://a.example/y/z/1"]


def new_clocks(urls: list[str]) -> FolderClocks:
    clocks = FolderClocks(Settings(1.0, day=1.0))
    clocks.add(folder_names(urls), np.arange(len(urls)))
    return clocks


def mean_paces(engine: Engine) -> np.ndarray:
    """The mean pace of each clock that was published."""
    found = [access.paces(engine.scheduler, clock)[1] for clock in range(len(engine.clocks))]
    return np.array([paces.mean() for paces in found if len(paces)])


# --- kernels -------------------------------------------------------------------------------------------------------


def test_folders_of_a_url() -> None:
    assert folders("https://a.example/x/y/z/page?q=1/2") == (
        "a.example", "a.example/x", "a.example/x/y", "a.example/x/y/z",
    )  # fmt: skip
    assert folders("https://a.example/page") == ("a.example",) * 4
    assert folders("page:7") == ("page:7",) * 4


CRAWLS = st.lists(
    st.tuples(
        st.integers(0, 1),  # whose crawl
        st.sampled_from([0.0, 0.1, 0.7, 5.0, 16.5, 400.0, 1e6]),  # time since the crawl before
        st.sampled_from([0.0, 0.3, 2.0, 15.0, 100.0, 1e7]),  # length of its interval
        st.sampled_from([1e-4, 0.3, 5.0]),  # changes expected per time
        st.booleans(),
    ),
    max_size=12,
)


@given(CRAWLS, st.sampled_from([0.0, -77.3, 2e4]))
@settings(max_examples=examples(40))
def test_paces_are_those_of_the_twin(crawls: list[tuple[int, float, float, float, bool]], now: float) -> None:
    arrays = new_clocks(TWO).arrays
    rng = np.random.default_rng(len(crawls))
    arrays.weight[:] = rng.dirichlet(np.ones(TERMS))
    of_all = Group(BINS)
    groups = {int(g): Group(BINS, of_all) for g in arrays.group[:2, 1:].ravel()} | {0: of_all}
    width, memory = arrays.scale.tolist()
    mine = [[groups[int(g)] for g in arrays.group[k]] for k in range(2)]
    twins = [FolderClock(mine[k], arrays.weight, (width, memory, BINS)) for k in range(2)]
    terms, paces = np.empty((TERMS, BINS)), np.empty(BINS)
    for clock, step, length, hazard, changed in crawls:
        now += step
        newest, found = int(plain(bin_of)(arrays, now)), 1.3 * hazard if changed else 0.0
        fill_paces(arrays, clock, newest, BINS, terms, paces)
        add_to_groups(arrays, clock, newest, BINS, paces, (now - length, now, hazard, found))
        twins[clock].add(now, now - length, now, hazard, found)
        for k, twin in enumerate(twins):
            ahead = fill_paces(arrays, k, newest, BINS, terms, paces)
            expected, then = twin.paces(newest)
            np.testing.assert_allclose(paces, expected, rtol=1e-9)
            np.testing.assert_allclose(arrays.weight @ terms, expected, rtol=1e-9)
            np.testing.assert_allclose(terms[:, -1], twin.terms(newest)[-1], rtol=1e-9)
            assert ahead == pytest.approx(then, rel=1e-9)
            assert (paces > 0).all()


def test_a_ring_forgets_what_is_older_than_its_bins() -> None:
    arrays = new_clocks(TWO).arrays
    width = float(arrays.scale[0])
    paces, terms = np.ones(BINS), np.empty((TERMS, BINS))
    add_to_groups(arrays, 0, 0, BINS, paces, (0.0, width, 1.0, 40.0))
    for newest, there in ((BINS - 1, True), (BINS, False), (10 * BINS + 3, False), (10**15, False)):
        fill_paces(arrays, 0, newest, BINS, terms, paces)
        assert (paces > 1.5).any() == there
    add_to_groups(arrays, 0, BINS, BINS, np.ones(BINS), (BINS * width, (BINS + 1) * width, 0.0, 0.0))
    fill_paces(arrays, 0, BINS, BINS, terms, paces)
    assert paces == pytest.approx(np.ones(BINS))


def test_a_level_that_explains_more_changes_weighs_more() -> None:
    """Changes fall where the folder is active: the folder's terms gain weight, and weights add up to 1."""
    clocks = new_clocks(TWO)
    arrays, newest = clocks.arrays, BINS - 1
    terms, paces = np.ones((TERMS, BINS)), np.empty(BINS)
    terms[1 + 2 * LEVELS.index("folder"), -1] = 30.0
    for k in range(400):
        paces[:] = arrays.weight @ terms
        last = newest * float(arrays.scale[0])
        weigh_terms(arrays, newest, BINS, terms, paces, (last, last + float(arrays.scale[0]), 0.1, 1.0))
        weigh_terms(arrays, newest, BINS, terms, paces, (0.0, last, 0.1, 0.0))
        arrays.usual[:] += 1.0, 0.1 * BINS * float(arrays.scale[0])
        if k % 20 == 19:
            clocks.fit()
            assert arrays.weight.sum() == pytest.approx(1.0)
            assert (arrays.weight > 0).all()
    assert arrays.weight.argmax() == 1 + 2 * LEVELS.index("folder")


def weighed(arrays: Clocks, times: np.ndarray, hazard: float, changed: bool) -> None:
    """Let a crawl of one bin add to the likelihood of weights; ``times`` is how fast each term ran in it."""
    terms, width = np.ones((TERMS, BINS)), float(arrays.scale[0])
    terms[:, -1] = times
    total = hazard * width * float(arrays.weight @ times)
    found = total / -math.expm1(-total) if changed else 0.0
    begin = (BINS - 1) * width
    weigh_terms(arrays, BINS - 1, BINS, terms, arrays.weight @ terms, (begin, begin + width, hazard, found))


@given(st.integers(0, 10**6), st.booleans(), st.floats(1e-3, 5.0))
@settings(max_examples=examples(40))
def test_the_kept_parabola_touches_the_likelihood(seed: int, changed: bool, hazard: float) -> None:
    rng = np.random.default_rng(seed)
    arrays = new_clocks(TWO).arrays
    arrays.weight[:] = rng.dirichlet(np.ones(TERMS))
    arrays.usual[:] = rng.exponential(100.0, 2)  # 10 changes are held to be usual
    times = rng.exponential(1.0, TERMS) + 0.01
    weighed(arrays, times, hazard, changed)
    place = arrays.weight * (arrays.usual[0] + 10.0) / (arrays.usual[1] + 10.0)
    width, at, step = float(arrays.scale[0]), place.tolist(), 1e-5

    def chance(*moved: tuple[int, float]) -> float:
        weight = list(at)
        for t, by in moved:
            weight[t] += by
        return log_chance(weight, [(hazard * width * times).tolist()], [changed])

    slope = arrays.slope - arrays.curvature @ place
    for t in range(TERMS):
        assert slope[t] == pytest.approx((chance((t, step)) - chance((t, -step))) / (2 * step), rel=1e-4, abs=1e-6)
    np.testing.assert_allclose(arrays.curvature, arrays.curvature.T, rtol=1e-12)
    moved = 1e-3 * rng.normal(size=TERMS) * place
    there, back = (chance(*enumerate((sign * moved).tolist())) for sign in (1.0, -1.0))
    assert there + back - 2 * chance() == pytest.approx(-moved @ arrays.curvature @ moved, rel=1e-2, abs=1e-9)


@given(st.integers(0, 10**6), st.integers(0, 200), st.sampled_from([0.3, 30.0]))
@settings(max_examples=examples(20))
def test_fitted_weights_are_those_of_the_twin(seed: int, n: int, held_by: float) -> None:
    rng = np.random.default_rng(seed)
    arrays = new_clocks(TWO).arrays
    first = arrays.weight.tolist()
    for _ in range(n):
        weighed(arrays, rng.exponential(1.0, TERMS), 0.3, bool(rng.random() < 0.2))
    expected = fitted_weights(arrays.slope.tolist(), arrays.curvature.tolist(), first, held_by)
    fit_weights(arrays, held_by)
    np.testing.assert_allclose(arrays.weight, expected, atol=1e-3)


def test_fits_find_the_weights_that_outcomes_were_drawn_with() -> None:
    """A parabola reaches no further than twice what was expected, so that it takes some fits from weights far away."""
    rng, clocks = np.random.default_rng(3), new_clocks(TWO)
    truth, width = np.array([0.2, *[0.0] * 4, 0.3, 0.0, 0.0, 0.5]), float(clocks.arrays.scale[0])
    for _ in range(10):
        for times in rng.exponential(1.0, (2000, TERMS)):
            weighed(clocks.arrays, times, 1.0, bool(rng.random() < -math.expm1(-width * float(truth @ times))))
        clocks.fit()
    np.testing.assert_allclose(clocks.arrays.weight, truth, atol=0.05)


def test_without_outcomes_weights_stay_at_the_first_ones() -> None:
    arrays = new_clocks(TWO).arrays
    first = arrays.weight.copy()
    fit_weights(arrays, 30.0)
    np.testing.assert_allclose(arrays.weight, first, rtol=1e-9)


def test_the_credit_of_earlier_versions_becomes_a_likelihood_with_the_same_maximum() -> None:
    """Each weight was the credit over what its term would have expected; both were held to the first weights."""
    clocks, rng = new_clocks(TWO), np.random.default_rng(5)
    first = clocks.arrays.weight.copy()
    credit, exposure = rng.uniform(0.5, 300.0, TERMS), rng.uniform(100.0, 400.0, TERMS)
    expected = (credit + 30.0 * first) / (exposure + 30.0)
    clocks.take({"weight": expected.tolist(), "credit": credit.tolist(), "exposure": exposure.tolist()})
    assert clocks.arrays.weight.tolist() == expected.tolist()
    fit_weights(clocks.arrays, 30.0)
    np.testing.assert_allclose(clocks.arrays.weight, expected / expected.sum(), rtol=1e-6)


# --- the engine ----------------------------------------------------------------------------------------------------


def two_folders(n: int = 40) -> tuple[Engine, np.ndarray]:
    """Two folders of a host, crawled every day for some time; none has changed so far but a few pages of both."""
    engine = Engine(n / 2.0, day=1.0, sources=0)
    ids = engine.add([f"https://a.example/{'xy'[k % 2]}/{k}" for k in range(n)], 0.0, fetched_at=0.0)
    for now in range(1, 6):
        engine.record(ids, float(now), changed=ids % 10 < 2)
    return engine, ids


def test_pages_of_a_folder_that_changes_together_are_worth_more() -> None:
    engine, ids = two_folders()
    crawled, x, y = ids[ids % 8 < 6], ids[ids % 8 == 6], ids[ids % 8 == 7]
    engine.beliefs.refit_at = 10**9
    engine.clocks.arrays.weight[:] = [0.2, *[0.0] * 6, 0.4, 0.4]  # as if folders had explained most changes
    engine.record(crawled, 6.0, changed=crawled % 2 == 0)  # all that were crawled in x, none in y
    busy, quiet = (engine.explain(int(i), 6.5).clock for i in (6, 7))
    assert busy is not None
    assert quiet is not None
    assert busy.pace > 1.2 > quiet.pace
    change_rate = engine.pages().change_rate
    ratio = change_rate[x].mean() / change_rate[y].mean()
    assert 0.5 < ratio < 2.0, "the beliefs about uncrawled pages have hardly moved"
    assert engine.scheduler.value(x, 6.5).mean() > 1.3 * engine.scheduler.value(y, 6.5).mean()
    assert (engine.fresh(x, 6.5) < engine.fresh(y, 6.5)).all()
    for now in range(7, 30):
        engine.record(crawled, float(now), changed=False)
    clock = engine.clocks.folder_of(ids[:1])[0]
    assert access.paces(engine.scheduler, int(clock))[1][-1] < 1.0
    engine.scheduler._check()


def test_clocks_do_not_explain_away_a_wrong_rate() -> None:
    """Given rates are too low by a factor of 10. Clocks run fast at first; in the end rates have learned it."""
    rng = np.random.default_rng(2)
    made = [Engine(20.0, day=1.0, half_life=1e9, sources=0, siblings=siblings) for siblings in (True, False)]
    urls = [f"https://a.example/{k % 2}/{k}" for k in range(20)]
    for engine in made:
        ids = engine.add(urls, 0.0, fetched_at=0.0, change_rate=0.05)
    for now in range(1, 201):
        found = rng.random(20) < -np.expm1(-0.5)
        for engine in made:
            engine.record(ids, float(now), changed=found)
    followed, alone = (engine.pages(ids).change_rate.mean() for engine in made)
    assert alone == pytest.approx(0.5, rel=0.3)
    assert followed == pytest.approx(alone, rel=0.15)
    assert mean_paces(made[0]) == pytest.approx(1.0, abs=0.25)


def test_without_siblings_all_clocks_show_real_time() -> None:
    engine = Engine(10.0, day=1.0, siblings=False)
    ids = engine.add(URLS[:40].tolist(), 0.0, fetched_at=0.0)
    engine.record(ids, 1.0, changed=ids < 20)
    assert access.group_numbers(engine.scheduler, ids).tolist() == [-1] * 40
    assert engine.explain(0, 2.0).clock is None
    assert engine.beliefs.belief.seen[20] == pytest.approx([1.0, 0.0, 0.0])


def test_pages_follow_their_clock_from_their_first_copy_on() -> None:
    engine = Engine(10.0, day=1.0)
    ids = engine.add(URLS[:40].tolist(), 0.0, fetched_at=np.where(np.arange(40) < 30, 0.0, -np.inf))
    groups = access.group_numbers(engine.scheduler, ids)
    assert groups[30:].tolist() == [-1] * 10
    assert len(set(groups[:20].tolist())) == len(set(groups[20:30].tolist())) == 1
    assert groups[0] != groups[20]
    engine.record(ids[30:], 1.0, changed=True)
    assert (access.group_numbers(engine.scheduler, ids)[30:] == groups[20]).all()
    engine.scheduler._check()


def test_bins_suit_the_time_between_crawls() -> None:
    """After a change of the budget, bins are chosen again; counts by the old ones are dropped, weights stay."""
    engine = Engine(40.0, day=1.0, sources=0, min_change_probability=0.0)
    ids = engine.add(URLS[:80].tolist(), 0.0, fetched_at=np.where(np.arange(80) < 70, 0.0, -np.inf))
    width = access.bin_width(engine.scheduler)
    assert width == pytest.approx(80 / 40.0 / 20.0)
    for now in (1.0, 2.0):
        engine.record(ids[:40], now, changed=ids[:40] < 20)
    weight = engine.clocks.arrays.weight.copy()
    engine.budget = 400.0
    engine.record(ids[70:], 2.5, changed=False)  # their first copy: they join their clocks
    engine.scheduler._check()
    engine.eligibility._check()
    assert access.bin_width(engine.scheduler) == pytest.approx(width / 10.0)
    assert not engine.clocks.arrays.found.any()
    assert engine.clocks.arrays.weight.tolist() == weight.tolist()
    assert len(engine.pick(3.0, 80)) == 80
    engine.record(ids, 3.0, changed=False)
    engine.scheduler._check()
    assert engine.clocks.arrays.expected.any()


def test_times_far_apart() -> None:
    engine = Engine(40.0, day=1.0, sources=0)
    ids = engine.add(URLS[:40].tolist(), 0.0, fetched_at=0.0)
    rng, now = np.random.default_rng(1), 0.0
    for step in (0.01, 1.0, 1e-6, 3e4, 0.5, 1e7, 1.0):
        now += step
        engine.record(ids, now, changed=rng.random(40) < 0.5)
        engine.scheduler._check()
        assert ((mean_paces(engine) > 0) & (mean_paces(engine) < 100)).all()
        found = engine.explain(3, now + 1.0)
        assert math.isfinite(found.value)
        assert 0.0 <= found.fresh <= 1.0


def test_the_clocks_of_independent_pages_run_at_the_usual_pace_on_average() -> None:
    rng = np.random.default_rng(3)
    n, rate = 200, np.exp(rng.normal(-1.5, 1.0, 200))
    engine = Engine(n / 2.0, day=1.0, sources=0)
    ids = engine.add([f"https://a.example/{k % 10}/{k}" for k in range(n)], 0.0, fetched_at=0.0)
    last, seen = np.zeros(n), []
    for step in range(1, 81):
        now = step / 4.0
        some = rng.choice(ids, n // 8, replace=False)
        engine.record(some, now, changed=rng.random(len(some)) < -np.expm1(-rate[some] * (now - last[some])))
        last[some] = now
        if step > 40:
            seen.append(mean_paces(engine))
    assert np.mean(seen) == pytest.approx(1.0, abs=0.1)
    assert np.std(seen) < 0.3


# --- runs ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_live_path_and_the_compiled_loop_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = trace_of(np.random.default_rng(1), 60.0, together=0.02, alone=0.01)
    weight = np.random.default_rng(2).uniform(0.9, 1.1, len(trace))  # among equals, any is right
    trace = replace(trace, importance=weight)
    compiled, engine = run(trace, 20.0)
    monkeypatch.setattr("recrawl.simulate.run.run.runner_of", PlainRunner)
    plain, live = run(trace, 20.0)
    assert plain.staleness == pytest.approx(compiled.staleness, rel=1e-9)
    for name in ("weight", "slope", "curvature", "found", "expected"):
        one, other = (getattr(e.clocks.arrays, name) for e in (live, engine))
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=name)
    for one in (engine, live):
        one.scheduler._check()


@pytest.mark.slow
def test_clocks_help_where_folders_change_together() -> None:
    gain = np.zeros(4)
    for k in range(4):
        trace = trace_of(np.random.default_rng(20 + k), 200.0, together=0.02, alone=0.002)
        together, engine = run(trace, 10.0, siblings=True)
        gain[k] = run(trace, 10.0, siblings=False)[0].staleness - together.staleness
    assert gain.mean() > 3 * gain.std(ddof=1) / 2  # three standard errors
    weight = engine.clocks.arrays.weight
    assert weight[-2:].sum() > 0.6 * 2 / (TERMS - 1), "the folder's terms weigh more than at first"


@pytest.mark.slow
def test_nothing_is_lost_where_pages_are_independent() -> None:
    rng = np.random.default_rng(3)
    stale = np.zeros((3, 2))
    for k in range(3):
        trace = trace_of(rng, 150.0, together=0.0, alone=0.03)
        stale[k] = run(trace, 10.0, siblings=False)[0].staleness, run(trace, 10.0)[0].staleness
    mean, gap = stale[:, 0].mean(), (stale[:, 1] - stale[:, 0]).mean()
    assert gap < 0.01 * mean + 2 * np.std(stale[:, 1] - stale[:, 0], ddof=1) / np.sqrt(3)


@pytest.mark.slow
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
    again = Engine.restore(engine.rows(), now)
    for name in ("weight", "slope", "curvature"):
        assert getattr(again.clocks.arrays, name).tolist() == getattr(engine.clocks.arrays, name).tolist()
    again.scheduler._check()


@pytest.mark.parametrize(
    "urls",
    [["https://a.example/only"], URLS[:20].tolist(), [f"https://h{k}.example/" for k in range(20)]],
    ids=["one page", "one folder", "every page alone"],
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
