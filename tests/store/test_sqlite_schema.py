"""SqliteStore: migrations, bodies on disk, and the rows of an engine."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from recrawl import Engine
from recrawl.errors import StoreError
from recrawl.store.sqlite import migrate as migrating
from recrawl.store.testing.rows import example_rows

from .test_sqlite import URLS, opened, outcome

HERE = Path(__file__).parent


# --- schema --------------------------------------------------------------------------------------------------------


def test_databases_of_the_first_version_are_brought_up_to_date(tmp_path):
    old = sqlite3.connect(tmp_path / "a.db")
    old.executescript((HERE / "version_1.sql").read_text())
    old.execute("PRAGMA user_version = 1")
    old.close()
    with opened(tmp_path / "a.db") as store:
        assert migrating.version_of(store.store._database.writer) == migrating.migrations()[-1][0]
        assert store.counts() == {"pages": 3, "copies": 2, "observations": 3, "bodies": 1}
        assert store.body(store.versions("https://a.example/0")[0].key) == b"<p>second"
        assert [o.changed for o in store.observations("https://a.example/0")] == [None, True]
        engine = Engine.restore(store.load(), 1.7e9 + 5000)
        assert engine.explain(int(engine.id("https://a.example/0")[0]), 1.7e9 + 5000).n_changes == 1
        assert store.check() == []


def test_migrations_are_applied_once_each_and_wholly(tmp_path, monkeypatch):
    first = migrating.migrations()
    opened(tmp_path / "a.db").close()
    last = first[-1][0]
    good = (last + 1, "ALTER TABLE page ADD COLUMN colour TEXT;")
    bad = (last + 2, "CREATE TABLE more (x); INSERT INTO nowhere VALUES (1);")
    monkeypatch.setattr(migrating, "migrations", lambda: [*first, good, bad])
    with pytest.raises(StoreError, match="nowhere"):
        opened(tmp_path / "a.db")
    monkeypatch.setattr(migrating, "migrations", lambda: [*first, good])
    with opened(tmp_path / "a.db") as store:
        assert migrating.version_of(store.store._database.writer) == last + 1, (
            "the good one was applied, the bad one wholly undone"
        )
        store.save([outcome()], example_rows(URLS))
    monkeypatch.setattr(migrating, "migrations", lambda: first)
    monkeypatch.setattr("recrawl.store.sqlite.database.migrations", lambda: first)
    with pytest.raises(StoreError, match=f"version {last + 1}, this recrawl knows only {last}"):
        opened(tmp_path / "a.db")
    with pytest.raises(StoreError, match="a newer recrawl wrote it: update recrawl"):
        opened(tmp_path / "a.db", exclusive=False)


def test_a_store_that_is_not_exclusive_does_not_change_the_schema(tmp_path, monkeypatch):
    opened(tmp_path / "a.db").close()
    first = migrating.migrations()
    monkeypatch.setattr("recrawl.store.sqlite.database.migrations", lambda: [*first, (99, "")])
    with pytest.raises(StoreError, match="recrawl run brings it up to date"):
        opened(tmp_path / "a.db", exclusive=False)


# --- bodies --------------------------------------------------------------------------------------------------------


def test_a_damaged_body_is_noticed(tmp_path):
    with opened(tmp_path / "a.db") as store:
        store.save([outcome(0, body=b"text" * 100)], example_rows(URLS))
        key = store.versions(URLS[0])[0].key
        other = sqlite3.connect(tmp_path / "a.db")
        with other:
            other.execute("UPDATE body SET data = zeroblob(40)")
        other.close()
        with pytest.raises(StoreError, match=f"body {key.hex()}"):
            store.body(key)


def test_bodies_are_small_and_none_are_kept_with_keep_0(tmp_path):
    text = b"<p>the same words again and again</p>" * 3000
    with opened(tmp_path / "a.db") as store:
        store.save([outcome(k, body=text) for k in range(20)], example_rows(URLS))
        size = store.store._database.reader.execute("SELECT sum(length(data)) FROM body").fetchone()[0]
        assert size < len(text) / 100
    with opened(tmp_path / "b.db", keep=0) as store:
        store.save([outcome(0, body=text)], example_rows(URLS))
        assert store.versions(URLS[0]) == []


# --- rows of an engine ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("sources", [0, 1, 2])
def test_rows_written_at_different_times_make_the_engine_that_wrote_them(tmp_path, sources):
    """Pages are written only when they are crawled, while the tables are fitted again and again.

    Beliefs that go with the last fit are those of before; others are what the present tables say.
    """
    rng, now = np.random.default_rng(sources), 1.7e9
    engine = Engine(1.0, start=now, sources=sources, host_spacing=0.1, host_concurrency=2)
    urls = [f"https://{'abc'[k % 3]}.example/{k}" for k in range(150)]
    ids = engine.add(urls, now, fetched_at=now)
    store = opened(tmp_path / "a.db")
    store.save(rows=engine.rows(ids))
    for _ in range(300):
        now += 3000.0
        ids = engine.pick(now, 3)
        kind = rng.random(len(ids))
        engine.record(ids, now, changed=rng.random(len(ids)) < 0.3, failed=kind < 0.1, gone=kind > 0.99)
        store.save(rows=engine.rows(ids))
    assert engine.stats["refits"] >= 3
    saved = store.load()
    again = Engine.restore(saved, now)
    store.close()
    a, b = engine.rows(), again.rows()
    order = [b["url"].index(url) for url in a["url"]]
    for side in (a, b):  # a wait that is over is none: an engine forgets it when it next looks at the page
        side["wait_until"] = np.where(side["wait_until"] > now, side["wait_until"], -np.inf)
    for name in ("seen", "fetched_at", "watched", "n_crawls", "n_changes", "wait_until", "failures", "given"):
        assert np.allclose(a[name], b[name][order], rtol=1e-9), name
    current = np.array([saved["prior_at"][saved["url"].index(url)] == engine.beliefs.fits for url in a["url"]])
    assert 20 < current.sum() < len(current)
    assert np.allclose(a["gamma"][current], b["gamma"][order][current], rtol=1e-9)
    assert np.median(np.abs(np.log(a["change_rate"] / b["change_rate"][order]))) < 0.1
    engine.beliefs.believe(engine.ids())
    present = engine.beliefs.gamma(engine.ids()).mean
    off = np.abs(np.log(present / again.beliefs.gamma(again.id(a["url"])).mean))[~current]
    assert np.median(off) < 0.2
    assert np.quantile(off, 0.9) < 0.4
    assert a["hosts"] == b["hosts"]
    fresh = [float(np.mean(e.fresh(e.id(a["url"]), now + 86400.0))) for e in (engine, again)]
    assert fresh[0] == pytest.approx(fresh[1], abs=0.01)
    for _ in range(50):
        now += 3000.0
        for e in (engine, again):
            ids = e.pick(now, 2)
            assert len(ids) == 2
            e.record(ids, now, changed=[url.endswith("1") for url in e.url(ids)])


@pytest.mark.slow
def test_many_pages_are_loaded_by_few_statements(tmp_path):
    n, said = 50_000, []
    with opened(tmp_path / "a.db") as store:
        store.save(rows=example_rows([f"https://h{k % 100}.example/{k}" for k in range(n)]))
        store.store._database.reader.set_trace_callback(said.append)
        rows = store.load()
    assert len(rows["url"]) == n
    assert len([one for one in said if one.startswith("SELECT")]) in range(1, 20)
