"""Rivals: their rules against plain twins and hand calculation, the policy against its contract, runs against runs."""

import math

import numpy as np
import pytest
from naive.rivals import SYSTEMS
from profiles import examples, few

from recrawl import Pages
from recrawl.errors import ParameterError
from recrawl.schedule.testing.contract import CHECKS, check_policy
from recrawl.simulate import Signals, Trace, contender, simulate
from recrawl.simulate.rivals import adaptive, feeds, intervals
from recrawl.simulate.rivals.policy import DuePolicy
from recrawl.simulate.rivals.registry import _RULES, rival, rival_names
from recrawl.simulate.run import run as run_module
from recrawl.simulate.run.policies import names
from recrawl.simulate.run.run import Contender
from recrawl.simulate.run.runners import PlainRunner, RivalRunner, runner_of
from recrawl.simulate.tally import Judge

pytestmark = pytest.mark.slow

HOUR, MINUTE = 1 / 24, 1 / 1440
SEES_ONLY_CHANGES = ["fixed", "nutch", "stormcrawler", "commoncrawl-news", "heritrix", "infomesh", "norconex"]


def one_page(name, day=1.0, start=0.0, importance=1.0, **options):
    return DuePolicy(_RULES[name](day=day, **options), Pages([1.0], importance), start=start)


def dues(policy, *outcomes, now=0.0):
    """Crawl a page exactly when it is due, with these outcomes (None: failed); the intervals."""
    found = []
    for outcome in outcomes:
        policy.record([0], now, changed=[bool(outcome)], failed=[outcome is None])
        found.append(float(policy.due_at[0]) - now)
        now = float(policy.due_at[0])
    return found


def poisson(n, end, rng, rate=1.0, created_at=0.0, deleted_at=np.inf, **columns):
    """Pages that change at a rate while they exist."""
    begin, last = np.broadcast_to(created_at, n), np.minimum(np.broadcast_to(deleted_at, n), end)
    count = rng.poisson(rate * (last - begin))
    changed_at = np.concatenate([np.sort(rng.uniform(*life)) for life in zip(begin, last, count, strict=True)])
    offset = np.concatenate([[0], np.cumsum(count)])
    life = {"created_at": begin, "deleted_at": last}
    return Trace(0.0, end, offset=offset, changed_at=changed_at, **life, **columns)


@pytest.mark.parametrize("cap", few(["score", "due", "oldest"], 1))
@pytest.mark.parametrize("name", rival_names())
def test_contract(name, cap):
    def factory(pages, start):
        return DuePolicy(_RULES[name](day=1.0), pages, cap=cap, start=start, lease=300.0)

    check_policy(factory, names=CHECKS)


@pytest.mark.slow
@pytest.mark.parametrize(("day", "start"), [(1.0, 0.0), (86400.0, 1.7e9)])
@pytest.mark.parametrize("name", SYSTEMS)
def test_rules_equal_plain_twins(name, day, start):
    """Random histories: late or punctual crawls that find a change, find none, or fail."""
    rng = np.random.default_rng(7)
    for _ in range(examples(30, usual=12)):
        importance = float(rng.choice([0.3, 1.0, 4.0, 12.0]))
        policy, twin = one_page(name, day, start, importance), SYSTEMS[name](importance)
        now, chance = start / day, rng.random()
        for _ in range(60):
            changed, failed = bool(rng.random() < chance), bool(rng.random() < 0.05)
            policy.record([0], now * day, changed=[changed], failed=[failed])
            due, expected = policy.due_at[0] / day, twin.crawl(now, changed, failed)
            assert due == pytest.approx(expected, abs=1e-9 if start == 0 else 1e-8, rel=0)
            now = (due if math.isfinite(due) else now + 1.0) + rng.exponential(0.3) * (rng.random() < 0.7)


def test_sitemap_dates_equal_the_plain_twin():
    rng = np.random.default_rng(3)
    for _ in range(20):
        policy, twin = one_page("norconex"), SYSTEMS["norconex"]()
        now = 0.0
        for _ in range(40):
            if rng.random() < 0.5:
                about = now - rng.exponential(1.0)
                policy.signal([0], now, changed_at=[about])
                assert policy.due_at[0] == twin.signal(now, about)
            else:
                policy.record([0], now)
                assert policy.due_at[0] == twin.crawl(now)
            now += rng.exponential(0.7)


def test_nutch_by_hand():
    shown = dues(one_page("nutch"), False, True, False, False)
    assert shown[:2] == pytest.approx([30.0, 24.0])
    assert shown[2] == pytest.approx(33.6 - 0.3 * 24.0)  # 1.4·24, less 0.3 of the time since the change
    elapsed = 24.0 + shown[2]
    assert shown[3] == pytest.approx(max(1.4 * 33.6, elapsed) - 0.3 * elapsed)


def test_nutch_fetches_again_what_would_wait_too_long():
    policy = one_page("nutch", sync=0.0)
    assert dues(policy, False, False, False, False, False) == pytest.approx([30.0, 42.0, 58.8, 82.32, 0.0])
    now = float(policy.due_at[0])
    assert dues(policy, True, True, now=now) == pytest.approx([81.0, 64.8])  # nothing to compare the first with


def test_nutch_retries_and_gives_up():
    assert dues(one_page("nutch"), False, None, None, None, None) == pytest.approx([30.0, 1.0, 1.0, 45.0, 67.5])


def test_stormcrawler_by_hand():
    outcomes = [False, True, True, False, None, True]
    shown = [round(x / MINUTE) for x in dues(one_page("stormcrawler"), *outcomes)]
    assert shown == [1440, 750, 405, 607, 120, 1440]
    assert dues(one_page("stormcrawler"), False, None, None, None)[-1] == math.inf


def test_feed_readers_by_hand():
    every_day = [False] + [True] * 10
    assert dues(one_page("commafeed"), False, True, True)[-1] == pytest.approx(HOUR)
    assert dues(one_page("newsblur", importance=12.0), False)[-1] == pytest.approx(240 * MINUTE * 1.125)
    policy = one_page("miniflux")
    for now, changed in enumerate(every_day):
        policy.record([0], now * 0.5, changed=[changed])
    assert policy.due_at[0] - 5.0 == pytest.approx(0.5)


def test_yacy_by_hand():
    """Loaded at 10.25, changed at 4.25: fresh until 13.25, which is before yesterday's start from day 15 on."""
    trace = Trace(0.0, 20.0, offset=[0, 1], changed_at=[4.25], created_at=[0.25])
    run = simulate(Contender("yacy", lambda *_: DuePolicy(intervals.yacy(day=1.0))), trace, None, bins=0)
    # loaded at 0.25 (fresh until 0.25), 2 (2.875), 4 (5.875), 7 (changed at 4.25: 8.375), 10 (12.875), 14 (18.875)
    assert run.requests == 5
    assert run.staleness_unweighted == pytest.approx((7 - 4.25) / 19.75)
    policy = one_page("yacy", start=4.25)
    policy.record([0], 4.25)
    policy.record([0], 10.25)
    assert policy.due_at[0] == 15.0


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("seed", few(range(3), 2))
@pytest.mark.parametrize("cap", ["due", "score", "oldest"])
@pytest.mark.parametrize("name", SEES_ONLY_CHANGES)
def test_compiled_runs_equal_driving_by_protocol(name, cap, seed):
    rng = np.random.default_rng(seed)
    n, end = 12, 40.0
    created = np.sort(np.where(rng.random(n) < 0.5, 0.0, rng.uniform(0, end / 2, n)))
    deleted = np.where(rng.random(n) < 0.7, end, created + rng.uniform(0.1, end / 2, n))
    page = rng.integers(0, n, 60)
    at = rng.uniform(created[page], np.minimum(deleted[page], end))
    dates = np.where(rng.random(60) < 0.7, at - rng.exponential(0.3, 60), np.inf)
    signals = Signals.of(at, page, changed_at=dates)
    columns = {"created_at": created, "deleted_at": deleted, "importance": rng.uniform(0.1, 2.0, n)}
    trace = poisson(n, end, rng, signals=signals, **columns)
    who = rival(name, cap, day=0.2)
    for budget in (None, 7.0, [(0.0, 2.0), (10.0, 0.0), (20.0, 9.0)]):
        fast = simulate(who, trace, budget)
        plain = simulate(_by_protocol(who), trace, budget)
        assert fast.crawls.tolist() == plain.crawls.tolist()
        assert fast.staleness == plain.staleness


class Slow(DuePolicy):
    """A rival that is driven by its protocol."""


def _by_protocol(who):
    def make(trace, budget, rng):
        made = who.make(trace, budget, rng)
        return Slow(made.rule, start=trace.start, lease=1e-9)

    return Contender(who.name, make)


@pytest.fixture
def plainly(monkeypatch):
    """Drive policies of the class Slow by their protocol."""

    def choose(policy, trace, judge):
        return (PlainRunner if isinstance(policy, Slow) else RivalRunner)(policy, trace, judge)

    monkeypatch.setattr(run_module, "runner_of", choose)


def test_runners_are_what_they_should_be():
    trace = poisson(3, 10.0, np.random.default_rng(1))
    assert isinstance(runner_of(DuePolicy(intervals.fixed()), trace, Judge(trace)), RivalRunner)


def test_own_demand_is_the_rule_and_a_cap_cuts_it():
    trace = poisson(50, 300.0, np.random.default_rng(2))
    free = simulate(rival("fixed", day=1.0), trace, None)
    assert free.requests == 50 * 9  # due every 30 days; the day the trace ends is not crawled
    capped = simulate(rival("fixed", day=1.0), trace, 0.5)
    assert capped.requests <= 150
    generous = simulate(rival("fixed", day=1.0), trace, 500.0)
    assert generous.requests == pytest.approx(free.requests, abs=50)


def test_the_cap_decides_who_starves():
    rng = np.random.default_rng(5)
    trace = poisson(60, 400.0, rng, importance=np.linspace(0.1, 2.0, 60))
    by_score = simulate(rival("nutch:score", day=1.0), trace, 1.0).crawls
    by_due = simulate(rival("nutch:due", day=1.0), trace, 1.0).crawls
    assert by_score[:15].sum() < 0.3 * by_score[-15:].sum()
    assert 0.7 < by_due[:15].sum() / by_due[-15:].sum() < 1.4
    assert simulate(rival("nutch", day=1.0), trace, 1.0).crawls.tolist() == by_score.tolist()


def test_feed_readers_see_the_dates_of_items():
    """A feed with an item a day: by their true dates a poll a day, whatever the poll missed."""
    trace = Trace(0.0, 100.0, offset=[0, 99], changed_at=np.arange(1.0, 100.0) + 0.01)
    assert simulate(rival("miniflux", day=1.0), trace, None, count_from=20.0).requests == pytest.approx(80, abs=4)
    polls = simulate(rival("commafeed", day=1.0), trace, None, count_from=20.0).requests
    assert polls == pytest.approx(80 * 24, abs=5)


def test_newsblur_polls_what_is_read():
    trace = poisson(2, 200.0, np.random.default_rng(4), rate=2.0, importance=[0.5, 20.0])
    crawls = simulate(rival("newsblur", day=1.0), trace, None, count_from=100.0).crawls
    assert crawls[0] == pytest.approx(100 / (45 * MINUTE * 1.125), rel=0.02)
    assert crawls[1] == pytest.approx(100 / (6 * MINUTE * 1.125), rel=0.02)


def test_sitemap_gate_fetches_only_what_changed():
    rng = np.random.default_rng(6)
    bare = poisson(20, 100.0, rng, rate=0.1)
    page = np.repeat(np.arange(20), bare.n_changes)
    dates = Signals.of(bare.changed_at, page, changed_at=bare.changed_at)
    trace = Trace(0.0, 100.0, offset=bare.offset, changed_at=bare.changed_at, signals=dates)
    gated = simulate(rival("norconex", day=1.0), trace, None, count_from=50.0)
    blind = simulate(rival("norconex", day=1.0), bare, None, count_from=50.0)
    assert gated.requests < 0.2 * blind.requests
    assert gated.staleness < 1.05 * blind.staleness


def test_registry():
    assert set(rival_names()) == set(SYSTEMS) <= set(names())
    assert contender("yacy:due").name == "yacy:due"
    with pytest.raises(ParameterError, match="nutchh"):
        rival("nutchh")
    with pytest.raises(ParameterError, match="alphabetical"):
        rival("nutch:alphabetical")
    with pytest.raises(ParameterError, match="budget is inf"):
        simulate(contender("uniform"), poisson(3, 10.0, np.random.default_rng(1)), None)
    with pytest.raises(ParameterError, match="cap"):
        DuePolicy(adaptive.nutch(), cap="best")
    assert feeds.miniflux().n_dates > 1
