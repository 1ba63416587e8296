"""The seeded runs of experiments/structure: cases of each kind run on this code, twice with the same digest."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[1] / "experiments" / "structure" / "same.py"


@pytest.fixture(scope="module")
def same():
    """The script, with its cases on drawn worlds; recorded traces are not here."""
    spec = importlib.util.spec_from_file_location("same", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.TRACES = Path("absent")
    module.add_cases()
    return module


@pytest.mark.parametrize(
    "name",
    [
        "world poisson, trailing:crawled",
        "world poisson, learned:siblings, by the protocol",
        "world bursty, nutch, by the protocol",
        "engine with signals",
        "scheduler signals, freshness",
        "live crawl in memory, seed 1",
        "plans and estimates",
    ],
)
def test_a_case_runs_and_runs_again_the_same(same, name):
    assert same.digest(same.CASES[name]()) == same.digest(same.CASES[name]())


def test_every_named_policy_has_cases(same):
    for name in same.policies():
        assert f"world bursty, {name}" in same.CASES
        by_protocol = name.partition(":")[0] not in same.NO_PROTOCOL
        assert (f"world bursty, {name}, by the protocol" in same.CASES) == by_protocol


def test_explanations_change_nothing(same):
    explained = same.digest(same.CASES["engine with signals, explained on the way"]())
    assert explained == same.digest(same.CASES["engine with signals"]())
