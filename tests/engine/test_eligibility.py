"""Why a page may not be picked now: one object knows all reasons."""

import numpy as np
import pytest

from recrawl import Engine
from recrawl.engine.eligibility.eligibility import Reason
from recrawl.errors import ParameterError

DAY = 86400.0


def few_pages(n=4, **settings):
    engine = Engine(10.0 / DAY, **settings)
    engine.add([f"https://a.example/{k}" for k in range(n)], 0.0, fetched_at=0.0)
    return engine


def reasons(engine, page=0, now=DAY):
    return engine.eligibility.reasons(page, now)


def test_a_page_without_a_reason_may_be_picked():
    engine = few_pages()
    assert reasons(engine) == ()
    assert sorted(engine.pick(DAY, 4).tolist()) == [0, 1, 2, 3]
    assert reasons(engine) == (Reason.LEASED,)
    engine.release([0], DAY)
    assert reasons(engine) == ()


def test_the_user_pauses_and_resumes():
    engine = few_pages()
    engine.pause([0, 2])
    assert engine.is_paused([0, 1, 2]).tolist() == [True, False, True]
    assert engine.is_paused([]).tolist() == []
    assert reasons(engine) == (Reason.PAUSED,)
    engine.resume([0])
    assert reasons(engine) == ()
    with pytest.raises(ParameterError):
        engine.is_paused([4])


@pytest.mark.parametrize(("outcome", "reason"), [("failed", Reason.RETRY), ("gone", Reason.GONE)])
def test_after_a_crawl_that_failed_or_found_nothing_a_page_waits(outcome, reason):
    engine = few_pages()
    (page,) = engine.pick(DAY, 1).tolist()  # any: they are worth the same
    engine.record([page], DAY, **{outcome: True})
    assert reasons(engine, page) == (reason,)
    engine.pause([page])
    assert reasons(engine, page) == (reason, Reason.PAUSED)
    engine.resume([page])
    assert reasons(engine, page) == (reason,)
    until = engine.eligibility.waiting.until(page)
    assert page in engine.pick(until, 4)


def test_a_deferred_page_waits():
    engine = few_pages()
    engine.defer([1], 3 * DAY)
    assert reasons(engine, 1) == (Reason.DEFERRED,)
    assert 1 not in engine.pick(2 * DAY, 4)
    assert 1 in engine.pick(3 * DAY, 4)


def test_pages_of_equal_value_wait_in_a_cohort():
    engine = few_pages(12)
    waiting = [page for page in range(12) if reasons(engine, page) == (Reason.COHORT,)]
    assert len(waiting) == 11
    engine.pause([waiting[0]])
    assert reasons(engine, waiting[0]) == (Reason.PAUSED,)


def test_a_page_waits_for_its_host():
    engine = few_pages(2, host_concurrency=1)
    assert len(engine.pick(DAY, 2)) == 1
    assert {reasons(engine, page) for page in (0, 1)} == {(Reason.LEASED,), (Reason.HOST,)}


def test_reasons_survive_saving():
    engine = few_pages(12)
    engine.pause([0])
    engine.defer([1], 5 * DAY)
    engine.record([2], DAY, failed=True)
    engine.pick(DAY, 1)
    before = [reasons(engine, page) for page in range(12)]
    again = Engine.restore(engine.state())
    assert [reasons(again, page) for page in range(12)] == before
    by_rows = Engine.restore(engine.rows(), DAY)
    for page in range(3):
        assert reasons(by_rows, page) == before[page]
    assert np.array_equal(by_rows.is_paused(by_rows.ids()), engine.is_paused(engine.ids()))


def test_the_explanation_says_why():
    engine = few_pages()
    engine.pause([0])
    engine.defer([1], 3 * DAY)
    assert "paused" in str(engine.explain(0, DAY))
    assert "set aside, tried again in 2 days" in str(engine.explain(1, DAY))


def test_a_state_of_an_earlier_version_is_refused_in_one_line():
    state = few_pages().state()
    del state["clocks"]
    with pytest.raises(ParameterError, match="earlier version") as problem:
        Engine.restore(state)
    assert "\n" not in str(problem.value)
