"""Signals: useful sources raise the value of their pages, useless ones are learned to be useless."""

import numpy as np
import pytest
from profiles import few

from recrawl import Engine
from recrawl.engine.signals.arrays import OPEN, OPENED

N = 150


def drawn_world(precision, n_sources=1, end=150.0, seed=0, period=0.5, refit_at=200):
    """An engine that crawls every page now and then, and hears half of all changes plus false signals.

    The precision of source k is precision[k]; its true signals are half of the changes, shared out among sources.
    """
    rng = np.random.default_rng(seed)
    change_rate = rng.uniform(0.2, 0.6, N)
    engine = Engine(float(N), day=1.0, sources=n_sources, lease=1e-3, half_life=1e9)
    engine.add([f"a.example/{k}" for k in range(N)], 0.0, fetched_at=0.0)
    engine.beliefs.refit_at = refit_at
    events = []
    for i in range(N):
        times = np.sort(rng.uniform(0, end, rng.poisson(change_rate[i] * end)))
        events += [(t, 1, i, -1) for t in times]
        for k in range(n_sources):
            signalled = times[rng.random(len(times)) < 0.5 / n_sources]
            false = rng.uniform(0, end, rng.poisson(len(signalled) * (1 - precision[k]) / precision[k]))
            events += [(t, 2, i, k) for t in [*signalled, *false]]
    crawls = np.arange(period, end, period)
    events += [(t, 3, -1, -1) for t in crawls]
    stale = np.zeros(N, bool)
    for at, kind, page, source in sorted(events):
        if kind == 1:
            stale[page] = True
        elif kind == 2:
            engine.signal([page], at, source=source)
        else:
            ids = rng.choice(N, N // 2, replace=False)
            engine.record(ids, at, changed=stale[ids])
            stale[ids] = False
    return engine, change_rate, end


def believed(engine, now):
    """Precision by page and source."""
    return np.array([[facts.precision for facts in engine.explain(i, now).signals] for i in range(N)])


@pytest.mark.slow
@pytest.mark.parametrize("precision", few([0.25, 0.8, 0.5], 2))
def test_learned_precision_approaches_the_truth(precision):
    engine, change_rate, end = drawn_world([precision])
    assert believed(engine, end).mean() == pytest.approx(precision, abs=0.12)
    facts = engine.explain(0, end).signals[0]
    assert facts.counts
    assert facts.host_precision == pytest.approx(precision, abs=0.12)
    assert facts.host_pages == N
    pages = engine.pages()
    assert pages.change_rate.mean() == pytest.approx(change_rate.mean(), rel=0.1)
    assert pages.recall.mean() == pytest.approx(0.5, abs=0.1)
    assert pages.false_rate.mean() == pytest.approx(0.2 * (1 - precision) / precision, rel=0.3)


@pytest.mark.slow
def test_two_sources_are_distinguished():
    engine, _, end = drawn_world([0.9, 0.2], n_sources=2)
    good, bad = believed(engine, end).mean(axis=0)
    assert good > 0.6
    assert bad < 0.35


def alike(sources=1, n=40):
    """Pages crawled daily: half of them change whenever a signal came before, the others never do then."""
    engine = Engine(1.0, day=1.0, sources=sources, lease=1e-3)
    engine.add([f"a.example/{k}" for k in range(n)], 0.0, fetched_at=0.0)
    useful = np.arange(n) % 2 == 0
    for day in range(1, 41):
        signalled = np.full(n, day % 2 == 0)
        engine.signal(np.flatnonzero(signalled), day - 0.5)
        engine.record(np.arange(n), float(day), changed=signalled & useful)
    return engine, useful


@pytest.mark.parametrize("sources", [1, 2])
def test_a_useful_source_raises_the_value_of_its_pages_and_a_useless_one_does_not(sources):
    engine, useful = alike(sources)
    pages = np.arange(len(useful))
    shares = np.array([engine.explain(i, 40.5).signals[0].precision for i in range(len(useful))])
    assert shares[useful].min() > 0.7
    assert shares[~useful].max() < 0.1
    fresh = engine.fresh(pages, 40.5)
    engine.signal(pages, 40.5)
    value = engine.scheduler.value(pages, 40.5)
    assert value[useful].min() > 5 * value[~useful].max()
    assert (engine.fresh(pages, 40.5) / fresh)[useful].max() < 0.4
    assert (engine.fresh(pages, 40.5) / fresh)[~useful].min() > 0.8
    assert set(engine.pick(40.6, 10).tolist()) <= set(pages[useful].tolist())


def new_pages_after(lies, days=40, n=15, seed=0, first=1.0):
    """The precision with which a new page of an honest, a lying and an unknown host begins, and what a signal is worth.

    Of five hosts three are honest with a recall of 0.8; the others lie ``at random`` or ``stamp`` all pages daily. The
    first signal of the new pages comes so many days after their copies.
    """
    rng = np.random.default_rng(seed)
    engine = Engine(sources=1, day=1.0, min_change_probability=0.0, lease=1e-3)
    ids = engine.add([f"https://h{k // n}.example/{k}" for k in range(5 * n)], 0.0, fetched_at=0.0)
    lying, stale = np.arange(len(ids)) >= 3 * n, np.zeros(len(ids), bool)
    for day in range(1, days):
        changed = rng.random(len(ids)) < 0.2
        stale |= changed
        false = np.full(len(ids), True) if lies == "stamp" else rng.random(len(ids)) < 0.2
        engine.signal(ids[np.where(lying, false, changed & (rng.random(len(ids)) < 0.8))], day + 0.1)
        crawled = np.flatnonzero(rng.random(len(ids)) < 0.3)
        engine.record(ids[crawled], day + 0.5, changed=stale[crawled])
        stale[crawled] = False
    new = engine.add([f"https://{host}.example/new" for host in ("h0", "h4", "other")], float(days), fetched_at=days)
    before = engine.scheduler.value(new, days + first + 0.1)
    engine.signal(new, days + first)
    facts = [engine.explain(int(page), days + first + 0.1).signals[0] for page in new]
    assert all(one.counts for one in facts)
    return [one.precision for one in facts], engine.scheduler.value(new, days + first + 0.1) / before


@pytest.mark.parametrize("seed", few(range(4), 1))
def test_a_new_page_on_a_host_that_lied_at_random_begins_with_a_low_precision(seed):
    (honest, lying, other), (by_honest, by_lying, by_other) = new_pages_after("at random", seed=seed)
    assert honest > 0.75
    assert lying < 0.2
    assert lying < other / 2 < honest / 2
    assert by_lying < by_other / 2 < by_honest / 2


@pytest.mark.parametrize("seed", few(range(4), 1))
def test_a_new_page_on_a_host_that_stamps_daily_begins_with_a_low_precision(seed):
    """As on a host that lied at random: its stamps are not taken for what its changes explain."""
    (_, stamping, _), (by_honest, by_stamping, _) = new_pages_after("stamp", seed=seed)
    (honest, _, _), _ = new_pages_after("at random", seed=seed)
    assert stamping < 0.15
    assert stamping < honest / 4
    assert by_stamping < by_honest


@pytest.mark.parametrize("seed", few(range(4), 1))
def test_the_limits_of_what_new_pages_take_over_beside_hosts_that_stamp_daily(seed):
    """Those that the documentation names: pages signalled early on honest hosts, and late on those that stamp."""
    (early, _, _), _ = new_pages_after("stamp", seed=seed)
    (honest, late, other), _ = new_pages_after("stamp", seed=seed, first=4.0)
    assert early < 0.4
    assert late == pytest.approx(other, abs=0.1)
    assert late < honest - 0.1


def heard(engine, page, now):
    """Signals of source 0 since the copy."""
    return next((facts.heard for facts in engine.explain(page, now).signals if facts.source == 0), 0)


def test_a_page_without_a_copy_hears_nothing():
    engine = Engine(1.0)
    engine.add("a.example/", 0.0)
    engine.signal([0], 10.0)
    assert engine.explain(0, 10.0).signals == ()
    engine.record([0], 20.0)
    assert heard(engine, 0, 20.0) == 0


@pytest.mark.parametrize("sources", [1, 2])
def test_a_signal_about_a_change_before_the_copy_says_nothing(sources):
    engine = Engine(1.0, sources=sources)
    engine.add("a.example/", 0.0, fetched_at=0.0)
    engine.record([0], 100.0, changed=True)
    before = engine.rows()
    engine.signal([0], 150.0, changed_at=[100.0])
    assert str(engine.rows()) == str(before)
    engine.signal([0], 150.0, changed_at=[100.5])
    assert heard(engine, 0, 150.0) == 1


@pytest.mark.parametrize("found", [True, False])
def test_a_signal_after_the_crawl_counts_as_one_before_it(found):
    engines = [Engine(1.0, day=10.0, siblings=False) for _ in range(2)]
    for engine, heard_at in zip(engines, (140.0, 260.0), strict=True):
        engine.add([f"a.example/{k}" for k in range(3)], 0.0, fetched_at=0.0)
        engine.signal([0, 1, 2], 50.0)
        engine.record([0, 1, 2], 100.0, changed=[True, True, False])
        if heard_at < 200.0:
            engine.signal([0], heard_at, changed_at=[140.0])
        engine.record([0], 200.0, changed=[found])
        if heard_at > 200.0:
            engine.signal([0], heard_at, changed_at=[200.0 - 60.0])
            engine.signal([0], heard_at, changed_at=[200.0 - 60.0])  # said again, it is no second signal
    in_time, late = (engine.beliefs.belief.signals for engine in engines)
    assert late.statistics[0, 0] == pytest.approx(in_time.statistics[0, 0])
    assert late.gate[0] == pytest.approx(in_time.gate[0], abs=0.3), "scores are corrected, by later beliefs"
    assert heard(engines[1], 0, 260.0) == 0
    assert engines[1].pages().recall[0] == pytest.approx(engines[0].pages().recall[0])
    engines[1].scheduler._check()


def test_a_late_signal_that_shuts_the_gate_of_its_host_is_forgotten_with_the_rest():
    engine = Engine(1.0, day=10.0, siblings=False)
    engine.add(["a.example/"], 0.0, fetched_at=0.0)
    now = 0.0
    for _ in range(12):
        engine.signal([0], now + 5.0)
        engine.record([0], now := now + 10.0, changed=True)
    engine.beliefs.belief.signals.host_gate[0, 0, :2] = OPENED, -5.99
    engine.record([0], now := now + 10.0, changed=False)
    engine.signal([0], now + 1.0, changed_at=[now - 5.0])
    signals = engine.beliefs.belief.signals
    assert signals.host_gate[0, 0, OPEN] != OPENED
    assert np.isfinite(signals.statistics[0]).all()
    assert signals.statistics[0, 0].sum() == 0.0
    engine.record([0], now + 10.0, changed=True)
    engine.scheduler._check()


def test_signals_after_the_fetch_began_still_count():
    engine = Engine(1.0)
    engine.add("a.example/", 0.0, fetched_at=0.0)
    engine.signal([0, 0], 50.0)
    engine.signal([0], 101.0)
    engine.record([0], 102.0, as_of=[100.0], changed=[True])
    assert heard(engine, 0, 102.0) == 1
    engine.record([0], 103.0, changed=[True])
    assert heard(engine, 0, 103.0) == 0


@pytest.mark.parametrize("outcome", [{}, {"gone": True}])
def test_a_copy_of_which_nothing_is_learned_ends_its_signals_too(outcome):
    engine = Engine(1.0)
    engine.add("a.example/", 0.0, fetched_at=0.0)
    engine.signal([0, 0, 0], 50.0)
    engine.record([0], 100.0, **outcome)
    assert (heard(engine, 0, 100.0), engine.explain(0, 100.0).fresh) == (0, 1.0)
    assert engine.pages().change_rate[0] == pytest.approx(float(engine.beliefs.prior.mean))


def test_signals_without_sources_are_only_counted():
    engine = Engine(1.0, sources=0)
    engine.add("a.example/", 0.0, fetched_at=0.0)
    value = engine.scheduler.value([0], 500.0)
    engine.signal([0], 400.0)
    assert engine.scheduler.value([0], 500.0) == value
    assert engine.stats["signals"] == 1


@pytest.mark.parametrize("settings", [{"objective": "harmonic"}, {"policy": "no-signals"}, {"policy": "deadline"}])
def test_signals_are_ignored_where_the_choice_knows_none(settings):
    engine = Engine(1.0, **settings)
    engine.add("a.example/", 0.0, fetched_at=0.0)
    engine.beliefs.belief.signals.gate[0, OPEN] = OPENED
    value = engine.scheduler.value([0], 500.0)
    engine.signal([0], 400.0)
    assert engine.scheduler.value([0], 500.0) == value
    assert engine.explain(0, 500.0).signals == ()
    assert engine.stats["signals"] == 1
