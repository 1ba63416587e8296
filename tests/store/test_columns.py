"""The engine's rows as cells and back: what it costs, and what comes back where pages differ in their columns."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from recrawl.store.columns import Gathered, More, cells
from recrawl.store.testing.rows import example_rows, page_urls


def rows_of(n: int) -> dict[str, Any]:
    more = {"factor": np.ones(n), "twin": np.zeros((n, 3)), "changed_at": np.full(n, -np.inf)}
    return {**example_rows(page_urls(n), sources=0), **more}


def allocated(n_pages: int) -> int:
    """Bytes allocated at most at a time while one batch is taken into a table of so many pages."""
    gathered, some = Gathered(n_pages), list(cells(rows_of(50)))
    gathered.take(some)
    tracemalloc.start()
    gathered.take(some)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_a_batch_allocates_nothing_as_long_as_the_table() -> None:
    assert allocated(1_000_000) < 2 * allocated(1000) < 1_000_000


@pytest.mark.parametrize("n", [100, 1000])
def test_equal_texts_are_written_and_parsed_once(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    seen: list[str] = []

    def noted(work: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(value: Any) -> Any:
            seen.append(str(value))
            return work(value)

        return wrapped

    monkeypatch.setattr(json, "dumps", noted(json.dumps))
    monkeypatch.setattr(json, "loads", noted(json.loads))
    gathered = Gathered(n)
    gathered.take(list(cells(rows_of(n))))
    found = gathered.rows()
    assert len(seen) == 2
    assert max(map(len, seen)) < 200
    assert found["twin"].shape == (n, 3)
    assert (found["changed_at"] == -np.inf).all()


def test_rows_of_pages_that_differ_come_back() -> None:
    rng = np.random.default_rng(1)
    n = 100
    more = {"factor": rng.random(n), "twin": rng.random((n, 3)), "number": rng.integers(0, 2**60, n)}
    rows = {**example_rows(page_urls(n)), **more}
    gathered = Gathered(n)
    every = list(cells(rows))
    for first in range(0, n, 30):
        gathered.take(every[first : first + 30])
    found = gathered.rows()
    for name, column in more.items():
        assert found[name].dtype == column.dtype, name
        assert (found[name] == column).all(), name


def test_columns_that_only_some_pages_have() -> None:
    more = More()
    more.take(['{"pair": [1.0, 2.0]}', None])
    more.take([None, None])
    more.take(['{"pair": [3.0, 4.0], "new": 1}'] * 2)
    found = more.columns()
    assert found["pair"].tolist() == [[1.0, 2.0], None, None, None, [3.0, 4.0], [3.0, 4.0]]
    assert found["new"].tolist() == [None, None, None, None, 1, 1]


def test_columns_of_changing_kinds() -> None:
    more = More()
    more.take(['{"a": 1}', '{"a": 2}'])
    more.take(['{"a": 1.5}', '{"a": 2}'])
    assert more.columns()["a"].tolist() == [1.0, 2.0, 1.5, 2.0]
    more.take(['{"a": [1, 2]}', '{"a": "text"}'])
    assert more.columns()["a"].tolist() == [1, 2, 1.5, 2, [1, 2], "text"]
