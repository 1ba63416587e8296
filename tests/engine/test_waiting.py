"""Failures back off and come back; pages that are gone are looked for rarely; pauses are the user's."""

import math

import pytest

from recrawl import Engine

DAY = 86400.0
SOON = 1e-3


def alone(**settings):
    """An engine with one page, and the time after its copy was fetched."""
    engine = Engine(1.0, **settings)
    engine.add("a.example/", 0.0, fetched_at=0.0)
    return engine, 1000.0


def comes_back_at(engine, now, at):
    """Whether the page is picked at a time and not before; the next event is known in advance."""
    assert engine.next_at(now) == pytest.approx(at)
    assert engine.pick(at - SOON, 1).tolist() == []
    return engine.pick(at + SOON, 1).tolist() == [0]


def test_a_failed_page_waits_twice_as_long_each_time_up_to_a_week():
    engine, now = alone()
    assert engine.pick(now, 1).tolist() == [0]
    waits = [min(60.0 * 2**k, 7 * DAY) for k in range(17)]
    for k, wait in enumerate(waits):
        engine.record([0], now, failed=[True])
        assert engine.stats["failing"] == 1
        assert f"failed {k + 1} time" in engine.explain(0, now).state
        assert comes_back_at(engine, now, now + wait)
        now += wait + SOON
    assert waits[0] == 60.0
    assert waits[-1] == 7 * DAY


def test_success_ends_the_row_of_failures():
    engine, now = alone()
    for _ in range(5):
        engine.record([0], now, failed=True)
    engine.record([0], now + 3600.0, changed=True)
    assert engine.stats["failing"] == 0
    assert engine.pick(now + 7200.0, 1).tolist() == [0]
    engine.record([0], now + 7200.0, failed=True)
    assert comes_back_at(engine, now + 7200.0, now + 7260.0)


def test_a_success_while_the_page_waits_brings_it_back_at_once():
    engine, now = alone()
    engine.record([0], now, gone=True)
    engine.record([0], now + 5.0, changed=False)
    assert engine.pick(now + 6.0, 1).tolist() == [0]


def test_a_failure_leaves_copy_and_belief_as_they_were():
    engine, now = alone()
    before = engine.pages()
    engine.record([0], now, failed=True, changed=True)
    assert engine.explain(0, now).fetched_at == 0.0
    assert engine.pages().change_rate == before.change_rate
    assert engine.explain(0, now).n_crawls == 0


def test_a_page_that_is_gone_is_looked_for_rarely_and_becomes_normal_when_found():
    engine, now = alone()
    for days in (30, 60, 120, 240, 365, 365):
        engine.record([0], now, gone=[True])
        assert engine.stats["away"] == 1
        assert engine.explain(0, now).state.startswith("gone")
        assert comes_back_at(engine, now, now + days * DAY)
        now += days * DAY + SOON
    engine.record([0], now, changed=True)
    assert engine.stats["away"] == 0
    assert engine.pick(now + 60.0, 1).tolist() == [0]
    engine.record([0], now + 60.0, gone=True)
    assert comes_back_at(engine, now + 60.0, now + 60.0 + 30 * DAY)


def test_a_day_can_be_any_unit():
    engine, now = alone(day=1.0, lease=0.01)
    engine.record([0], now, gone=True)
    assert comes_back_at(engine, now, now + 30.0)


@pytest.mark.parametrize("first", ["pause", "fail"])
def test_what_the_user_paused_is_the_users_to_resume(first):
    engine, now = alone()
    engine.pick(now, 1)
    steps = [lambda: engine.pause([0]), lambda: engine.record([0], now, failed=True)]
    for step in steps if first == "pause" else steps[::-1]:
        step()
    assert engine.pick(now + DAY, 1).tolist() == []
    engine.resume([0])
    assert engine.pick(now + DAY, 1).tolist() == [0]


def test_resume_does_not_shorten_the_wait_after_a_failure():
    engine, now = alone()
    engine.record([0], now, failed=True)
    engine.pause([0])
    engine.resume([0])
    assert comes_back_at(engine, now, now + 60.0)


def test_removed_while_leased_or_waiting():
    engine, now = alone()
    engine.add("b.example/", now, fetched_at=now)
    engine.pick(now, 1)
    engine.record([1], now, failed=True)
    engine.remove([0, 1])
    assert engine.next_at(now) == math.inf
    assert engine.pick(now + DAY, 9).tolist() == []
    engine.scheduler._check()


def test_an_outdated_failure_is_no_failure():
    engine, now = alone()
    engine.record([0], now, changed=False)
    engine.record([0], now + 1.0, as_of=[now - 5.0], failed=[True])
    assert engine.stats["failing"] == 0
