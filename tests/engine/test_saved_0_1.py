"""What version 0.1 saved of six pages after 30 crawls (commit 0209ca8): its rows are read, its state is refused.

Arrays are objects of a dtype and values; those of the state with 50 elements and more, or with fields, are null.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from recrawl import Engine, ParameterError

FILE = Path(__file__).parent / "data" / "saved_0_1.json"


def arrays(thing):
    """The saved form, with its arrays."""
    if isinstance(thing, dict) and set(thing) == {"dtype", "values"}:
        return np.array(thing["values"], thing["dtype"])
    if isinstance(thing, dict):
        return {name: arrays(value) for name, value in thing.items()}
    return [arrays(value) for value in thing] if isinstance(thing, list) else thing


@pytest.fixture(scope="module")
def saved():
    return {name: arrays(part) for name, part in json.loads(FILE.read_text()).items()}


def test_rows_of_0_1_are_read(saved):
    engine = Engine.restore(saved["rows"], now=2000.0)
    assert sorted(engine.url(engine.ids())) == [f"https://h{k % 2}.example/{k}" for k in (0, 2, 4, 1, 3, 5)]
    rate = dict(zip(engine.url(engine.ids()), engine.pages().change_rate.tolist(), strict=True))
    changing = [rate[f"https://h0.example/{k}"] for k in (0, 2, 4)]
    assert min(changing) > max(rate[f"https://h1.example/{k}"] for k in (1, 3, 5))
    rows = engine.rows()
    assert rows["ledger"] == saved["rows"]["account"]
    assert rows["calibration"]["recent"] == saved["rows"]["stated"]["lately"]
    assert rows["fixed_rate"].tolist() == [False] * 6
    assert len(engine.pick(2000.0, 1)) == 1


def test_a_state_of_0_1_is_refused_in_one_line(saved):
    with pytest.raises(ParameterError, match=r"^state: saved by an earlier version; .*rows\(\) here$") as refused:
        Engine.restore(saved["state"])
    assert "\n" not in str(refused.value)
