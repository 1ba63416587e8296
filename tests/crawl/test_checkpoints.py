"""Checkpoints of a crawl: used when they fit, ignored when they do not, never ahead of the database."""

import asyncio
import logging
import shutil

import numpy as np
import pytest

from recrawl._system import forks
from recrawl.crawl.config.rules import Rule, Rules
from recrawl.crawl.run import checkpoints
from recrawl.crawl.run.opening.pages import add_pages, open_engine, save_pages
from recrawl.engine.checkpoint import checkpoint_about, write_checkpoint
from recrawl.store import BlockingStore, SqliteStore

from .driving import URLS, World, changing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not forks.AVAILABLE, reason="checkpoints are written by a copy of the process"),
]


class Kept(World):
    """A world with an SQLite database and checkpoints."""

    checkpoint = True

    def __init__(self, folder, **options):
        self.path = folder / "a.db"
        store = BlockingStore(SqliteStore(self.path))
        super().__init__(changing, URLS[:60], store=store, budget=2.0, delay=0.5, checkpoint_pages=1, **options)

    def opened(self):
        settings = {"budget": self.budget, "host_spacing": self.delay, "host_concurrency": 1}
        settings |= {"min_change_probability": self.least, "save": True, **self.choices}
        opening = open_engine(
            self.store.store, self.clock.now(), rules=self.rules, checkpoint=self.checkpoint, **settings
        )
        return self.store.run(opening)

    @property
    def file(self):
        return self.store.store.checkpoint_path

    def built(self):
        """The engine by rows alone."""
        hidden = self.file.rename(self.file.with_name("hidden"))
        try:
            return self.opened()
        finally:
            hidden.rename(self.file)

    def compare(self):
        """Both engines know the same of all pages; the one by its checkpoint."""
        one, other = self.opened(), self.built()
        one.scheduler._check()
        rows = []
        for engine in (one, other):
            found = engine.rows()
            order = np.argsort(found["url"])
            names = ("fetched_at", "n_crawls", "n_changes", "watched", "given", "importance", "wait_until", "failures")
            rows.append(
                {"url": sorted(found["url"])} | {name: np.asarray(found[name])[order].tolist() for name in names}
            )
        assert rows[0] == rows[1]
        return one


def said(caplog):
    """The reasons for which checkpoints were ignored; an empty one where one was used."""
    records = [record for record in caplog.records if record.getMessage() in ("checkpoint.ignored", "checkpoint.used")]
    return [record.fields.get("reason", "") for record in records]


@pytest.fixture
def world(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="recrawl")
    found = Kept(tmp_path)
    yield found
    found.store.close()


def test_a_run_ends_with_a_checkpoint_that_the_next_one_uses(world, caplog):
    world.run(60.0)
    assert world.file.is_file()
    assert [one.name for one in world.file.parent.glob("*.part")] == []
    engine = world.compare()
    assert said(caplog) == [""]
    assert engine.clocks.arrays.expected.sum() > 0.0, "what groups did lately is known"
    assert world.run(30.0).ended > 20
    assert world.store.store._reads.writes_since(checkpoint_about(world.file)["mark"]) == 0


def test_rows_saved_since_are_replayed_after_a_kill(world, caplog):
    world.run(60.0)
    for seconds in (8.0, 5.0):
        world.killed_after(seconds)
        engine = world.compare()
        assert said(caplog)[-1] == ""
        assert len(engine) == 60
    assert world.run(30.0).ended > 20


def test_checkpoints_are_written_while_the_crawl_runs_and_survive_a_kill_at_any_moment(world, caplog, monkeypatch):
    monkeypatch.setattr(checkpoints, "_EVERY", 5.0)
    marks = set()
    for seconds in (23.0, 8.3, 11.0, 5.2, 26.0):
        world.killed_after(seconds, commit_delay=1.0)
        marks |= {checkpoint_about(world.file)["mark"]}
        world.compare()
    assert len(marks) > 2
    assert set(said(caplog)) == {""}
    noted = world.store.store._database.writer.execute("SELECT count(mark) FROM page_log").fetchone()[0]
    assert noted <= 7, "marks before the last complete checkpoint are dropped"


def test_a_state_is_never_ahead_of_the_database(world, monkeypatch):
    """The file appears only when all that the engine knew is committed."""
    monkeypatch.setattr(checkpoints, "_EVERY", 5.0)
    copies = []
    real = checkpoints._replace

    def replace(partial, path):
        real(partial, path)
        copies.append(world.path.with_name(f"copy{len(copies)}.db"))
        for end in ("", "-wal", ".checkpoint"):  # what a crash at this moment leaves
            shutil.copy(f"{world.path}{end}", f"{copies[-1]}{end}")

    monkeypatch.setattr(checkpoints, "_replace", replace)
    world.run(40.0, commit_delay=1.0)
    assert len(copies) > 3
    store = world.store
    for copy in copies:
        world.store = BlockingStore(SqliteStore(copy))
        world.compare()
        world.store.close()
    world.store = store


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (lambda data: data[: len(data) // 2], "cut"),
        (lambda data: data[:5000] + bytes([data[5000] ^ 4]) + data[5001:], "checksum"),
        (lambda data: b"", "too short"),
    ],
)
def test_a_damaged_checkpoint_is_ignored(world, caplog, harm, why):
    world.run(60.0)
    world.file.write_bytes(harm(world.file.read_bytes()))
    world.compare()
    assert why in said(caplog)[0]
    world.run(30.0)
    world.compare()
    assert said(caplog)[-1] == "", "the next run has written another"


def test_checkpoints_of_other_databases_formats_rules_and_settings_are_ignored(world, caplog, tmp_path):
    world.run(60.0)
    whole, engine = world.file.read_bytes(), world.opened()
    about = checkpoint_about(world.file)
    assert said(caplog) == [""]

    def ignored(why):
        caplog.clear()
        world.opened()
        assert why in said(caplog)[0]

    for other, why in (
        ({"mark": "ab"}, "not about this database"),
        ({"format": 2}, "format 2"),
        ({"source": ""}, "version"),
    ):
        write_checkpoint(engine, world.file, {**about, **other})
        ignored(why)
    world.file.write_bytes(whole)
    world.rules = Rules([Rule("*", importance=3.0)])
    ignored("other rules")
    world.rules = Rules()
    world.choices = {"half_life": 100.0}
    ignored("other settings")
    world.choices = {}
    world.clock._now -= 1000.0
    ignored("clock")


def test_a_backup_that_is_put_back_is_used_with_a_checkpoint_only_if_it_has_its_mark(world, caplog):
    world.run(30.0)
    for end in ("", "-wal"):
        shutil.copy(f"{world.path}{end}", f"{world.path}.kept{end}")
    world.run(30.0)  # a newer checkpoint
    world.store.close()
    for end in ("", "-wal"):
        shutil.copy(f"{world.path}.kept{end}", f"{world.path}{end}")
    world.store = BlockingStore(SqliteStore(world.path))
    world.compare()
    assert "not about this database" in said(caplog)[-1]


def test_pages_that_commands_change_are_replayed(world, caplog):
    world.run(60.0)
    engine = world.opened()
    new = add_pages(engine, world.rules, ["https://new.example/1", "https://h1.example/500"], world.clock.now())
    world.store.run(save_pages(engine, world.store.store, new))
    some = engine.id(URLS[:3])
    engine.update(some, importance=[5.0, 6.0, 7.0])
    engine.defer(some[:1], world.clock.now() + 1e6)
    world.store.run(save_pages(engine, world.store.store, some))
    world.store.save(removed=[URLS[5], "https://unknown.example/"], at=world.clock.now())
    engine = world.compare()
    assert said(caplog)[-1] == ""
    assert len(engine) == 61
    assert engine.given[engine.id(URLS[:3])].tolist() == [5.0, 6.0, 7.0]


def test_without_checkpoints_nothing_is_noted(world):
    world.run(30.0)
    world.checkpoint = False
    world.run(30.0, checkpoint_pages=0)
    assert not world.file.exists()
    assert world.store.store._database.writer.execute("SELECT count(*) FROM page_log").fetchone()[0] == 0


def test_a_checkpoint_that_cannot_be_written_does_not_end_the_crawl(world, caplog, monkeypatch):
    monkeypatch.setattr(forks, "ended_well", lambda copy: False)
    assert world.run(30.0).ended > 10
    assert not world.file.exists()
    assert any(record.getMessage() == "checkpoint.failed" for record in caplog.records)
    assert [one.name for one in world.file.parent.glob("*.part")] == []


def test_small_engines_are_not_written(world):
    world.run(30.0, checkpoint_pages=61)
    assert not world.file.exists()
    assert asyncio.run(world.store.store.writes_since("")) == 0
