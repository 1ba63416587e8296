"""The pacer: no window with more than its share, no drift, no credit lost or gained."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.schedule import integral, worst_window
from profiles import examples

from recrawl.errors import ParameterError
from recrawl.schedule import Pacer

EPOCH = 1.7e9
# Steps of time and budgets that doubles hold exactly, so that the twin's fractions mean the same instants.
STEP = st.integers(-8, 64).map(lambda k: k / 64)
BUDGET = st.sampled_from([0.0, 0.5, 1.0, 2.0, 4.0, 16.0])
EVENTS = st.lists(st.tuples(STEP, st.one_of(st.none(), BUDGET)), min_size=1, max_size=60)


def drive(pacer, start, events):
    """Starts, and the budgets with their times, of a pacer that is asked and changed at the given steps."""
    clock = now = start
    starts, times, budgets = [], [Fraction(start)], [Fraction(pacer.budget)]
    for step, budget in events:
        clock += step
        now = max(now, clock)
        if budget is not None:
            pacer.set_budget(budget, clock)
            times.append(Fraction(now))
            budgets.append(Fraction(budget))
        starts += [Fraction(now)] * pacer.due(clock)
    return starts, times, budgets


@settings(deadline=None, max_examples=examples(150))
@given(events=EVENTS, budget=BUDGET, start=st.sampled_from([0.0, EPOCH]), catch_up=st.sampled_from([0.0, 0.25, 3.0]))
def test_no_window_holds_more_than_its_share(events, budget, start, catch_up):
    starts, times, budgets = drive(Pacer(budget, start, catch_up=catch_up), start, events)
    assert worst_window(starts, times, budgets, Fraction(catch_up)) <= 1 + Fraction(1, 10**5)


@settings(deadline=None, max_examples=examples(100))
@given(events=EVENTS, budget=BUDGET, start=st.sampled_from([0.0, EPOCH]))
def test_no_credit_is_lost_or_gained_over_budget_changes(events, budget, start):
    pacer = Pacer(budget, start, catch_up=1e6)
    starts, times, budgets = drive(pacer, start, events)
    now = max(times[-1], Fraction(pacer.state()["now"]))
    earned = integral(times, budgets, Fraction(start), now) + 1
    lapsed = Fraction(pacer.stats["lapsed"])
    assert len(starts) <= earned + Fraction(1, 10**5)
    assert len(starts) >= earned - lapsed - 1 - Fraction(1, 10**5)


@pytest.mark.parametrize("start", [0.0, EPOCH, -EPOCH])
@pytest.mark.parametrize("budget", [0.3, 7.0, 100.0, 1234.5])
def test_a_driver_that_sleeps_on_next_at_gets_every_tick_of_the_grid(budget, start):
    pacer = Pacer(budget, start)
    now = start
    for j in range(3000):
        assert now == start + j / budget
        assert pacer.due(now) == 1
        assert pacer.due(now) == 0
        now = pacer.next_at(now)
    assert pacer.stats == {"started": 3000, "lapsed": 0.0, "time_back": 0}


@pytest.mark.parametrize("step", [0.1, 1 / 3, 1 / 7])
def test_ticks_rounded_in_another_way_are_the_same_ticks(step):
    pacer = Pacer(1 / step, EPOCH)
    assert sum(pacer.due(EPOCH + j * step) for j in range(20000)) == 20000


@pytest.mark.parametrize("budget", [3.3, 10.0, 997.0])
def test_nothing_drifts_over_a_hundred_million_ticks(budget):
    pacer = Pacer(budget, EPOCH, catch_up=1e9)
    pacer._count = 10**8 - 1000  # as if so many had been started since the anchor
    now = pacer.next_at(EPOCH)
    for j in range(10**8 - 1000, 10**8 + 1000):
        exact = Fraction(EPOCH) + j / Fraction(budget)
        assert abs(Fraction(now) - exact) < Fraction(3, 10**7)
        assert pacer.due(now) == 1
        now = pacer.next_at(now)


def test_a_hundred_million_crawls_asked_for_in_bulk_are_all_there():
    pacer = Pacer(1000.0, EPOCH, catch_up=10.0)
    assert sum(pacer.due(EPOCH + 2.5 * j) for j in range(40001)) == 10**8 + 1


@pytest.mark.parametrize(("catch_up", "expected"), [(0.0, 1), (2.0, 21), (1000.0, 1000)])
def test_what_a_stall_is_made_up_for(catch_up, expected):
    pacer = Pacer(10.0, 0.0, catch_up=catch_up)
    assert pacer.due(0.0) == 1
    assert pacer.due(100.0) == expected
    assert pacer.stats["lapsed"] == pytest.approx(1000 - expected)
    assert pacer.next_at(100.0) == pytest.approx(100.1)


def test_what_is_not_taken_stays_due_within_catch_up():
    pacer = Pacer(10.0, 0.0, catch_up=1.0)
    assert pacer.due(0.5, most=2) == 2
    assert pacer.due(0.5, most=0) == 0
    assert pacer.next_at(0.5) == 0.5
    assert pacer.due(0.5) == 4


def test_time_going_back_stands_still():
    pacer = Pacer(10.0, 5.0)
    assert pacer.due(5.0) == 1
    assert pacer.due(1.0) == 0
    assert pacer.next_at(1.0) == 5.1
    assert pacer.stats["time_back"] == 1


def test_a_budget_of_zero_pauses_and_keeps_the_share_earned():
    pacer = Pacer(1.0, 0.0)
    assert pacer.due(0.0) == 1
    pacer.set_budget(0.0, 0.75)
    assert pacer.next_at(0.75) == float("inf")
    assert pacer.due(1000.0) == 0
    pacer.set_budget(1.0, 2000.0)
    assert pacer.next_at(2000.0) == 2000.25


def test_setting_the_budget_takes_effect_at_the_last_time_told():
    pacer = Pacer(1.0, 0.0)
    pacer.due(0.5)
    pacer.budget = 2.0
    assert pacer.budget == 2.0
    assert pacer.next_at(0.5) == 1.0


@settings(deadline=None, max_examples=examples(50))
@given(before=EVENTS, after=EVENTS, budget=BUDGET, catch_up=st.sampled_from([0.0, 1.0]))
def test_a_restored_pacer_goes_on(before, after, budget, catch_up):
    pacer = Pacer(budget, EPOCH, catch_up=catch_up)
    drive(pacer, EPOCH, before)
    restored = Pacer.restore(pacer.state())
    now = pacer.state()["now"]
    assert drive(restored, now, after) == drive(pacer, now, after)
    assert restored.state() == pacer.state()


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf"), "much"])
def test_wrong_use_raises_and_changes_nothing(wrong):
    with pytest.raises(ParameterError, match="budget"):
        Pacer(wrong, 0.0)
    pacer = Pacer(1.0, 0.0)
    before = pacer.state()
    with pytest.raises(ParameterError, match="budget"):
        pacer.budget = wrong
    with pytest.raises(ParameterError, match="now"):
        pacer.due(float("nan"))
    with pytest.raises(ParameterError, match="most"):
        pacer.due(1.0, most=-1)
    assert pacer.state() == before
