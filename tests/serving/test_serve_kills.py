"""The service killed while clients that crash crawl: nothing twice, nothing lost, by real processes."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def kill_serve():
    """The benchmark that does it."""
    spec = importlib.util.spec_from_file_location("kill_serve", ROOT / "benchmarks" / "kill_serve.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.full
@pytest.mark.parametrize("kills", [5, 100])
def test_nothing_twice_and_nothing_lost(kills):
    found = kill_serve().run(kills)
    assert found["acknowledged"] > 100 * kills / 5
    assert found["share_of_picks_cut_short_by_the_budget"] > 0.0, "the budget binds"
    assert (found["abandoned"], found["leases_not_back"], found["back_too_soon"]) == (150, 0, 0)
    assert found["acknowledged_and_missing"] == 0
    assert found["stored_twice"] == 0
    assert found["two_holders"] == 0
    assert found["largest_share_of_budget_windows"] <= 1.0
    assert found["refused"] == []
    assert found["damage"] == []
    assert found["exit_code"] == 0
