"""Settings that no longer exist: a database that has them opens, a file or variable that has them is refused."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.assemble import engine_of
from recrawl.engine import Engine
from recrawl.engine.settings import REMOVED
from recrawl.errors import ParameterError
from recrawl.store.sqlite.store import SqliteStore

NOW, N = 1.7e9, 40
NEW = ("seen", "rate_evidence", "table", "strength", "fits", "clocks")  # what earlier versions did not save


def old_rows(engine: Engine, *, siblings: bool, on: bool) -> dict[str, Any]:
    """Rows as they were saved while bursts, drift, seasons and group priors existed."""
    rows = {name: value for name, value in engine.rows().items() if name not in NEW}
    rows["settings"] |= dict.fromkeys(REMOVED, on)
    score = [0.0] * (9 if on else 1) + ([-30.0, -20.0] if siblings else [])
    rows["parts"] = {"half_life": 7776000.0, "boost": 3.0, "fade": 604800.0, "hour": 3600.0, "score": score}
    rows["parts"] |= {"lean_score": [0.0, 1.0], "season": [[1.0, 2.0]], "clock": [0.0, 1.0], "season_score": [0.0, 9.0]}
    rows["parts"] |= {"active": [3 if siblings else -1], "calm": 1e-6, "used": [siblings]}
    rows |= {"priors": [[1.0, 86400.0], [0.5, 1e6]], "scores": np.zeros(4), "prior_at": np.ones(N, np.int64)}
    rows |= {"sibling_weight": np.full((N, 2), 0.3), "twin": np.ones((N, 3)), "factor": np.linspace(0.5, 2.0, N)}
    rows["columns"] = [name for name in rows["columns"] if name not in NEW] + ["sibling_weight", "twin", "factor"]
    return rows


@pytest.fixture
def engine() -> Engine:
    engine = Engine(N / 86400.0, start=NOW - 1e6)
    engine.add([f"https://a.example/f{k % 4}/{k}" for k in range(N)], NOW - 1e6, fetched_at=NOW - 1e6)
    for now in np.arange(NOW - 9e5, NOW, 1e5):
        ids = engine.pick(now, N // 2)
        engine.record(ids, now, changed=ids % 3 == 0)
    return engine


@pytest.mark.parametrize(("siblings", "on"), [(True, True), (True, False), (False, True)])
def test_a_database_that_has_them_opens(
    engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture, siblings: bool, on: bool
) -> None:
    rows = old_rows(engine, siblings=siblings, on=on)

    async def opened() -> tuple[Engine, Engine]:
        store = SqliteStore(tmp_path / "old.db")
        try:
            await store.save(rows=rows)
            found = await engine_of(store, Settings(), NOW)
            await store.save(rows=found.rows())
            return found, await engine_of(store, Settings(), NOW)  # saved by this version: nothing to ignore
        finally:
            await store.close()

    with caplog.at_level(logging.WARNING, "recrawl"):
        found, _ = asyncio.run(opened())
    said = [(record.message, record.fields) for record in caplog.records]  # type: ignore[attr-defined]
    ignored = {"settings": "priors, bursts, drift, seasons", "reason": "no longer exist"}
    assert said == ([("settings.ignored", ignored)] if on else [])
    assert set(found.settings.as_dict()) == set(engine.settings.as_dict())
    belief = found.beliefs.belief
    assert belief.half_life[0] == 730.0 * 86400.0
    assert np.array_equal(belief.gamma[:N], engine.beliefs.belief.gamma[:N])
    assert np.array_equal(belief.seen[:N, 1], engine.beliefs.belief.n_changes[:N]), "observations, from the counts"
    assert np.array_equal(belief.sizes[:1], [255.0 * (belief.n_crawls[:N] > 0).sum()]), "tables, from the observations"
    assert found.clocks.enabled
    assert len(found.pick(NOW + 1e5, 1)) == 1
    found.scheduler._check()


def test_state_of_an_earlier_version_is_refused_by_its_form(engine: Engine) -> None:
    state = engine.state()
    state["settings"] |= dict.fromkeys(REMOVED, False)
    state["scheduler"]["version"] = 2
    with pytest.raises(ParameterError, match="state has form 2"):
        Engine.restore(state)


@pytest.mark.parametrize("name", REMOVED)
def test_a_file_or_variable_that_has_one_is_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / "recrawl.toml"
    file.write_text(f"{name} = true\n")
    with pytest.raises(ParameterError, match=f"setting {name} no longer exists: remove it"):
        Settings.read(file)
    with pytest.raises(ParameterError, match=f"RECRAWL_{name.upper()} no longer exists"):
        Settings.read(environment={f"RECRAWL_{name.upper()}": "true"})
