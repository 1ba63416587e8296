"""SqliteStore: locks, paths, cancelled calls, full disks, other processes."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

from recrawl.errors import StoreError, StoreInUseError
from recrawl.store import BlockingStore, Outcome, SqliteStore
from recrawl.store.sqlite.lock import Lock
from recrawl.store.testing.rows import example_rows, same_rows

URLS = [f"https://a.example/{k}" for k in range(20)]


def opened(path, **options):
    return BlockingStore(SqliteStore(path, **options))


def outcome(k=0, **more):
    return Outcome(URLS[k], 1.7e9 + k, status=200, digest=f"d{k}", **more)


# --- one writer ----------------------------------------------------------------------------------------------------


def test_a_second_run_is_refused_with_a_line_that_names_the_first(tmp_path):
    with opened(tmp_path / "a.db"):
        with pytest.raises(StoreInUseError, match=rf"a\.db: in use by process {os.getpid()}; only one run at a time"):
            opened(tmp_path / "a.db")
        with opened(tmp_path / "a.db", exclusive=False) as other:
            assert other.counts()["pages"] == 0
    opened(tmp_path / "a.db").close()


def test_a_lock_file_that_cannot_be_opened_is_named_in_one_line(tmp_path):
    (tmp_path / "a.db.lock").mkdir()
    with pytest.raises(StoreError) as problem:
        opened(tmp_path / "a.db")
    assert str(problem.value) == f"{tmp_path / 'a.db.lock'}: Is a directory"
    with pytest.raises(StoreError, match=r"No such file or directory$"):
        Lock(tmp_path / "missing" / "a.db")


def test_the_lock_is_given_back_when_its_process_is_killed(tmp_path):
    script = "import sys, time\nfrom recrawl.store import SqliteStore\ns = SqliteStore(sys.argv[1])\n"
    script += "print(1, flush=True)\ntime.sleep(60)"
    command = [sys.executable, "-c", script, str(tmp_path / "a.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(StoreInUseError, match=f"in use by process {other.pid}"):
            opened(tmp_path / "a.db")
        other.send_signal(signal.SIGKILL)
    opened(tmp_path / "a.db").close()


def test_commands_are_queued_beside_the_run(tmp_path):
    with (
        opened(tmp_path / "a.db") as store,
        opened(tmp_path / "a.db", exclusive=False) as other,
    ):
        other.queue([{"add": URLS}])
        assert [command for _, command in store.commands()] == [{"add": URLS}]


def test_a_database_that_stays_locked_is_refused_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("recrawl.store.sqlite.database._WAIT", 0.2)
    store = opened(tmp_path / "a.db")
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
        opened(tmp_path / "text.db")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE mine (x)")
    other.close()
    with pytest.raises(StoreError, match="not one of recrawl"):
        opened(tmp_path / "other.db")
    with pytest.raises(StoreError, match="no such folder"):
        opened(tmp_path / "nowhere" / "a.db")
    with pytest.raises(StoreError, match="no such database"):
        opened(tmp_path / "absent.db", exclusive=False)
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
    deadline = time.monotonic() + 300.0
    while True:  # the lock is given back when all is written
        try:
            again = opened(tmp_path / "a.db")
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
    store = opened(tmp_path / "a.db")
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
