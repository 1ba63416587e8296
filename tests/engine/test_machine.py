"""Any story of events, for an engine and to its plain twin."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from profiles import examples

from .machine import EngineMachine

pytestmark = pytest.mark.slow

FEW = settings(
    deadline=None, max_examples=examples(40, usual=4), stateful_step_count=25, suppress_health_check=list(HealthCheck)
)

VARIANTS = {
    "no sources": {"sources": 0},
    "one source": {"sources": 1},
    "two sources": {"sources": 2},
    "harmonic": {"objective": "harmonic"},
    "age": {"objective": "age", "sources": 0},
    "forgetting": {"half_life": 0.01},
    "hosts": {"hosts": True, "sources": 0},
    "hosts and signals": {"hosts": True},
    "siblings": {"together": True, "sources": 0},
    "siblings and signals": {"together": True},
    "siblings and two sources": {"together": True, "sources": 2},
    "siblings and hosts": {"together": True, "hosts": True},
    "rules for all hosts": {"hosts": True, "options": {"host_spacing": 0.0}},
    "unlikely pages": {"hosts": True, "options": {"min_change_probability": 0.3}},
    "unlikely siblings": {"together": True, "options": {"min_change_probability": 0.5}},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_any_story(name):
    run_state_machine_as_test(type("Variant", (EngineMachine,), VARIANTS[name]), settings=FEW)
