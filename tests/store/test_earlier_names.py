"""Databases from before tables and columns had their names of today: opened, brought up to date, with every row.

``version_10.sql`` was written by the last version with the earlier names: five pages on two hosts, 28 crawls, the last
page with a given rate; two subscribers, two commands, a mark, a signal, a listing, a lease.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from recrawl import Engine
from recrawl.store import BlockingStore, SqliteStore, Subscriber
from recrawl.store.sqlite.backup import back_up
from recrawl.store.sqlite.migrate import migrations, version_of
from recrawl.store.tables import TABLES, copy_store

NOW = 1700403200.0
TABLE_NAMES = {"command": "post", "last_event": "told", "subscriber": "follower"}
COLUMN_NAMES = {"fixed_rate": "told"}
NEW_COLUMNS = {"signalled": "0"}  # added since, with what they hold for earlier rows
EARLIER = {"version_1": 1, "version_4": 4, "credited_signals": 4, "version_10": 10}


def database(path, name):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((Path(__file__).parent / f"{name}.sql").read_text())
        connection.execute(f"PRAGMA user_version = {EARLIER[name]}")
    return path


@pytest.fixture
def old(tmp_path):
    return database(tmp_path / "old.db", "version_10")


def opened(path):
    return BlockingStore(SqliteStore(path))


def earlier_rows(path, table):
    """The rows of a table by its earlier name and those of its columns."""
    columns = ", ".join((NEW_COLUMNS | COLUMN_NAMES).get(name, name) for name in table.columns)
    query = f"SELECT {columns} FROM {TABLE_NAMES.get(table.name, table.name)} ORDER BY {', '.join(table.key)}"
    with closing(sqlite3.connect(path)) as connection:
        return [table.typed(row) for row in connection.execute(query)]


def schema(path):
    """Columns, indexes and foreign keys of each table; there are no triggers."""
    with closing(sqlite3.connect(path)) as connection:
        made = connection.execute("SELECT name, type FROM sqlite_master").fetchall()
        assert {kind for _, kind in made} == {"table", "index"}
        asked = ("table_info", "index_list", "foreign_key_list")
        return {
            name: [{row[1:] for row in connection.execute(f"PRAGMA {what}({name})")} for what in asked]
            for name, kind in made
            if kind == "table"
        }


@pytest.mark.parametrize("name", EARLIER)
def test_every_version_gets_the_schema_of_a_new_database(tmp_path, name):
    opened(database(tmp_path / "old.db", name)).close()
    opened(tmp_path / "new.db").close()
    found = schema(tmp_path / "old.db")
    assert found == schema(tmp_path / "new.db")
    assert not {*TABLE_NAMES.values()} & {*found}


def test_every_row_is_there_under_the_new_names(old):
    tables = [table for table in TABLES if table.name != "event_total"]
    before = {table.name: earlier_rows(old, table) for table in tables}
    assert all(before.values())

    async def rows(store, table):
        return [row async for batch in store.table_rows(table) for row in batch]

    with opened(old) as store:
        assert version_of(store.store._database.writer) == migrations()[-1][0]
        assert {table.name: store.run(rows(store.store, table)) for table in tables} == before
        assert store.check() == []


def test_pages_commands_subscribers_and_events_are_those_of_before(old):
    saved = json.loads(dict(earlier_rows(old, TABLES[-1]))["engine"])
    with opened(old) as store:
        engine = Engine.restore(store.load(), NOW)
        assert [command for _, command in store.commands()] == [
            {"remove": ["https://b.example/y/3"]},
            {"add": ["https://a.example/late"]},
        ]
        assert [(one.name, one.failures) for one in store.subscribers()] == [("index", 0), ("webhook", 2)]
        assert [event.kind for event in store.events()] == ["new"] * 5 + ["changed"] * 11 + ["gone"]
    belief = engine.beliefs.belief
    assert engine.rows()["fixed_rate"].tolist() == [False] * 4 + [True]
    assert belief.ledger.tolist() == saved["account"]
    assert saved["account"][0] > 0
    assert engine.calibration.recent.tolist() == saved["stated"]["lately"]
    assert engine.calibration.knots.tolist() == saved["stated"]["knots"]
    assert not {"told", "account", "stated"} & {*engine.rows()}


def test_numbers_keys_and_marks_go_on(old):
    with closing(sqlite3.connect(old)) as connection:
        ((mark,),) = connection.execute("SELECT mark FROM page_log WHERE mark IS NOT NULL")
        numbers = [row[0] for row in connection.execute("SELECT id FROM post")]
    with opened(old) as store:
        store.save(applied=numbers)
        store.queue([{"add": ["https://a.example/more"]}])
        assert [number for number, _ in store.commands()] == [numbers[-1] + 1], "no number is used twice"
        assert len(store.run(store.store.changes_since(mark)).urls) == 5
        last = store.event_counts()["last"]
        store.save(removed=["https://a.example/x/0"], at=NOW)
        assert store.events(last)[0].number == last + 1
        left = "SELECT count(*) FROM last_event"
        assert store.store._database.writer.execute(left).fetchone() == (4,), "removed with its page"
        store.save_subscriber(Subscriber("index", cursor=last))
        assert [one.cursor for one in store.subscribers()] == [last, 1]
        assert store.check() == []


def test_copies_and_backups_of_it_are_whole(old, tmp_path):
    assert back_up(old, tmp_path / "backup.db").pages == 5  # of a database that is not up to date yet
    with opened(old) as store, opened(tmp_path / "copy.db") as copy, opened(tmp_path / "backup.db") as backup:
        counts = store.run(copy_store(store.store, copy.store))
        assert all(counts.values())
        assert copy.commands() == backup.commands() == store.commands()
        one, other = (Engine.restore(each.load(), NOW).rows() for each in (store, copy))
        assert one["ledger"] == other["ledger"] != [0.0, 0.0]
        assert one["gamma"].tolist() == other["gamma"].tolist()


def test_rows_that_are_saved_again_have_the_new_names(old):
    with opened(old) as store:
        engine = Engine.restore(store.load(), NOW)
        store.save(rows=engine.rows(engine.ids()[:1]))
        saved = store.load()
        assert {"ledger", "calibration", "fixed_rate"} <= {*saved}
        assert not {"told", "account", "stated"} & {*saved}
        again = Engine.restore(saved, NOW)
    assert again.rows()["ledger"] == engine.rows()["ledger"]
    assert again.rows()["calibration"] == engine.rows()["calibration"]
