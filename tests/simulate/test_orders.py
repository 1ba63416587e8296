"""The order among equals: a shuffled trace is the same trace, and experiments/learner/traces.py pairs runs by order."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from recrawl.simulate import contender, simulate

from .small import small_trace

SCRIPT = Path(__file__).parents[2] / "experiments/learner/traces.py"


def rows(trace):
    """All that a trace says of each page, in an order of its own."""
    page = trace.signals.page
    signals = [
        np.column_stack([c[page == i] for c in (*trace.signals[:1], *trace.signals[2:])]) for i in range(len(trace))
    ]
    return sorted(
        (
            trace.importance[i],
            trace.created_at[i],
            trace.deleted_at[i],
            trace.pages.change_rate[i],
            trace.changed_at[trace.offset[i] : trace.offset[i + 1]].tolist(),
            trace.requested_at[trace.request_offset[i] : trace.request_offset[i + 1]].tolist(),
            signals[i].tolist(),
        )
        for i in range(len(trace))
    )


@pytest.mark.parametrize("seed", range(3))
def test_shuffled_keeps_every_page(seed):
    trace = small_trace(seed)
    other = trace.shuffled(np.random.default_rng(seed))
    assert rows(other) == rows(trace)
    assert (np.diff(other.created_at) >= 0).all()
    assert not np.array_equal(other.importance, trace.importance)


def test_known_does_not_mind_the_order():
    # without ties the order decides nothing
    trace = small_trace(4, n=30)
    other = trace.shuffled(np.random.default_rng(1))
    one, two = (simulate(contender("no-signals"), each, 3.0) for each in (trace, other))
    assert one.staleness == pytest.approx(two.staleness, rel=1e-9)
    assert one.requests == two.requests


@pytest.fixture(scope="module")
def script():
    if not SCRIPT.exists():
        pytest.skip("experiments are not there")
    spec = importlib.util.spec_from_file_location("learner_traces", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_compares_by_order(script):
    def cells(values, rivals):
        return {
            "ota-contrib 0.05 learned": {"staleness": values},
            "ota-contrib 0.05 nutch:due": {"staleness": {"0": rivals}},
        }

    before = cells({"0": 0.1, "1": 0.2, "2": 0.3}, 0.19)
    text, worse = script.compared(before, cells({"0": 0.11, "1": 0.212}, 0.19))
    assert worse == 1
    assert "| 0.15000 | 0.16100 | +0.01100 (+7.3%) | 0.00100 | 2 | WORSE |" in text
    assert script.compared(before, cells({"0": 0.104}, 0.19))[1] == 0
    assert len(script.rivals_above(cells({"0": 0.2}, 0.19), {})) == 1
    assert script.rivals_above(cells({"0": 0.18}, 0.19), {}) == []


def test_results_are_added_to(script, tmp_path):
    path = tmp_path / "out.json"
    cell = script.Cell("ota-contrib", "0.05", "learned")
    script.keep(path, cell, 0, {"staleness": 0.5, "seconds": 1.0})
    script.keep(path, cell, 1, {"staleness": 0.25, "seconds": 1.0})
    assert json.loads(path.read_text())["cells"][cell.key]["staleness"] == {"0": 0.5, "1": 0.25}
    assert script.summary(script.read_cells(path))[0][1:] == (0.375, 0.125, 2)


def test_skips_where_there_is_no_data(script, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["traces.py", "--data", str(tmp_path), "--traces", "ota-contrib"])
    assert script.main() == 0
    assert "ota-contrib: skipped, there is no folder" in capsys.readouterr().out
