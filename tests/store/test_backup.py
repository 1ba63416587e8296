"""Backups: a copy of a database at one moment, while others write to it."""

import asyncio
import os
import sqlite3
import threading

import pytest
from crawl.driving import World, changing

from recrawl.errors import ParameterError, StoreError
from recrawl.store import BlockingStore, SqliteStore
from recrawl.store.sqlite import backup as module
from recrawl.store.sqlite.backup import back_up, backup_name, old_backups

URLS = [f"https://h{k % 10}.example/{k}" for k in range(60)]


def counted(path):
    with BlockingStore(SqliteStore(path, exclusive=False)) as store:
        assert store.check() == []
        return store.counts(), store.event_counts(), list(store.observations())


def test_a_backup_while_a_crawl_runs_is_a_prefix_of_it(tmp_path, monkeypatch):
    """Between any two steps of the copy the crawl commits: the copy is what there was when it began."""
    monkeypatch.setattr(module, "_STEP", 4)
    world = World(changing, URLS, store=SqliteStore(tmp_path / "a.db"), budget=5.0, delay=0.1, robots=False)
    asked, answered, found = threading.Semaphore(0), threading.Semaphore(0), []
    steps = []

    def step(done, total):
        steps.append((done, total))
        asked.release()
        assert answered.acquire(timeout=300)

    def copy():
        try:
            found.append(back_up(tmp_path / "a.db", tmp_path / "copy.db", progress=step))
        finally:
            over.set()
            asked.release()

    over, thread = threading.Event(), threading.Thread(target=copy)
    try:
        world.run(n=30)
        before = world.store.counts()["observations"]
        thread.start()
        while asked.acquire(timeout=300) and not over.is_set():
            assert not (tmp_path / "copy.db").exists(), "it appears when it is complete"
            if len(steps) < 4:
                world.run(n=3)
            answered.release()
        after = world.store.counts()["observations"]
    finally:
        thread.join()
        world.store.close()
    assert len(steps) > 5
    assert all(total == steps[0][1] for _, total in steps), "the copy was never begun again"
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    counts, events, observations = counted(tmp_path / "copy.db")
    assert (found[0].pages, found[0].observations) == (60, before) == (counts["pages"], counts["observations"])
    assert after > before
    _, later, all_observations = counted(tmp_path / "a.db")
    assert observations == all_observations[:before], "what was saved first, without gaps"
    assert events["last"] < later["last"]
    assert sorted(os.listdir(tmp_path)) == ["a.db", "a.db.lock", "copy.db"], "nothing else is left"


def test_a_backup_can_be_crawled_further(tmp_path):
    world = World(changing, URLS[:5], store=SqliteStore(tmp_path / "a.db"), budget=5.0, delay=0.1, robots=False)
    world.run(n=5)
    back_up(tmp_path / "a.db", tmp_path / "b.db")
    world.store.close()
    other = World(changing, store=SqliteStore(tmp_path / "b.db"), budget=5.0, delay=0.1, robots=False)
    other.clock._now = world.clock.now() + 10.0
    other.run(n=5)
    assert other.store.counts()["observations"] == 10
    other.store.close()


def test_what_is_no_database_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("not a database\n" * 100)
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    for name, why in (("notes.txt", "not a database"), ("other.db", "not a database of recrawl"), ("no.db", "no such")):
        with pytest.raises(StoreError, match=why):
            back_up(tmp_path / name, tmp_path / "copy.db")
    with pytest.raises(StoreError, match="no such folder"):
        back_up(tmp_path / "other.db", tmp_path / "no" / "copy.db")
    assert sorted(os.listdir(tmp_path)) == ["notes.txt", "other.db"]


def test_a_database_in_use_is_not_overwritten(tmp_path):
    async def main():
        async with SqliteStore(tmp_path / "a.db"), SqliteStore(tmp_path / "b.db"):
            for to in ("a.db", "b.db"):
                with pytest.raises(ParameterError, match="in use"):
                    back_up(tmp_path / "a.db", tmp_path / to)
        back_up(tmp_path / "a.db", tmp_path / "b.db")

    asyncio.run(main())


def test_old_backups_in_a_folder(tmp_path):
    names = [backup_name("x/my.db", 86400.0 * k) for k in range(5)]
    for name in (*names, "my.db", "my-2.db", "other-19700101T000000Z.db"):
        (tmp_path / name).touch()
    assert [path.name for path in old_backups("my.db", tmp_path, 3)] == names[:2]
