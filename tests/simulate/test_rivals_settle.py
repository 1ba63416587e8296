"""Where the adaptive systems settle on Poisson pages: the values expected of them before they enter any table."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
from profiles import few_tuples

from recrawl.simulate import simulate
from recrawl.simulate.rivals.registry import rival

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "experiments/rivals/check_values.py"
if not SCRIPT.exists():
    pytest.skip("experiments are not there", allow_module_level=True)
spec = importlib.util.spec_from_file_location("check_values", SCRIPT)
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)

CASES = [(name, days, aim) for name, aims in check.EXPECTED.items() for days, aim in zip(check.DAYS, aims, strict=True)]


@pytest.mark.parametrize(("name", "days", "aim"), few_tuples([*CASES[::2], *CASES[1::2]], len(CASES[::2])))
def test_check_values(name, days, aim):
    freshness, interval = check.from_start(name, days)
    assert freshness == pytest.approx(aim[0], abs=0.015)
    assert interval == pytest.approx(aim[1], abs=0.03)


@pytest.mark.parametrize(
    ("name", "days", "grow", "shrink", "settings", "rate", "freshness"),
    [
        ("nutch", 3.0, 1.4, 0.8, {"sync": 0.0}, 0.919, 0.654),
        ("stormcrawler", 3.0, 1.5, 0.5, {"least": 0}, 0.461, 0.801),
        ("heritrix", 3.0, 1.5, 1 / 1.5, {}, 0.693, 0.721),
        ("stormcrawler", 3.0, 1.5, 0.8, {"least": 0, "shrink": 0.2, "most": 129_600}, 1.036, 0.623),
    ],
)
def test_drift(name, days, grow, shrink, settings, rate, freshness):
    """An interval rests where a share ln a/(ln a − ln b) of crawls finds a change (factors a, b)."""
    share = math.log(grow) / (math.log(grow) - math.log(shrink))
    assert -math.log(1 - share) == pytest.approx(rate, abs=1e-3)
    assert (1 - math.exp(-rate)) / rate == pytest.approx(freshness, abs=1e-3)
    trace = check.poisson_trace(days, 6000.0, np.random.default_rng(2))
    run = simulate(rival(name, day=1.0, **settings), trace, None, count_from=1000.0)
    assert run.changes_found / run.requests == pytest.approx(share, abs=0.01)
    assert run.freshness < freshness  # the interval fluctuates around its rest
