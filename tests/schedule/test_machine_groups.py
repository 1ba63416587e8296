"""Any sequence of events, for a scheduler and its brute-force twin: groups beside signals."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test
from naive.float_value import noisy
from naive.groups import Group, fresh_value
from profiles import examples

from .machine import SEEDS, SchedulerMachine

pytestmark = pytest.mark.slow

FEW = settings(
    deadline=None, max_examples=examples(30), stateful_step_count=25, suppress_health_check=list(HealthCheck)
)
ROUNDING = 1e-4  # bins of groups are 32-bit floats
SPAN, BASELINE, SHRINK = 2.0, 0.02, 2.0


class Grouped(SchedulerMachine):
    """Pages in groups that hear of crawl outcomes, and signals for some of the pages."""

    sizes = (2, 5, 12, 30)
    starts = (0.0, 1000.0)

    def columns(self, rng, n):
        recall = rng.choice([0.0, 0.0, 0.4, 0.9], n)
        signals = {"recall": recall, "false_rate": np.where(recall > 0, rng.choice([0.05, 0.5], n), 0.0)}
        return super().columns(rng, n) | {"change_rate": rng.choice([0.001, 0.05, 0.3, 1.0], n)} | signals

    def prepare(self):
        self.scheduler.relate(SPAN, baseline=BASELINE, shrink=SHRINK)
        self.groups, self.member = {}, {}

    @rule(step=st.sampled_from([0.0, 1e-9, 1e-3, 0.1, 0.3, 1.0, 3.0, 20.0, 500.0]))
    def wait(self, step):
        self.time = max(self.time, self.twin.now) + step

    @rule(seed=SEEDS, number=st.integers(-1, 3))
    def join(self, seed, number):
        rng, ids = self._some(seed, 20)
        weight = rng.choice([0.0, 0.3, 1.0, 2.0], len(ids))
        self.scheduler.join(ids, number, weight)
        self.member.update({i: (number, w) for i, w in zip(ids.tolist(), weight.tolist(), strict=True)})

    @precondition(lambda self: self.twin.pages)
    @rule(seed=SEEDS, ago=st.sampled_from([0.01, 1.0, 7.0, 200.0]), changed=st.booleans())
    def notice(self, seed, ago, changed):
        _, ids = self._some(seed, 3)
        now = self.time = max(self.time, self.twin.now)
        self.scheduler.notice(ids, now, since=now - ago, changed=changed, own=0.05)
        for i in ids.tolist():
            number, weight = self.member.get(i, (-1, 0.0))
            if number >= 0:
                group = self.groups.setdefault(number, Group(SPAN, BASELINE, SHRINK))
                group.add_outcome(now - ago, now, 0.05, weight, changed)

    def values(self):
        """The scheduler's own values, which the twin's differ from by the rounding of bins at most."""
        ids = sorted(self.twin.pages)
        value = self.scheduler.value(ids, self.twin.now)
        expected = [self.expected(i) for i in ids]
        np.testing.assert_allclose(value, expected, rtol=ROUNDING, atol=1e-9)
        return dict(zip(ids, value.tolist(), strict=True))

    def expected(self, i):
        page, now = self.twin.pages[i], self.twin.now
        if page.importance == 0 or page.change_rate == 0:
            return 0.0
        missed, gamma, kappa = self.twin._source(page)
        elapsed = max(now - page.last, 0.0)
        number, weight = self.member.get(i, (-1, 0.0))
        excess = BASELINE * elapsed if number not in self.groups else self.groups[number].excess_since(page.last, now)
        weight = weight if number >= 0 else 0.0
        rate, total = missed + weight * BASELINE, missed * elapsed + weight * excess
        if gamma > 0 and kappa > 0:
            heard = len(page.signals) * kappa
            unit = noisy(rate, gamma, kappa, rate + page.change_rate - missed, total, heard, np.inf)
        else:
            unit = fresh_value(total) / rate
        return page.importance * unit / page.cost


@pytest.mark.parametrize("policy", ["signals", "no-signals"])
def test_groups(policy):
    run_state_machine_as_test(type("Variant", (Grouped,), {"policy": policy}), settings=FEW)


def test_groups_and_hosts():
    run_state_machine_as_test(type("Variant", (Grouped,), {"hosts": ("a", "b")}), settings=FEW)


def test_many_pages():
    large = {"sizes": (300, 400, 500, 600), "most_pages": 900, "policy": "no-signals"}
    few = settings(FEW, max_examples=4, stateful_step_count=15)
    run_state_machine_as_test(type("Variant", (Grouped,), large), settings=few)
