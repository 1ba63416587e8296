"""PostgresStore on a real server: the protocol, one owner, lost connections, commands, copies to and from SQLite."""

import asyncio
import itertools
import json
import os
import sqlite3
import threading

import pytest
from postgres_server import PASSWORD

from recrawl.cli.commands import call
from recrawl.crawl import ManualClock, MemoryWeb, Rules, Settings, Web, add_pages, open_crawl, open_engine, save_pages
from recrawl.errors import ParameterError, StoreError, StoreInUseError, StoreMissingError, StoreUnreachableError
from recrawl.store import (
    BlockingStore,
    EventLimits,
    Outcome,
    PendingSignal,
    PostgresStore,
    SqliteStore,
    StoredListing,
    Subscriber,
    check_store,
    open_store,
)
from recrawl.store.columns import cells, whole
from recrawl.store.leases import RECORDED, Lease
from recrawl.store.postgres import migrate as migrating
from recrawl.store.postgres import statements as sql
from recrawl.store.postgres.address import Address, shown
from recrawl.store.postgres.session import Session
from recrawl.store.postgres.writes import _record
from recrawl.store.tables import TABLES, compare_table, copy_store
from recrawl.store.testing.contract import check_event_limits
from recrawl.store.testing.rows import example_rows, same_rows

pytestmark = pytest.mark.slow

NUMBER = itertools.count()
URLS = [f"https://a.example/{k}" for k in range(20)]


@pytest.fixture
def address(postgres):
    return postgres.address(f"t{next(NUMBER)}")


def opened(address, **options):
    return BlockingStore(PostgresStore(address, **options))


def outcome(k=0, **more):
    return Outcome(URLS[k], 1.7e9 + k, status=200, digest=f"d{k}", **more)


# --- the protocol --------------------------------------------------------------------------------------------------


def test_the_store_keeps_to_the_protocol(postgres):
    asyncio.run(check_store(lambda: PostgresStore(postgres.address(f"t{next(NUMBER)}"), keep=2)))


def test_limits_of_events(postgres):
    limits = (EventLimits(rows=5), EventLimits(age=100.0), EventLimits(texts=20))
    makers = (lambda kept=kept: PostgresStore(postgres.address(f"t{next(NUMBER)}"), events=kept) for kept in limits)
    asyncio.run(check_event_limits(*makers))


def test_many_rows_are_written_by_copy_and_read_in_batches(address, monkeypatch):
    monkeypatch.setattr("recrawl.store.postgres.pages.MANY", 1000)
    urls = [f"https://a.example/{k}" for k in range(2500)]
    rows, newer = example_rows(urls), example_rows(urls[:1200], seed=1)
    with opened(address) as store:
        store.save(rows=rows)
        assert not same_rows(rows, store.load())
        store.save(rows=newer)
        found = store.load()
        assert found["url"] == urls, "pages in the order in which they came"
        assert (found["gamma"][:1200] == newer["gamma"]).all()
        assert (found["gamma"][1200:] == rows["gamma"][1200:]).all()


def test_calls_from_several_threads_and_cancelled_calls(address):
    store, problems = PostgresStore(address), []
    asyncio.run(store.save(rows=example_rows(URLS)))

    def run(first):
        try:
            asyncio.run(work(first))
        except BaseException as problem:
            problems.append(problem)

    async def work(first):
        for k in range(first, 20, 4):
            await store.save([outcome(k, changed=True)])
            await store.copies(URLS[:5])

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []

    async def cancelled():
        tasks = [asyncio.ensure_future(store.save([outcome(k)], notes={"last": k})) for k in range(10)]
        await asyncio.sleep(0)  # all are made
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await store.save()  # after all before it

    asyncio.run(cancelled())
    with BlockingStore(store) as seen:
        assert sorted(one.began_at for one in itertools.islice(seen.observations(), 20)) == [
            1.7e9 + k for k in range(20)
        ]
        assert [one.digest for one in seen.observations()][20:] == [f"d{k}" for k in range(10)], "whole and in order"
        assert seen.notes() == {"last": 9}
        assert seen.check() == []
    with pytest.raises(StoreError, match="is closed"):
        asyncio.run(store.counts())


# --- one owner -----------------------------------------------------------------------------------------------------


def test_a_second_run_is_refused_with_a_line_that_names_the_first(address):
    with opened(address) as store:
        with pytest.raises(StoreInUseError, match=rf"in use by process {os.getpid()} on .*; only one run at a time"):
            opened(address)
        store.store.announce("reload")
        with opened(address, exclusive=False) as other:
            holder = other.store.holder()
            assert (holder.pid, holder.announced) == (os.getpid(), ("reload",))
            other.queue([{"add": URLS}])
            assert [command for _, command in store.commands()] == [{"add": URLS}]
    with opened(address) as again, opened(address, exclusive=False) as other:
        again.close()
        assert other.store.holder() is None


def test_an_owner_that_another_has_followed_writes_nothing(address):
    first = opened(address)
    first.save([outcome()], example_rows(URLS))
    end_connections(address)
    with opened(address) as second:
        second.save([outcome(1)])
        with pytest.raises(StoreInUseError):
            first.save([outcome(2)])
    with pytest.raises(StoreInUseError, match="another process has had it meanwhile"):
        first.save([outcome(3)])
    first.close()
    with opened(address, exclusive=False) as seen:
        assert [one.digest for one in seen.observations()] == ["d0", "d1"]


def test_a_lost_connection_is_made_again_and_keeps_the_lock(address):
    with opened(address) as store:
        store.save(rows=example_rows(URLS))
        for k in range(3):
            end_connections(address)
            store.save([outcome(k)])
            assert store.counts()["observations"] == k + 1
        with pytest.raises(StoreInUseError):
            opened(address)


def test_an_error_inside_the_driver_is_a_lost_connection(address):
    """asyncpg says so of about one in a hundred connections that the server ends between two statements."""
    import asyncpg

    async def nothing(connection):
        pass

    async def lost(connection):
        raise asyncpg.InternalClientError("cannot switch to state 15; another operation (2) is in progress")

    session = Session(Address.parse(address), "test", nothing, reading=False)
    with pytest.raises(StoreUnreachableError, match="the connection to the server was lost"):
        session.wait(lost)
    assert session.wait(lambda connection: connection.fetchval("SELECT 2")) == 2
    session.end()


def end_connections(address):
    """Let the server end all connections that look at a schema."""
    parsed = Address.parse(address)

    async def end():
        import asyncpg

        connection = await asyncpg.connect(parsed.dsn)
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'recrawl'"
        )
        while await connection.fetchval("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'recrawl'"):
            await asyncio.sleep(0.01)
        await connection.close()

    asyncio.run(end())


# --- the schema ----------------------------------------------------------------------------------------------------


def test_migrations_are_applied_once_each_and_wholly(address, monkeypatch):
    first = migrating.migrations()
    last = first[-1][0]
    with pytest.raises(StoreMissingError, match="there is no such database; recrawl add makes one"):
        opened(address, exclusive=False)
    with pytest.raises(StoreMissingError):
        opened(address, create=False)
    opened(address).close()
    good = (last + 1, "ALTER TABLE page ADD COLUMN colour text;")
    bad = (last + 2, "CREATE TABLE more (x integer); INSERT INTO nowhere VALUES (1);")
    monkeypatch.setattr(migrating, "migrations", lambda: [*first, good, bad])
    with pytest.raises(StoreError, match="nowhere"):
        opened(address)
    monkeypatch.setattr(migrating, "migrations", lambda: [*first, good])
    with opened(address) as store:
        store.save([outcome()], example_rows(URLS))
    monkeypatch.setattr(migrating, "migrations", lambda: first)
    for exclusive in (True, False):
        with pytest.raises(StoreError, match=f"version {last + 1}, this recrawl knows only {last}; a newer recrawl"):
            opened(address, exclusive=exclusive)


def test_a_schema_with_earlier_names_is_brought_up_to_date(address, monkeypatch):
    rows, parsed = example_rows(URLS), Address.parse(address)
    earlier = tuple({"fixed_rate": "told"}.get(name, name) for name in sql.PAGE)

    async def fill_earlier():
        import asyncpg

        connection = await asyncpg.connect(parsed.dsn, server_settings={"search_path": parsed.schema})
        await migrating.migrate(connection, parsed)
        records = [_record(cell) for cell in cells(rows)]
        await connection.copy_records_to_table("page", records=records, columns=earlier)
        hosts = [(sql.key_of(name), name, *rule) for name, rule in rows["hosts"].items()]
        await connection.execute(sql.SET_HOSTS, *sql.arrays(hosts, 5))
        await connection.execute(sql.SET_NOTES, [sql.key_of("engine")], ["engine"], [whole(rows)])
        await connection.execute("UPDATE owner SET words = 'reload'")
        await connection.close()

    known = migrating.migrations()
    with monkeypatch.context() as patched:
        patched.setattr(migrating, "migrations", lambda: [one for one in known if one[0] <= 6])
        asyncio.run(fill_earlier())
    with pytest.raises(StoreError, match=f"version 6, not {known[-1][0]}; recrawl run brings it up to date"):
        opened(address, exclusive=False)
    with opened(address) as store:
        assert not same_rows(rows, store.load())
        store.store.announce("reload")
        assert store.store.holder().announced == ("reload",)


def test_copies_have_every_table_and_column_of_both_stores(address, tmp_path):
    expected = {table.name: set(table.columns) for table in TABLES}
    with opened(address), BlockingStore(SqliteStore(tmp_path / "a.db")):
        columns = rows_of(
            address, "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = $1"
        )
        mine = {}
        for table, column in columns:
            mine.setdefault(table, set()).add(column)
        connection = sqlite3.connect(tmp_path / "a.db")
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        theirs = {name: {row[1] for row in connection.execute(f"PRAGMA table_info({name})")} for name in names}
        connection.close()
    own = {"key", "only_one"}  # keys that follow from texts
    found = {name: columns - (own - expected.get(name, set())) for name, columns in mine.items()}
    assert found.keys() - {"owner", "shard_lease", "recrawl_schema_version"} == expected.keys()
    assert {name: found[name] for name in expected} == expected
    assert theirs.keys() - {"sqlite_sequence", "page_log"} == expected.keys()
    theirs["page"].discard("sources")
    theirs["event_total"] = theirs["event_total"] - {"only"} | {"last"}
    assert {name: theirs[name] for name in expected} == expected


def rows_of(address, query):
    parsed = Address.parse(address)

    async def ask():
        import asyncpg

        connection = await asyncpg.connect(parsed.dsn)
        found = await connection.fetch(query, parsed.schema)
        await connection.close()
        return [tuple(row) for row in found]

    return asyncio.run(ask())


# --- copies --------------------------------------------------------------------------------------------------------


def fill(store):
    """Something in every table, numbers with gaps, and a NUL."""
    more = {"etag": 'a\0"', "content_type": "text/html"}
    store.save([outcome(k, body=b"%d" % k, text=f"t{k}", changed=None, **more) for k in range(4)], example_rows(URLS))
    store.save([outcome(k, body=b"n%d" % k, changed=True) for k in range(4)], removed=[URLS[1]])
    store.save([Outcome(URLS[2], 1.7e9 + 50, failure="timeout"), Outcome(URLS[3], 1.7e9 + 60, status=404, gone=True)])
    store.save(signals=[PendingSignal(URLS[0], 2, 1.7e9 + 99)], notes={"token:a": {"x": [1, None]}, "é": "\0"})
    store.save(listings=[StoredListing("https://a.example/s", {"kind": "sitemap"}, b"\0\1")])
    leases = [Lease("x", URLS[0], 1.0, 2.0, conditional=True), Lease("y", URLS[2], 1.0, 2.0, RECORDED)]
    store.save(leases=leases)
    store.queue([{"add": ["u"]}, {"add": ["v"]}])
    store.save(applied=[store.commands()[0][0]])
    store.save_subscriber(Subscriber("one", cursor=2, taken=2, failure="no", failed_at=5.0))


def test_a_database_is_copied_there_and_back_and_goes_on(address, tmp_path):
    with BlockingStore(SqliteStore(tmp_path / "a.db", keep=2, events=EventLimits(rows=5))) as store:
        fill(store)
        with opened(address, keep=2) as copied, BlockingStore(SqliteStore(tmp_path / "b.db")) as back:
            counts = store.run(copy_store(store.store, copied.store))
            assert all(counts.values()), counts
            assert copied.run(copy_store(copied.store, back.store)) == counts
            assert back.run(compare(store.store, back.store)) == counts
            for one in (store, copied, back):
                one.save([Outcome(URLS[0], 1.7e9 + 100, status=200, digest="new", changed=True)])
                one.queue([{"add": ["w"]}])
                assert one.check() == []
            assert store.events() == copied.events() == back.events(), "events go on with the next number"
            assert store.commands() == copied.commands() == back.commands()
            assert store.urls() == copied.urls()
            with pytest.raises(StoreError, match="is not empty: it has rows of page"):
                store.run(copy_store(store.store, copied.store))
            copied.save(notes={"é": "other"})
            with pytest.raises(StoreError, match="row 'é' of note differs from"):
                store.run(compare(store.store, copied.store))


async def compare(one, other):
    return {table.name: await compare_table(one, other, table) for table in TABLES}


# --- commands ------------------------------------------------------------------------------------------------------


def test_commands_take_an_address_and_print_no_password(postgres, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    address = postgres.address(f"t{next(NUMBER)}", password="geheim")

    def run(*argv, code=0):
        found = call([*argv])
        printed = capsys.readouterr()
        assert found == code, printed.err
        assert "geheim" not in printed.out + printed.err
        assert printed.err.count("\n") == (1 if code else 0)
        return printed.out or printed.err

    at = ["--database", address]
    assert "there is no such database; recrawl add makes one" in run("status", *at, code=2)
    assert "there is no such database" in run("run", "--contact", "a@example.org", *at, code=2)
    run("add", *URLS[:3], "--importance", "2", *at)
    assert json.loads(run("status", "--json", *at))["pages"] == 3
    assert "no copy yet" in run("why", URLS[0], *at)
    run("set", URLS[0], "--importance", "5", *at)
    run("export", "--pages", "pages.csv", *at)
    run("export", "--observations", "log.csv", *at)
    run("remove", URLS[1], *at)
    run("token", "add", "cms", *at)
    assert "cms" in run("token", "list", *at)
    run("events", *at)
    run("signals", *at)
    run("audit", "--list", *at)
    assert "no crawl is running" in run("reload", *at, code=2)
    with opened(address):
        assert "queued for the running crawl" in run("add", URLS[5], *at)
        assert "in use by process" in run("copy", address, "b.db", code=2)
    assert json.loads(run("copy", address, "b.db", "--json"))["rows"]["page"] == 2
    assert "is not empty" in run("copy", "b.db", address, code=2)
    monkeypatch.setenv("RECRAWL_DATABASE", address)
    assert json.loads(run("status", "--json"))["pages"] == 2


def test_a_crawl_writes_the_same_to_postgresql_and_sqlite(address, tmp_path):
    urls = [f"https://h{k}.example/{j}" for k in range(3) for j in range(4)]

    def crawled(database):
        clock = ManualClock(1e9)
        web = MemoryWeb(lambda url, now: None if "robots" in url else f"<p>{url} {now // 50}", clock, max_redirects=0)
        settings = Settings(database=database, contact="me@example.org", budget="1/s", delay="1 s", event_text=True)

        async def main():
            store = open_store(database)
            engine = await open_engine(store, 1e9, budget=1.0)
            await save_pages(engine, store, add_pages(engine, Rules(), urls, 1e9))
            await store.close()
            live = await open_crawl(settings, web=Web("recrawl/1", web, web, clock), concurrency=2)
            try:
                await live.crawler.run(live.clock.now() + 120.0)
            finally:
                await live.close()

        asyncio.run(clock.drive(main()))
        with BlockingStore(open_store(database, exclusive=False)) as store:
            assert store.check() == []
            kinds = [event.kind for event in store.events()]
            return {
                **store.counts(),
                "fetched": len({one.url for one in store.observations()}),
                "new": kinds.count("new"),
                "numbers": [event.number for event in store.events()] == list(range(1, len(kinds) + 1)),
                "changes": kinds.count("changed") == store.recent(0.0)["changes"] > 0,
            }

    mine, theirs = crawled(address), crawled(str(tmp_path / "a.db"))
    assert mine == theirs
    assert mine["fetched"] == mine["new"] == len(urls)


@pytest.mark.parametrize(
    ("words", "user", "message"),
    [
        ({"password": "wrong"}, "guarded", "the server refuses the user or its password"),
        ({}, "nobody_at_all", "the server refuses the user or its password"),
    ],
)
def test_refusals_in_one_line(postgres, words, user, message):
    with pytest.raises(StoreError, match=message) as caught:
        opened(postgres.address(user=user, **words))
    assert "wrong" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_server_that_is_away(postgres):
    with pytest.raises(StoreError, match="the server cannot be reached"):
        opened("postgresql://me:secret@127.0.0.1:1/crawl")
    with pytest.raises(StoreError, match="there is no such database; createdb makes one"):
        opened(postgres.address().replace("/postgres?", "/absent?"))


@pytest.mark.parametrize("text", ["postgresql://", "postgresql://h:x/d", "postgresql://h/d?schema=A", "postgres://[/d"])
def test_addresses_that_cannot_be_one(text):
    with pytest.raises(ParameterError):
        Address.parse(text)


def test_passwords_are_not_shown():
    for text in (
        "postgresql://u:secret@h/d",
        "postgresql://h/d?password=secret&user=u",
        "postgresql://u:se:secret@[/d",
    ):
        assert "secret" not in shown(text)
        assert PASSWORD not in shown(text)
    assert shown("postgresql://u@h:5/d?schema=x") == "postgresql://u@h:5/d?schema=x"
    assert shown("a.db") == "a.db"
