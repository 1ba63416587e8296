"""Pages with components in a scheduler: values, picks equal to brute force, never late, rows given back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from naive.mixture import mixture
from profiles import examples

from recrawl import Pages, Scheduler
from recrawl.errors import ParameterError
from recrawl.schedule.exact import access
from recrawl.schedule.exact import layout as at

from .machine import SEEDS
from .reads import every_byte
from .test_machine_clocks import Clocked

FEW = settings(
    deadline=None, max_examples=examples(30, usual=6), stateful_step_count=25, suppress_health_check=list(HealthCheck)
)


def drawn(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    """Components of n pages: with and without signals, sure and unsure rates, signals heard or not."""
    c = np.zeros((n, k, 7))
    c[..., 0] = rng.dirichlet(np.ones(k), n)
    c[..., 1] = rng.choice([0.003, 0.05, 0.3, 1.0], (n, k))
    c[..., 2] = rng.choice([0.3, 1.0, 2.0, 40.0, np.inf], (n, k))
    c[..., 3] = rng.choice([0.0, 0.02, 0.5, 3.0], (n, k))
    c[..., 4] = rng.choice([0.0, 0.1, 1.0, 5.0], (n, k))
    c[..., 5] = rng.choice([0.0, 1.0, 2.0], (n, 1)) * rng.integers(0, 2, (n, 1)) * c[..., 4]
    c[..., 6] = rng.random((n, k)) < 0.3
    return c


class Mixed(Clocked):
    """Components come, change and go; clocks jump; pages without components have signals of their own."""

    sizes = (2, 4, 8, 20)
    most_pages = 30
    largest = 12  # pages that get components at a time
    kinds = 2**32  # of mixtures

    @rule(seed=SEEDS, k=st.integers(0, 3), same=st.booleans())
    def set_components(self, seed, k, same):
        _, ids = self._some(seed, self.largest)
        rng = np.random.default_rng(seed % self.kinds)
        same = same or self.kinds < 10
        given = drawn(rng, 1 if same else len(ids), k) if k else None
        if given is not None and same:
            given = np.broadcast_to(given, (len(ids), k, 7))[0] if len(ids) else given[0]
        self.scheduler.set_components(ids, given)
        each = [[]] * len(ids) if given is None else [given.tolist()] * len(ids) if same else given.tolist()
        for i, components in zip(ids.tolist(), each, strict=True):
            self.twin.pages[i].components = components


@pytest.mark.slow
@pytest.mark.parametrize("differs", [{}, {"hosts": ("a", "b")}, {"options": {"floor": 0.05}}, {"policy": "no-signals"}])
def test_picks_equal_brute_force(differs):
    run_state_machine_as_test(type("Variant", (Mixed,), differs), settings=FEW)


@pytest.mark.slow
def test_many_pages():
    """So many that bands, scans and shrinking happen; few kinds of mixtures, whose values the twin computes once."""
    large = {"sizes": (200, 300, 300, 400), "most_pages": 600, "policy": "no-signals", "largest": 500, "kinds": 3}
    few = settings(FEW, max_examples=4, stateful_step_count=15)
    run_state_machine_as_test(type("Variant", (Mixed,), large), settings=few)


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler(Pages([0.1, 0.2, 0.3, 0.4]))


def test_the_value_is_the_mean_over_components(scheduler):
    rng = np.random.default_rng(3)
    given = drawn(rng, 4, 5)
    scheduler.set_components(range(4), given)
    for time in (0.0, 1e-3, 0.7, 30.0):
        expected = [mixture(c, time) for c in given.tolist()]
        np.testing.assert_allclose(scheduler.value(range(4), time), expected, rtol=1e-8)
    assert (access.components_of(scheduler, np.arange(4))[:, :5] == given).all()


@pytest.mark.parametrize("seed", range(12))
def test_a_page_never_wakes_late_nor_much_too_early(seed):
    rng = np.random.default_rng(seed)
    s = Scheduler(Pages(np.full(20, 0.1), rng.lognormal(0.0, 1.0, 20)))
    s.set_components(range(20), drawn(rng, 20, 4))
    for now in (0.0, 0.01, 2.0, 60.0):
        values = s.value(range(20), now)
        for i, value in enumerate(values.tolist()):
            for level in value + 10.0 ** rng.uniform(-4.0, 2.0, 3):
                for known in (value, -1.0):
                    wake = access.wake_time(s, i, now, level, known)
                    assert wake >= now
                    at_wake = float(s.value([i], min(wake, 1e9))[0])
                    assert at_wake <= level * (1 + 1e-9)
                    assert wake == math.inf or level > 0.01 + 1.2 * value or at_wake >= 0.2 * level


def test_a_fetch_after_the_present(scheduler):
    """What was heard counts before the time of the fetch too."""
    late = scheduler.add(Pages([0.1, 0.1]), 1.0)
    scheduler.set_components(late, [1.0, 0.1, 2.0, 0.5, 1.0, 1.0, 0.0] * np.ones((1, 1)))
    scheduler._check()
    assert set(scheduler.pick(0.5, 2).tolist()) == set(late.tolist())


def test_none_removes_and_rows_are_used_again(scheduler):
    rng = np.random.default_rng(1)
    plain = scheduler.value(range(4), 2.0)
    scheduler.set_components([1, 2], drawn(rng, 2, 2))
    scheduler.set_components([1], None)
    scheduler.set_components([2], [])
    scheduler._check()
    assert (scheduler.value(range(4), 2.0) == plain).all()
    scheduler.set_components([0, 3], drawn(rng, 2, 6))
    scheduler.remove([0])
    scheduler.set_components([1], drawn(rng, 1, 1))
    scheduler._check()
    assert scheduler._memory.state.head[0]["n_mixtures"] == 2
    added = scheduler.add(Pages([1.0] * 20), 0.0)
    assert not access.components_of(scheduler, added).any()
    scheduler._check()


def test_a_signal_leaves_the_value_to_the_components(scheduler):
    scheduler.set_components([1], drawn(np.random.default_rng(2), 1, 3))
    before = scheduler.value([1], 3.0)
    scheduler.signal([1, 1], 2.0)
    assert scheduler.value([1], 3.0) == before
    assert scheduler._memory.state.rec["signals"][1] == 2


def test_components_are_saved(scheduler):
    scheduler.set_components([1, 3], drawn(np.random.default_rng(2), 2, 3))
    again = Scheduler.restore(scheduler.state())
    assert {**every_byte(scheduler), "head": b""} == {**every_byte(again), "head": b""}
    assert (again.value(range(4), 5.0) == scheduler.value(range(4), 5.0)).all()


def test_pages_with_components_have_no_ties(scheduler):
    scheduler.update(range(4), change_rate=0.1)
    scheduler.set_components([1, 2], drawn(np.random.default_rng(2), 2, 3))
    columns = np.array([np.asarray(c, float) for c in access.tie_columns(scheduler, np.arange(4))])
    assert len(np.unique(columns, axis=1).T) == 3


GOOD = [1.0, 0.1, 2.0, 0.5, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("components", "message"),
    [
        ([GOOD] * 7, f"components: 7 of a page, at most {at.COMPONENTS}"),
        ([GOOD[:6]], "components has the shape"),
        ([[GOOD]] * 3, "components has the shape"),
        ([[1.0, 0.0, *GOOD[2:]]], "components: mean must be finite and above 0"),
        ([[1.0, 0.1, math.nan, *GOOD[3:]]], "components: shape must be above 0"),
        ([[*GOOD[:5], math.inf, 0.0]], "components: heard must be finite and at least 0"),
    ],
)
def test_bad_components_are_refused_in_one_line(scheduler, components, message):
    with pytest.raises(ParameterError, match=message) as problem:
        scheduler.set_components([0, 1], components)
    assert "\n" not in str(problem.value)
    scheduler._check()


@pytest.mark.parametrize("objective", ["harmonic", "age", "rates"])
def test_only_freshness_knows_mixtures(objective):
    with pytest.raises(ParameterError, match="mixtures are known for the objective 'freshness' only"):
        Scheduler(Pages([1.0]), objective=objective).set_components([0], [GOOD])
