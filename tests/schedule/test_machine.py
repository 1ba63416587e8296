"""Any sequence of events, for a scheduler and its brute-force twin: plain pages, costs, floors and hosts."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from profiles import examples

from .machine import SchedulerMachine

pytestmark = pytest.mark.slow

FEW = settings(
    deadline=None, max_examples=examples(60, usual=9), stateful_step_count=20, suppress_health_check=list(HealthCheck)
)


class Plain(SchedulerMachine):
    policy = "no-signals"


class Harmonic(SchedulerMachine):
    """Plain pages, and pages whose every change is signalled."""

    objective = "harmonic"

    def columns(self, rng, n):
        complete = rng.random(n) < 0.5
        return super().columns(rng, n) | {"recall": complete.astype(float), "false_rate": np.zeros(n)}


class Age(SchedulerMachine):
    objective = "age"


class Weighted(SchedulerMachine):
    """Costs, rates that are only estimated, and a least crawl rate."""

    options = {"floor": 0.2}  # noqa: RUF012

    def columns(self, rng, n):
        evidence = rng.choice([0.5, 1.0, 3.0, 40.0, np.inf], n)
        return super().columns(rng, n) | {"cost": rng.choice([0.1, 1.0, 1.0, 50.0], n), "evidence": evidence}


class Hosts(SchedulerMachine):
    hosts = ("a", "b", "c")


class SharedHosts(SchedulerMachine):
    """Many pages, one host, and pages that signal."""

    hosts = ("only",)
    policy = "trusting"

    def columns(self, rng, n):
        return super().columns(rng, n) | {"recall": rng.choice([0.0, 0.5, 1.0], n)}


class Hundreds(SchedulerMachine):
    """So many pages that bands, scans and shrinking happen."""

    policy = "no-signals"
    sizes = (400, 500, 650, 800)
    most_pages = 1600
    options = {"budget": 20.0}  # noqa: RUF012

    def columns(self, rng, n):
        return {"change_rate": rng.gamma(0.7, 1.0, n), "importance": rng.choice([0.5, 1.0, 3.0], n)}


TestPlain = Plain.TestCase
TestHarmonic = Harmonic.TestCase
TestAge = Age.TestCase
TestWeighted = Weighted.TestCase
TestHosts = Hosts.TestCase
TestSharedHosts = SharedHosts.TestCase
TestHundreds = Hundreds.TestCase
TestPlain.settings = TestHarmonic.settings = TestAge.settings = TestWeighted.settings = FEW
TestHosts.settings = TestSharedHosts.settings = FEW
TestHundreds.settings = settings(FEW, max_examples=6, stateful_step_count=15)
