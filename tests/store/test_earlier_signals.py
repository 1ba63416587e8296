"""A database of the version before signals were weighed by precision classes: its signals are learned again.

``credited_signals.sql`` was written by that version: eight pages on two hosts, sixty crawls, a source whose signals are
right in four of five cases. Three signals had come since the last crawls. The last page has a given rate.
"""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from recrawl import Engine
from recrawl._compile.plain import plain
from recrawl.crawl.run.opening.pages import open_engine
from recrawl.engine.signals.arrays import is_open
from recrawl.store import BlockingStore, SqliteStore

from .test_earlier_rows import replayed

NOW, DAY, GIVEN = 1700300000.0, 86400.0, "https://b.example/y/7"


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    connection.executescript((Path(__file__).parent / "credited_signals.sql").read_text())
    connection.execute("PRAGMA user_version = 4")
    connection.close()
    return path


def opened(path, **settings):
    with BlockingStore(SqliteStore(path)) as store:
        return store.run(open_engine(store.store, NOW, save=True, **settings))


@pytest.mark.parametrize("sources", [1, 4])
def test_changes_that_were_credited_to_signals_count_again(old, sources):
    with BlockingStore(SqliteStore(old)) as store:
        saved, expected = store.load(), replayed(store.observations(), 730.0 * DAY)
    assert (np.asarray(saved["own"]) < np.asarray(saved["n_changes"]) - 0.3).all()
    engine = opened(old, sources=sources)
    for url, seen in expected.items():
        if url != GIVEN:
            assert engine.beliefs.belief.seen[engine.id(url)[0]] == pytest.approx(seen, rel=1e-9), url
    assert engine.settings.sources == sources
    assert (engine.pages().change_rate > 0).all()
    assert not engine.pages().recall.any()
    again = opened(old, sources=sources).rows()
    assert again["seen"].tolist() == engine.rows()["seen"].tolist()
    assert again["own"].tolist() == again["n_changes"].tolist()


@pytest.mark.parametrize("sources", [1, 4])
def test_signals_are_learned_from_the_beginning(old, sources):
    engine = opened(old, sources=sources)
    assert all(engine.explain(page, NOW).signals == () for page in engine.ids().tolist())
    source, pages, now, rng = sources - 1, engine.ids(), NOW, np.random.default_rng(0)
    for _ in range(20):
        changed = rng.random(len(pages)) < 0.5
        engine.signal(pages[changed], now + DAY, source=source)
        now += 2 * DAY
        engine.record(pages, now, changed=changed)
    b = engine.beliefs.belief.signals
    assert bool(plain(is_open)(b, 0, source))
    engine.signal([3], now + DAY, source=source)
    assert engine.pick(now + 1.1 * DAY, 1).tolist() == [3]
    engine.scheduler._check()


def test_rows_that_were_not_in_a_database_open_too(old):
    with BlockingStore(SqliteStore(old)) as store:
        rows = store.load()
    n = len(rows["url"])
    gamma = np.concatenate([np.reshape(rows["gamma"], (n, 1, 2)), np.ones((n, 1, 2))], axis=1)
    extra = {"heard": np.ones((n, 1)), "signals": np.ones((n, 1)), "recall": np.full(n, 0.5), "false_rate": np.ones(n)}
    engine = Engine.restore({**rows, **extra, "gamma": gamma, "prior": [[1.0, 1e5], [1.0, 3.0]]}, NOW)
    assert engine.beliefs.belief.gamma[:n].tolist() == gamma[:, 0].tolist()
    assert engine.explain(0, NOW).signals == ()
    assert len(engine.pick(NOW + DAY, 3)) == 3


def test_a_clock_that_was_set_back_moves_the_times_of_signals(tmp_path):
    engine = Engine(1.0, start=NOW, host_spacing=0.0)
    ids = engine.add([f"https://a.example/{k}" for k in range(3)], NOW, fetched_at=NOW)
    engine.record(ids, NOW + DAY, changed=True)
    engine.signal(ids[:1], NOW + 1.5 * DAY)
    b = engine.beliefs.belief.signals
    b.gate[0, 4] = b.host_gate[0, 0, 4] = NOW + DAY
    with BlockingStore(SqliteStore(tmp_path / "a.db")) as store:
        store.save(rows=engine.rows())
        other = store.run(open_engine(store.store, NOW))
    moved = other.beliefs.belief.signals
    assert other.fetched_at(ids).tolist() == [NOW] * 3
    assert moved.heard_at[0] == NOW + 0.5 * DAY
    assert (moved.gate[0, 4], moved.host_gate[0, 0, 4]) == (NOW, NOW)
