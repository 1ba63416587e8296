"""Any sequence of events, for a scheduler and its brute-force twin: clocks that jump, beside signals and hosts."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from naive.clocks import Clock
from profiles import examples

from .machine import SEEDS, SchedulerMachine

pytestmark = pytest.mark.slow

FEW = settings(
    deadline=None, max_examples=examples(30, usual=6), stateful_step_count=25, suppress_health_check=list(HealthCheck)
)
ROUNDING = 1e-6  # paces are 32-bit floats
SPAN, MEMORY = 2.0, 5.0
PACES = np.array([0.01, 0.2, 0.9, 1.0, 1.0, 1.1, 3.0, 40.0])


class Clocked(SchedulerMachine):
    """Pages follow clocks that are published at any time, with any bins; some have signals."""

    sizes = (2, 5, 12, 30)
    starts = (0.0, 1000.0)

    def columns(self, rng, n):
        recall = rng.choice([0.0, 0.0, 0.4, 0.9], n)
        signals = {"recall": recall, "false_rate": np.where(recall > 0, rng.choice([0.05, 0.5], n), 0.0)}
        return super().columns(rng, n) | {"change_rate": rng.choice([0.001, 0.05, 0.3, 1.0], n)} | signals

    def prepare(self):
        self.scheduler.relate(SPAN, MEMORY)

    @rule(step=st.sampled_from([0.0, 1e-9, 1e-3, 0.1, 0.3, 1.0, 2.0, 3.0, 20.0, 500.0]))
    def wait(self, step):
        self.time = max(self.time, self.twin.now) + step

    @rule(seed=SEEDS, number=st.integers(-1, 3))
    def join(self, seed, number):
        _, ids = self._some(seed, 20)
        self.scheduler.join(ids, number)
        for i in ids.tolist():
            self.twin.pages[i].group = number

    @rule(seed=SEEDS, number=st.integers(0, 3), n=st.integers(0, 32), smooth=st.booleans())
    def publish(self, seed, number, n, smooth):
        rng = np.random.default_rng(seed)
        now = self.time = self.twin.now = max(self.time, self.twin.now)
        clock = self.twin.clocks.setdefault(number, Clock(SPAN, MEMORY))
        paces = np.exp(rng.normal(0.0, 0.05, n)) if smooth else rng.choice(PACES, n)
        ahead = float(np.exp(rng.normal(0.0, 0.05)) if smooth else rng.choice(PACES))
        self.scheduler.publish(number, paces, ahead, now)
        clock.publish(paces.tolist(), ahead, now)

    def values(self):
        """The scheduler's own values, which the twin's differ from by the rounding of paces at most."""
        ids = sorted(self.twin.pages)
        value = self.scheduler.value(ids, self.twin.now)
        expected = [self.twin.value(self.twin.pages[i], self.twin.now) for i in ids]
        np.testing.assert_allclose(value, expected, rtol=ROUNDING, atol=1e-12)
        return dict(zip(ids, value.tolist(), strict=True))


class Estimated(Clocked):
    """Rates that are only estimated, costs, a least crawl rate; no signals."""

    policy = "no-signals"

    def columns(self, rng, n):
        columns = {"change_rate": rng.choice([0.001, 0.05, 0.3, 1.0], n), "importance": rng.choice([0.5, 1, 30], n)}
        return columns | {"cost": rng.choice([0.1, 1.0], n), "evidence": rng.choice([0.5, 1.0, 3.0, np.inf], n)}


VARIANTS = {
    "signals": (Clocked, {}),
    "approx-1": (Clocked, {"policy": "approx-1"}),
    "delay": (Clocked, {"options": {"delay": ([0.0, 0.5, 4.0], [0.25, 0.5, 0.25])}}),
    "hosts": (Clocked, {"hosts": ("a", "b")}),
    "estimated": (Estimated, {}),
    "floor": (Estimated, {"options": {"floor": 0.2}}),
    "harmonic": (Estimated, {"objective": "harmonic"}),
    "age": (Estimated, {"objective": "age"}),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_clocks(name):
    kind, differs = VARIANTS[name]
    run_state_machine_as_test(type("Variant", (kind,), differs), settings=FEW)


def test_many_pages():
    large = {"sizes": (300, 400, 500, 600), "most_pages": 900, "policy": "no-signals"}
    few = settings(FEW, max_examples=4, stateful_step_count=15)
    run_state_machine_as_test(type("Variant", (Clocked,), large), settings=few)
