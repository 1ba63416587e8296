"""Worlds have the rates, signals, bursts, seasons and groups that they were asked for."""

import numpy as np
import pytest

from recrawl.errors import ParameterError
from recrawl.model import Pages
from recrawl.simulate import World, bing_like, bing_signals, uniform_pages, world, world_names
from recrawl.simulate.worlds.events import Events
from recrawl.simulate.worlds.processes import Jumping, Renewal, SelfExciting, Wandering
from recrawl.simulate.worlds.rhythms import Seasonal, Together

pytestmark = pytest.mark.slow

RATES = np.linspace(0.05, 3.0, 300)


def drawn(process, rates=RATES, horizon=400.0, seed=1, start=0.0):
    return World("test", Pages(rates), process).draw(horizon, np.random.default_rng(seed), start=start)


def dispersion(trace, width):
    """Variance over mean of the changes in windows of a width, over all pages together."""
    edges = np.arange(trace.start, trace.end + 1e-9, width)
    counts = np.stack([np.histogram(events, edges)[0] for events in by_page(trace)])
    return float(counts.var(axis=1, ddof=1).sum() / counts.mean(axis=1).sum())


def by_page(trace):
    return np.split(trace.changed_at, trace.offset[1:-1])


PROCESSES = {
    "drifting": Jumping(every=5.0),
    "wandering": Wandering(),
    "bursty": Renewal(),
    "pareto": Renewal("pareto", 2.5),
    "self-exciting": SelfExciting(),
    "seasonal": Seasonal(),
    "together": Together(),
}


@pytest.mark.parametrize("name", [name for name in world_names() if not name.startswith("shop")])
def test_every_world_draws_sound_traces(name):
    traces = [world(name, 40, requests=0.001).draw(30.0, np.random.default_rng(3), start=100.0) for _ in range(2)]
    one, same = traces
    assert (one.start, one.end, len(one), one.name) == (100.0, 130.0, 40, name)
    for at in (one.changed_at, one.requested_at):
        assert ((at >= 100.0) & (at <= 130.0)).all()
    assert all((np.diff(events) >= 0).all() for events in by_page(one))
    assert one.offset[0] == 0
    assert one.offset[-1] == len(one.changed_at)
    assert one.pages is one.true_pages
    assert np.array_equal(one.changed_at, same.changed_at)
    assert np.array_equal(one.requested_at, same.requested_at)
    other = world(name, 40).draw(30.0, np.random.default_rng(4), start=100.0)
    assert not np.array_equal(one.true_pages.importance, other.true_pages.importance)


@pytest.mark.parametrize("name", PROCESSES)
def test_mean_rates_are_the_true_ones(name):
    totals = []
    for seed in range(20):
        trace = drawn(PROCESSES[name], seed=seed)
        totals.append([trace.n_changes.sum(), trace.true_pages.change_rate.sum() * 400.0])
    seen, true = np.array(totals, float).T
    assert seen.mean() == pytest.approx(true.mean(), rel=0.015)
    if name != "wandering":
        assert true.mean() == pytest.approx(RATES.sum() * 400.0, rel=0.01)
    fast, slow = RATES > 2, RATES < 0.5
    for part in (fast, slow):  # not only in total
        assert trace.n_changes[part].sum() == pytest.approx(trace.true_pages.change_rate[part].sum() * 400.0, rel=0.12)


def test_poisson_changes_are_poisson():
    trace = world("poisson", pages=Pages(RATES)).draw(400.0, np.random.default_rng(1))
    assert np.all(np.abs(trace.n_changes - 400 * RATES) <= 5.5 * np.sqrt(400 * RATES))
    assert dispersion(trace, 1.0) == pytest.approx(1.0, abs=0.03)
    for events, rate in zip(by_page(trace), RATES, strict=True):
        gaps = np.diff(events)
        assert gaps.std() / gaps.mean() == pytest.approx(1.0, abs=4.5 / np.sqrt(400 * rate))


@pytest.mark.parametrize("name", ["drifting", "wandering", "bursty", "pareto", "self-exciting"])
def test_bursts_and_drift_are_overdispersed(name):
    assert dispersion(drawn(PROCESSES[name]), 10.0) > 1.3


def test_self_exciting_dispersion_is_that_of_the_theory():
    trace = drawn(SelfExciting(offspring=0.6, memory=0.1), rates=np.ones(400), horizon=1000.0)
    for width in (1.0, 10.0):
        decay = (1 - 0.6) / 0.1 * width
        expected = 6.25 - 5.25 * -np.expm1(-decay) / decay
        assert dispersion(trace, width) == pytest.approx(expected, rel=0.04)
    follows = np.concatenate([np.diff(events) for events in by_page(trace)])
    assert (follows < 0.1).mean() > 0.4


@pytest.mark.parametrize(("gaps", "shape"), [("lognormal", 1.2), ("pareto", 2.2)])
def test_renewal_gaps(gaps, shape):
    trace = drawn(Renewal(gaps, shape), rates=np.full(300, 2.0), horizon=500.0)
    follows = np.concatenate([np.diff(events) for events in by_page(trace)])
    assert follows.mean() == pytest.approx(0.5, rel=0.03)
    if gaps == "lognormal":
        assert np.log(follows).std() == pytest.approx(shape, rel=0.02)
    else:
        assert np.log1p(follows / (0.5 * (shape - 1))).mean() == pytest.approx(1 / shape, rel=0.03)
    early = (trace.changed_at < 5).sum()  # in equilibrium from the start on
    assert early == pytest.approx(300 * 2 * 5, rel=0.1)


def test_seasons_follow_hours_and_weekdays():
    hours = tuple(float(8 <= h < 18) for h in range(24))
    weekdays = (1.0, 2.0, 1.0, 1.0, 1.0, 0.0, 0.5)
    trace = drawn(Seasonal(hours, weekdays), rates=np.full(200, 5.0), horizon=70.0)
    hour, weekday = (trace.changed_at * 24).astype(int) % 24, trace.changed_at.astype(int) % 7
    assert set(hour.tolist()) == set(range(8, 18))
    share = np.bincount(weekday, minlength=7) / len(weekday)
    assert share == pytest.approx(np.array(weekdays) / 6.5, abs=0.01)
    assert np.bincount(hour)[8:] / len(hour) == pytest.approx(0.1, abs=0.01)
    assert trace.true_pages.change_rate == pytest.approx(5.0)
    weekend = drawn(Seasonal(hours, weekdays), rates=np.full(200, 5.0), horizon=1.0, start=5.0)
    assert len(weekend.changed_at) == 0
    assert weekend.true_pages.change_rate.max() == pytest.approx(0, abs=1e-12)
    before = drawn(Seasonal(hours, weekdays), rates=np.full(200, 5.0), horizon=7.0, start=-9.3)
    assert set((before.changed_at * 24 // 1).astype(int) % 24) == set(range(8, 18))


def test_groups_change_together():
    trace = drawn(Together(size=7, shared=0.8, touch=0.5), rates=np.linspace(0.5, 1.0, 50), horizon=2000.0)
    assert trace.group.tolist() == [i // 7 for i in range(50)]
    assert len(set(trace.url.tolist())) == 50
    times = [set(events.tolist()) for events in by_page(trace)]
    for page, other, chance in [(0, 6, 0.5), (47, 48, 0.5), (0, 7, 0.0)]:
        touched = len(times[page] & times[other]) / len(times[page])
        assert touched == pytest.approx(0.8 * chance, abs=0.05)


def test_jumps_and_walks_move_the_rates():
    rates = np.ones(400)
    for process in (Jumping(every=20.0, spread=1.0), Wandering(every=1.0, spread=0.2)):
        trace = drawn(process, rates=rates, horizon=100.0)
        halves = np.array([[(e < 20).sum(), (e >= 80).sum()] for e in by_page(trace)])
        assert halves.var(axis=0)[1] > 2 * halves.mean()  # Poisson of one rate: equal to the mean
    assert (trace.true_pages.change_rate > 0.1).all()
    assert (trace.true_pages.change_rate < 10).all()


def test_signals_have_the_recall_and_false_rate_asked_for():
    n = 200
    recall = np.tile([[0.2, 0.9]], (n, 1))
    pages = Pages(np.linspace(0.5, 2, n), recall=recall, false_rate=np.tile([[0.5, 0.05]], (n, 1)))
    trace = World("two", pages).draw(200.0, np.random.default_rng(2))
    changed = set(zip(np.repeat(np.arange(n), trace.n_changes).tolist(), trace.changed_at.tolist(), strict=True))
    at, page, source, about = trace.signals
    assert (np.diff(at) >= 0).all()
    assert np.isinf(about).all()
    true = np.array([pair in changed for pair in zip(page.tolist(), at.tolist(), strict=True)])
    for k in range(2):
        assert (true & (source == k)).sum() / len(changed) == pytest.approx(recall[0, k], abs=0.01)
        assert (~true & (source == k)).sum() / (n * 200) == pytest.approx(pages.false_rate[0, k], rel=0.1)
        precision = true[source == k].mean()
        expected = (pages.precision * pages.signal_rate)[:, k].sum() / pages.signal_rate[:, k].sum()
        assert precision == pytest.approx(expected, abs=0.01)
    both = set(zip(page[true].tolist(), at[true].tolist(), strict=True))
    assert 1 - len(both) / len(changed) == pytest.approx(0.8 * 0.1, abs=0.01)  # sources are independent


@pytest.mark.parametrize("delay", [lambda rng, n: rng.poisson(6, n) / 10, [0.5, 0.7], 0.6])
def test_delays(delay):
    trace = World("late", Pages([1.0], recall=1.0), delay=np.atleast_1d(delay) if delay == 0.6 else delay).draw(
        2000.0, np.random.default_rng(2)
    )
    assert trace.signals.at.max() <= trace.end
    assert len(trace.signals.at) >= trace.n_changes[0] - 10
    late = trace.signals.at.mean() - trace.changed_at[: len(trace.signals.at)].mean()
    assert late == pytest.approx(0.6, abs=0.05)


def test_requests_come_by_importance():
    trace = World("read", Pages([0.1, 0.1], importance=[1.0, 3.0]), requests=2.0).draw(1000.0, np.random.default_rng(2))
    assert np.diff(trace.request_offset) == pytest.approx([2000, 6000], rel=0.06)
    assert trace.pages.importance.tolist() == [1.0, 3.0]


def test_uniform_pages():
    rng = np.random.default_rng(1)
    noisy, proof, none = (uniform_pages(20_000, rng, kind) for kind in ("noisy", "proof", "none"))
    for pages in (noisy, proof, none):
        assert pages.change_rate.mean() == pytest.approx(0.5, abs=0.01)
        assert pages.importance.var() == pytest.approx(1 / 12, rel=0.03)
    assert noisy.recall.var() == pytest.approx(0.25 / 1.5, rel=0.03)
    assert noisy.false_rate.mean() == pytest.approx(0.35, abs=0.01)
    assert (noisy.false_rate.min() >= 0.1, noisy.false_rate.max() <= 0.6) == (True, True)
    assert proof.recall.mean() == pytest.approx(0.5, abs=0.01)
    assert (proof.false_rate.max(), none.recall.max()) == (0.0, 0.0)


def test_bing_pages():
    pages = bing_signals(20_000, np.random.default_rng(1), least_precision=1e-6)
    assert pages.recall.mean() == pytest.approx(0.8 / 2.4, abs=0.01)
    assert pages.precision.mean() == pytest.approx(0.6 / 3.6, abs=0.01)
    best = pages.recall > np.quantile(pages.recall, 0.95)
    assert pages.precision[best].min() > pages.precision[~best].max()
    plain = bing_like(20_000, np.random.default_rng(1))
    assert pages.change_rate.tolist() == plain.change_rate.tolist()
    assert (best & (plain.recall == 1)).sum() == (plain.recall == 1).sum()


@pytest.mark.parametrize(
    ("arguments", "settings", "word"),
    [
        (("nowhere",), {}, "is not one of poisson"),
        (("bursty",), {"shapes": 2}, "shapes is not a setting of the world bursty"),
        (("poisson",), {"every": 2}, "every is not a setting"),
        (("bursty",), {"gaps": "normal"}, "gaps"),
        (("bursty",), {"gaps": "pareto", "shape": 1.0}, "shape is 1"),
        (("self-exciting",), {"offspring": 1.0}, "offspring is 1"),
        (("drifting",), {"every": 0.0}, "every is 0"),
        (("wandering",), {"reach": 1.0}, "reach is 1"),
        (("seasonal",), {"hours": (1.0,)}, "hours: 24 weights"),
        (("seasonal",), {"weekdays": (0.0,) * 7}, "weekdays: 7 weights"),
        (("together",), {"size": 0}, "size is 0"),
        (("together",), {"shared": 1.5}, "shared is 1.5"),
        (("together",), {"touch": 0.0}, "touch is 0"),
        (("uniform", 0), {}, "n_pages is 0"),
        (("uniform",), {"signals": "loud"}, "signals 'loud'"),
        (("bing",), {"signals": "noisy"}, "has its own"),
        (("uniform",), {"population": "mars"}, "population 'mars'"),
        (("uniform",), {"pages": Pages([1.0]), "signals": "noisy"}, "pages are given"),
        (("uniform",), {"requests": -1.0}, "requests is -1"),
    ],
)
def test_bad_worlds_are_refused(arguments, settings, word):
    with pytest.raises(ParameterError, match=word):
        world(*arguments, **settings)


def test_bad_draws_are_refused():
    rng = np.random.default_rng(1)
    with pytest.raises(ParameterError, match="horizon is 0"):
        world("uniform").draw(0.0, rng)
    with pytest.raises(ParameterError, match="delay"):
        World("early", Pages([5.0], recall=1.0), delay=[-1.0]).draw(10.0, rng)
    with pytest.raises(ParameterError, match="least_precision"):
        bing_signals(10, rng, least_precision=0.0)


def test_events_know_their_pages():
    events = Events.of(np.array([2, 0, 2]), np.array([3.0, 1.0, 2.0]), 4)
    assert events.offset.tolist() == [0, 1, 1, 3, 3]
    assert events.page.tolist() == [0, 2, 2]
