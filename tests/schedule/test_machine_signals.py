"""Any sequence of events, for a scheduler and its brute-force twin: every way of using signals."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from profiles import examples

from .machine import SchedulerMachine

pytestmark = pytest.mark.slow

FEW = settings(
    deadline=None, max_examples=examples(30, usual=6), stateful_step_count=20, suppress_health_check=list(HealthCheck)
)


class Noisy(SchedulerMachine):
    """No signals, pure noise, proof, complete signals, and everything between, mixed."""

    sizes = (1, 2, 4, 12)
    most_pages = 40

    def columns(self, rng, n):
        recall = rng.choice([0.0, 0.0, 0.2, 0.6, 0.9, 1.0], n)
        false_rate = rng.choice([0.0, 0.0, 0.05, 0.3, 2.0], n)
        return super().columns(rng, n) | {"recall": recall, "false_rate": false_rate}


class Sources(Noisy):
    """Two sources of signals per page."""

    n_sources = 2

    def columns(self, rng, n):
        columns = super().columns(rng, n)
        columns["recall"] = rng.choice([0.0, 0.2, 0.6, 1.0], (n, 2))
        columns["false_rate"] = rng.choice([0.0, 0.05, 0.3], (n, 2))
        return columns


class Window(Noisy):
    policy = "signals-delayed"
    options = {"delay_window": 0.7}  # noqa: RUF012


class Delay(Noisy):
    """Signals that come late, by a known distribution."""

    options = {"delay": ([0.0, 0.5, 4.0], [0.25, 0.5, 0.25])}  # noqa: RUF012


class SignalledHundreds(Noisy):
    """So many pages that bands, scans and shrinking happen; cheap values for the twin."""

    policy = "trusting"
    sizes = (400, 500, 650, 800)
    most_pages = 1300

    def columns(self, rng, n):
        columns = super().columns(rng, n)
        return columns | {"change_rate": rng.gamma(0.7, 1.0, n), "importance": rng.choice([0.5, 1.0, 3.0], n)}


@pytest.mark.parametrize("policy", ["signals", "trusting", "approx-1", "approx-2", "trusting-plus", "no-signals"])
def test_one_source(policy):
    run_state_machine_as_test(type("Variant", (Noisy,), {"policy": policy}), settings=FEW)


@pytest.mark.parametrize("policy", ["signals", "trusting", "trusting-plus", "approx-2"])
def test_two_sources(policy):
    run_state_machine_as_test(type("Variant", (Sources,), {"policy": policy}), settings=FEW)


@pytest.mark.parametrize("policy", ["signals", "approx-1", "trusting"])
def test_delay(policy):
    run_state_machine_as_test(type("Variant", (Delay,), {"policy": policy}), settings=FEW)


@pytest.mark.parametrize("hosts", [(), ("a", "b")])
def test_window(hosts):
    run_state_machine_as_test(type("Variant", (Window,), {"hosts": hosts}), settings=FEW)


def test_many_pages():
    few = settings(FEW, max_examples=4, stateful_step_count=12)
    run_state_machine_as_test(SignalledHundreds, settings=few)


def test_columns_mix_all_kinds():
    columns = Noisy().columns(np.random.default_rng(0), 500)
    kinds = {(r > 0, r == 1, v > 0) for r, v in zip(columns["recall"], columns["false_rate"], strict=True)}
    assert len(kinds) == 6
