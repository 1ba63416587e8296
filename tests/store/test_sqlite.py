"""SqliteStore: locks, schema, full disks, other processes, and what is on disk after a kill."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from recrawl import Engine
from recrawl.errors import StoreError, StoreInUseError
from recrawl.store import BlockingStore, Outcome, SqliteStore
from recrawl.store.sqlite import migrate as migrating
from recrawl.store.testing.rows import example_rows, same_rows

URLS = [f"https://a.example/{k}" for k in range(20)]
HERE = Path(__file__).parent


def outcome(k=0, **more):
    return Outcome(URLS[k], 1.7e9 + k, status=200, digest=f"d{k}", **more)


# --- one writer ----------------------------------------------------------------------------------------------------


def test_a_second_run_is_refused_with_a_line_that_names_the_first(tmp_path):
    with BlockingStore(SqliteStore(tmp_path / "a.db")):
        with pytest.raises(StoreInUseError, match=rf"a\.db: in use by process {os.getpid()}; only one run at a time"):
            BlockingStore(SqliteStore(tmp_path / "a.db"))
        with BlockingStore(SqliteStore(tmp_path / "a.db", exclusive=False)) as visitor:
            assert visitor.counts()["pages"] == 0
    BlockingStore(SqliteStore(tmp_path / "a.db")).close()


def test_the_lock_is_given_back_when_its_process_is_killed(tmp_path):
    script = "import sys, time\nfrom recrawl.store import SqliteStore\ns = SqliteStore(sys.argv[1])\n"
    script += "print(1, flush=True)\ntime.sleep(60)"
    command = [sys.executable, "-c", script, str(tmp_path / "a.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(StoreInUseError, match=f"in use by process {other.pid}"):
            BlockingStore(SqliteStore(tmp_path / "a.db"))
        other.send_signal(signal.SIGKILL)
    BlockingStore(SqliteStore(tmp_path / "a.db")).close()


def test_a_visitor_leaves_word_for_the_run(tmp_path):
    with (
        BlockingStore(SqliteStore(tmp_path / "a.db")) as store,
        BlockingStore(SqliteStore(tmp_path / "a.db", exclusive=False)) as visitor,
    ):
        visitor.queue([{"add": URLS}])
        assert [post for _, post in store.commands()] == [{"add": URLS}]


def test_a_database_that_stays_locked_is_refused_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("recrawl.store.sqlite.database._WAIT", 0.2)
    store = BlockingStore(SqliteStore(tmp_path / "a.db"))
    store.save(rows=example_rows(URLS))
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another process keeps it locked"):
        store.save([outcome()])
    other.execute("ROLLBACK")
    other.close()
    store.save([outcome()])
    assert store.counts()["observations"] == 1
    store.close()


# --- paths ---------------------------------------------------------------------------------------------------------


def test_what_is_no_database_is_refused(tmp_path):
    (tmp_path / "text.db").write_text("this is no database, but a text of some length" * 20)
    with pytest.raises(StoreError, match="not a database"):
        BlockingStore(SqliteStore(tmp_path / "text.db"))
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE mine (x)")
    other.close()
    with pytest.raises(StoreError, match="not one of recrawl"):
        BlockingStore(SqliteStore(tmp_path / "other.db"))
    with pytest.raises(StoreError, match="no such folder"):
        BlockingStore(SqliteStore(tmp_path / "nowhere" / "a.db"))
    with pytest.raises(StoreError, match="no such database"):
        BlockingStore(SqliteStore(tmp_path / "absent.db", exclusive=False))
    assert not (tmp_path / "absent.db").exists()


def test_after_close_nothing_is_answered(tmp_path):
    async def main():
        store = SqliteStore(tmp_path / "a.db")
        await store.close()
        await store.close()
        for call in (store.load, store.save, store.commands):
            with pytest.raises(StoreError, match="is closed"):
                await call()

    asyncio.run(main())


# --- calls that are cancelled --------------------------------------------------------------------------------------


def test_a_save_whose_caller_is_cancelled_is_applied_as_a_whole_and_in_order(tmp_path):
    async def main():
        async with SqliteStore(tmp_path / "a.db") as store:
            await store.save(rows=example_rows(URLS))
            calls = [store.save([outcome(k), outcome(k + 10)], notes={"last": k}) for k in range(10)]
            tasks = [asyncio.ensure_future(call) for call in calls]
            await asyncio.sleep(0)  # all are made, at most one runs
            for task in tasks:
                task.cancel()
            assert all(isinstance(one, asyncio.CancelledError) for one in await gathered(tasks))
            await store.save()  # after all before it
            found = [o.digest async for o in store.observations()]
            assert found == [f"d{j}" for k in range(10) for j in (k, k + 10)]
            assert await store.notes() == {"last": 9}
            assert await store.check() == []

    async def gathered(tasks):
        return await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


def test_a_store_closes_after_the_calls_that_were_made_also_when_their_loop_has_ended(tmp_path):
    async def main():
        store = SqliteStore(tmp_path / "a.db")
        await store.save(rows=example_rows(URLS))
        tasks = [asyncio.ensure_future(store.save([outcome(k)])) for k in range(5)]
        tasks += [asyncio.ensure_future(store.counts()), asyncio.ensure_future(store.close())]
        await asyncio.sleep(0)
        return tasks  # the loop cancels them

    asyncio.run(main())
    deadline = time.monotonic() + 10.0
    while True:  # the lock is given back when all is written
        try:
            again = BlockingStore(SqliteStore(tmp_path / "a.db"))
            break
        except StoreInUseError:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    with again:
        assert again.counts()["observations"] == 5


def test_a_slow_write_holds_up_neither_the_loop_nor_reads(tmp_path):
    async def main():
        async with SqliteStore(tmp_path / "a.db") as store:
            await store.save(rows=example_rows(URLS))
            other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")  # the save waits for this
            saving = asyncio.ensure_future(store.save([outcome()]))
            await asyncio.sleep(0)
            assert (await store.counts())["observations"] == 0
            assert not saving.done()
            other.execute("ROLLBACK")
            other.close()
            await saving
            assert (await store.counts())["observations"] == 1

    asyncio.run(main())


# --- the disk is full ----------------------------------------------------------------------------------------------


def test_a_full_disk_undoes_the_batch_and_keeps_all_before_it(tmp_path):
    store = BlockingStore(SqliteStore(tmp_path / "a.db"))
    rows = example_rows(URLS)
    store.save([outcome(0)], rows)
    pages = store.store._database.writer.execute("PRAGMA page_count").fetchone()[0]
    store.store._database.writer.execute(f"PRAGMA max_page_count = {pages + 5}")
    body = np.random.default_rng(0).bytes(200_000)
    with pytest.raises(StoreError, match="the disk is full; the last batch was not written, all before it was"):
        store.save([outcome(1, body=body)], example_rows(URLS, seed=1), notes={"n": 1})
    assert [o.digest for o in store.observations()] == ["d0"]
    assert not same_rows(rows, store.load())
    assert store.notes() == {}
    assert store.check() == []
    store.store._database.writer.execute("PRAGMA max_page_count = 100000")
    store.save([outcome(1, body=body)])
    assert store.body(store.versions(URLS[1])[0].key) == body
    store.close()


# --- schema --------------------------------------------------------------------------------------------------------


def test_databases_of_the_first_version_are_brought_up_to_date(tmp_path):
    old = sqlite3.connect(tmp_path / "a.db")
    old.executescript((HERE / "version_1.sql").read_text())
    old.execute("PRAGMA user_version = 1")
    old.close()
    with BlockingStore(SqliteStore(tmp_path / "a.db")) as store:
        assert migrating.version_of(store.store._database.writer) == migrating.migrations()[-1][0]
        assert store.counts() == {"pages": 3, "copies": 2, "observations": 3, "bodies": 1}
        assert store.body(store.versions("https://a.example/0")[0].key) == b"<p>second"
        assert [o.changed for o in store.observations("https://a.example/0")] == [None, True]
        engine = Engine.restore(store.load(), 1.7e9 + 5000)
        assert engine.explain(int(engine.id("https://a.example/0")[0]), 1.7e9 + 5000).n_changes == 1
        assert store.check() == []


def test_migrations_are_applied_once_each_and_wholly(tmp_path, monkeypatch):
    first = migrating.migrations()
    BlockingStore(SqliteStore(tmp_path / "a.db")).close()
    last = first[-1][0]
    good = (last + 1, "ALTER TABLE page ADD COLUMN colour TEXT;")
    bad = (last + 2, "CREATE TABLE more (x); INSERT INTO nowhere VALUES (1);")
    monkeypatch.setattr(migrating, "migrations", lambda: [*first, good, bad])
    with pytest.raises(StoreError, match="nowhere"):
        BlockingStore(SqliteStore(tmp_path / "a.db"))
    monkeypatch.setattr(migrating, "migrations", lambda: [*first, good])
    with BlockingStore(SqliteStore(tmp_path / "a.db")) as store:
        assert migrating.version_of(store.store._database.writer) == last + 1, (
            "the good one was applied, the bad one wholly undone"
        )
        store.save([outcome()], example_rows(URLS))
    monkeypatch.setattr(migrating, "migrations", lambda: first)
    with pytest.raises(StoreError, match=f"version {last + 1}, this recrawl knows only {last}"):
        BlockingStore(SqliteStore(tmp_path / "a.db"))


def test_a_visitor_does_not_change_the_schema(tmp_path, monkeypatch):
    BlockingStore(SqliteStore(tmp_path / "a.db")).close()
    first = migrating.migrations()
    monkeypatch.setattr("recrawl.store.sqlite.database.migrations", lambda: [*first, (99, "")])
    with pytest.raises(StoreError, match="recrawl run brings it up to date"):
        BlockingStore(SqliteStore(tmp_path / "a.db", exclusive=False))


# --- bodies --------------------------------------------------------------------------------------------------------


def test_a_damaged_body_is_noticed(tmp_path):
    with BlockingStore(SqliteStore(tmp_path / "a.db")) as store:
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
    with BlockingStore(SqliteStore(tmp_path / "a.db")) as store:
        store.save([outcome(k, body=text) for k in range(20)], example_rows(URLS))
        size = store.store._database.reader.execute("SELECT sum(length(data)) FROM body").fetchone()[0]
        assert size < len(text) / 100
    with BlockingStore(SqliteStore(tmp_path / "b.db", keep=0)) as store:
        store.save([outcome(0, body=text)], example_rows(URLS))
        assert store.versions(URLS[0]) == []


# --- rows of an engine ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sources", [0, 1, 2])
def test_rows_written_at_different_times_make_the_engine_that_wrote_them(tmp_path, sources):
    """Pages are written only when they are crawled, while the prior is fitted again and again and moves all of them."""
    rng, now = np.random.default_rng(sources), 1.7e9
    engine = Engine(1.0, start=now, sources=sources, host_spacing=0.1, host_concurrency=2)
    urls = [f"https://{'abc'[k % 3]}.example/{k}" for k in range(150)]
    ids = engine.add(urls, now)
    store = BlockingStore(SqliteStore(tmp_path / "a.db"))
    store.save(rows=engine.rows(ids))
    for _ in range(300):
        now += 3000.0
        ids = engine.pick(now, 3)
        kind = rng.random(len(ids))
        engine.record(ids, now, changed=rng.random(len(ids)) < 0.3, failed=kind < 0.1, gone=kind > 0.99)
        store.save(rows=engine.rows(ids))
    assert engine.stats["refits"] >= 3
    again = Engine.restore(store.load(), now)
    store.close()
    a, b = engine.rows(), again.rows()
    order = [b["url"].index(url) for url in a["url"]]
    for name in ("gamma", "fetched_at", "watched", "n_crawls", "n_changes", "wait_until", "failures", "given"):
        assert np.allclose(a[name], b[name][order], rtol=1e-9), name
    assert np.allclose(a["change_rate"], b["change_rate"][order], rtol=1e-6)
    assert a["hosts"] == b["hosts"]
    for _ in range(50):
        now += 3000.0
        picks = [sorted(e.url(e.pick(now, 2))) for e in (engine, again)]
        if sources < 2:
            assert picks[0] == picks[1]
        for e, urls in ((engine, picks[0]), (again, picks[1])):
            e.record(e.id(urls), now, changed=[url.endswith("1") for url in urls])


@pytest.mark.slow
def test_many_pages_are_loaded_quickly(tmp_path):
    n = 50_000
    with BlockingStore(SqliteStore(tmp_path / "a.db")) as store:
        store.save(rows=example_rows([f"https://h{k % 100}.example/{k}" for k in range(n)]))
        began = time.process_time()
        rows = store.load()
        took = time.process_time() - began
    assert len(rows["url"]) == n
    assert took < 3.0
