"""Delays of signals: learned from outcomes as the twin does, found where they are, and not used where they are not."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.delays import FOLLOW, Judge, Outcome
from numpy.typing import NDArray

from recrawl._compile.plain import plain
from recrawl.engine import Engine
from recrawl.engine.signals.arrays import row_of
from recrawl.engine.signals.delays import (
    EVIDENCE,
    SHARE,
    WITHIN,
    credit_at,
    first_delays,
    grid,
    learn_delays,
    median_delay,
)

from .test_signal_gates import World

Array = NDArray[np.float64]
DELAYS = grid(1e-4 * 2.0 ** np.arange(32.0))

chances = st.floats(0.001, 1.0)
outcomes = st.builds(
    lambda age, silent, share, changed: Outcome(age, silent, silent * share, changed),
    st.floats(0.0, 1e5) | st.just(math.inf),
    chances,
    st.floats(0.0, 0.993),
    st.booleans(),
)


def learned(history: list[Outcome]) -> tuple[Array, Array]:
    """(source, host) after outcomes on one host."""
    source, host = first_delays(len(DELAYS)), first_delays(len(DELAYS))
    for one in history:
        learn_delays(DELAYS, source, host, one.age, (one.silent, one.taken), one.changed)
    return source, host


@given(st.lists(outcomes, max_size=10), st.floats(0.0, 1e5))
def test_learning_equals_the_twin(history: list[Outcome], age: float) -> None:
    source, host = learned(history)
    all_hosts, one_host = Judge(DELAYS.tolist(), 0.0), Judge(DELAYS.tolist(), FOLLOW)
    for one in history:
        all_hosts.learn(one, all_hosts.shares)
        one_host.learn(one, all_hosts.shares)
    for found, twin in ((source, all_hosts), (host, one_host)):
        np.testing.assert_allclose(found[EVIDENCE], twin.evidence, atol=1e-9)
        np.testing.assert_allclose(found[WITHIN], twin.sums(), rtol=1e-9)
        np.testing.assert_allclose(found[SHARE], twin.shares, rtol=1e-7)
    wanted = (one_host if history else all_hosts).mean_credit(age)
    assert credit_at(DELAYS, source, host, age) == pytest.approx(wanted, rel=1e-7)


@given(st.lists(outcomes, max_size=30), st.lists(st.floats(0.0, 1e5), min_size=2, max_size=6))
def test_credit_grows_with_age_and_a_known_time_has_full_credit(history: list[Outcome], ages: list[float]) -> None:
    source, host = learned(history)
    credits_ = [credit_at(DELAYS, source, host, age) for age in sorted(ages)]
    assert all(a <= b * (1.0 + 1e-12) for a, b in itertools.pairwise(credits_))
    assert credits_[0] >= 0.0
    assert credit_at(DELAYS, source, host, math.inf) == 1.0
    assert host[SHARE].sum() == pytest.approx(1.0)
    assert (host[WITHIN] <= host[WITHIN, 0]).all()


def world(rng: np.random.Generator, n: int, delay: float, precision: float) -> list[Outcome]:
    """Crawls after signals that are true by the precision, and then tell of a change after the copy by F(age).

    What is known of the precision is that of all signals together.
    """
    ages = rng.exponential(2.0, n)
    heard = np.ones(n) if delay == 0 else -np.expm1(-ages / delay)
    silent = np.exp(-0.1 * (ages + rng.exponential(1.0, n)))
    changed = (rng.random(n) < precision * heard) | (rng.random(n) >= silent)
    taken = silent * precision * heard.mean()
    columns = (column.tolist() for column in (ages, silent, taken, changed))
    return [Outcome(*each) for each in zip(*columns, strict=True)]


@pytest.mark.parametrize("delay", [0.3, 1.2, 4.9])
def test_a_delay_is_found(delay: float) -> None:
    """The mean age is 2: delays far beyond it are alike, F grows with the age in proportion."""
    history = world(np.random.default_rng(3), 1500, delay, 0.8)
    source, host = learned(history)
    for found in (source, host):
        assert delay / 4.1 <= median_delay(DELAYS, found) <= (delay * 4.1 if delay < 2.0 else math.inf)
    ages = [one.age for one in history]
    credits_ = np.array([credit_at(DELAYS, source, host, age) for age in ages])
    assert credits_.mean() == pytest.approx(1.0, abs=0.1)
    truth = -np.expm1(-np.array(ages) / delay)
    np.testing.assert_allclose(credits_, truth / truth.mean(), atol=0.35)


@pytest.mark.parametrize("precision", [0.0, 0.5, 0.993])
def test_without_a_delay_every_signal_keeps_its_weight(precision: float) -> None:
    source, host = learned(world(np.random.default_rng(4), 1500, 0.0, precision))
    assert median_delay(DELAYS, host) == 0.0
    for age in (0.0, 0.01, 1.0, 100.0):
        assert credit_at(DELAYS, source, host, age) == pytest.approx(1.0, abs=0.05)


def test_a_delay_that_ends_is_unlearned() -> None:
    rng = np.random.default_rng(5)
    before, after = world(rng, 800, 1.2, 0.9), world(rng, 1200, 0.0, 0.9)
    assert median_delay(DELAYS, learned(before)[1]) > 0.0
    assert median_delay(DELAYS, learned(before + after)[1]) == 0.0


def test_a_new_host_follows_its_source() -> None:
    source, _ = learned(world(np.random.default_rng(6), 800, 1.2, 0.9))
    new = first_delays(len(DELAYS))
    assert credit_at(DELAYS, source, new, 0.1) == credit_at(DELAYS, source, source, 0.1) < 0.5


def late_world() -> World:
    """A source that is trusted, and half of whose signals come two days late: after the next crawl."""
    world = World(30)
    found = np.zeros(30, np.bool_)
    for _ in range(25):
        late, changed = found & (world.rng.random(30) < 0.5), world.rng.random(30) < 0.45
        world.engine.signal(world.pages[late], world.now + 0.1)
        world.engine.signal(world.pages[changed & ~late], world.now + 1.5)
        world.now += 2.0
        world.engine.record(world.pages, world.now, changed=changed)
        found = changed
    return world


@pytest.fixture(scope="module")
def late() -> dict[str, Any]:
    """An engine whose source is trusted and late."""
    world = late_world()
    return {"state": world.engine.state(), "now": world.now}


def credits_of(engine: Engine, page: int, now: float, **dated: Any) -> float:
    engine = Engine.restore(engine.state())
    engine.signal([page], now, **dated)
    b = engine.beliefs.belief.signals
    return float(b.credit[plain(row_of)(b, page), 0])


def test_the_engine_learns_that_signals_right_after_a_crawl_are_late(late: dict[str, Any]) -> None:
    engine, now = Engine.restore(late["state"]), late["now"]
    soon, later, dated = (
        credits_of(engine, 3, now + 0.1),
        credits_of(engine, 3, now + 1.5),
        credits_of(engine, 3, now + 0.1, changed_at=[now + 0.05]),
    )
    assert soon < 0.5 < later
    assert dated == 1.0
    values = []
    for options in ({}, {"changed_at": [now + 0.05]}):
        one = Engine.restore(late["state"])
        one.signal([3], now + 0.1, **options)
        one.scheduler._check()
        values.append(float(one.scheduler.value([3], now + 0.2)[0]))
    assert values[0] < 0.7 * values[1]


def test_delays_survive_in_rows(late: dict[str, Any]) -> None:
    engine, now = Engine.restore(late["state"]), late["now"]
    b = engine.beliefs.belief.signals
    assert median_delay(b.delays, b.host_delay[0, 0]) > 0.0
    other = Engine.restore(engine.rows(), now)
    assert credits_of(other, 3, now + 0.1) == pytest.approx(credits_of(engine, 3, now + 0.1), abs=1e-4)
