"""Every store keeps to the protocol; and the contract suite finds one that does not."""

import asyncio
import inspect
import itertools
import threading

import pytest

from recrawl.errors import StoreError
from recrawl.store import BlockingStore, EventLimits, MemoryStore, Outcome, SqliteStore, Store, check_store
from recrawl.store.testing.contract import check_event_limits
from recrawl.store.testing.rows import example_rows


@pytest.mark.parametrize("keep", [1, 3])
def test_the_memory_store_keeps_to_the_protocol(keep):
    asyncio.run(check_store(lambda: MemoryStore(keep=keep)))


@pytest.mark.parametrize("keep", [1, 3])
def test_the_sqlite_store_keeps_to_the_protocol(tmp_path, keep):
    number = itertools.count()
    asyncio.run(check_store(lambda: SqliteStore(tmp_path / f"{next(number)}.db", keep=keep)))


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_what_no_store_writes_is_refused(tmp_path, kind):
    with BlockingStore(MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "a.db")) as store:
        with pytest.raises(TypeError, match="note"):
            store.save(note={"a": 1})
        assert store.notes() == {}


def test_limits_of_events(tmp_path):
    limits, number = (EventLimits(rows=5), EventLimits(age=100.0), EventLimits(texts=20)), itertools.count()
    memory = (lambda kept=kept: MemoryStore(events=kept) for kept in limits)
    sqlite = (lambda kept=kept: SqliteStore(tmp_path / f"{next(number)}.db", events=kept) for kept in limits)
    asyncio.run(check_event_limits(*memory))
    asyncio.run(check_event_limits(*sqlite))


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_calls_from_several_threads(tmp_path, kind):
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "a.db")
    urls, problems = [f"https://a.example/{k}" for k in range(40)], []
    asyncio.run(store.save(rows=example_rows(urls)))

    async def work(first):
        for k in range(first, 40, 4):
            await store.save([Outcome(urls[k], 1.7e9 + k, status=200, digest=str(k), changed=True)])
            await store.copies(urls[:5])

    def run(first):
        try:
            asyncio.run(work(first))
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with BlockingStore(store) as seen:
        assert not problems, f"calls from several threads: {problems[0]!r}"
        assert sorted(outcome.began_at for outcome in seen.observations()) == [1.7e9 + k for k in range(40)]
        assert [event.number for event in seen.events()] == list(range(1, 41)), "numbers are given once each"
        assert seen.check() == []


def test_the_blocking_store_has_the_calls_of_the_protocol():
    names = [name for name in vars(Store) if not name.startswith("_")]
    assert len(names) > 20
    for name in names:
        mine, given = (inspect.signature(getattr(kind, name)).parameters for kind in (BlockingStore, Store))
        assert list(mine.values()) == list(given.values()), name


def test_the_blocking_store_reads_many_rows_and_ends_iterators_early(tmp_path):
    outcomes = [Outcome("https://a.example/0", 1.7e9 + k, status=200, digest=f"d{k}") for k in range(2500)]
    with BlockingStore(SqliteStore(tmp_path / "a.db")) as store:
        store.save(outcomes, example_rows(["https://a.example/0"]))
        assert list(store.observations()) == outcomes
        assert next(store.observations(since=1.7e9 + 1800)) == outcomes[1800]
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.counts()


class Forgetful(MemoryStore):
    """Drops every third outcome."""

    async def save(self, outcomes=(), rows=None, **more):
        await super().save([outcome for k, outcome in enumerate(outcomes) if k % 3 != 2], rows, **more)


class Careless(MemoryStore):
    """Writes half of what fails."""

    async def save(self, outcomes=(), rows=None, *, notes=None, **more):
        await super().save(outcomes, rows, **more)
        await super().save(notes=notes)


class Vague(MemoryStore):
    """Rounds what it is given."""

    async def load(self):
        rows = await super().load()
        return rows and {**rows, "change_rate": rows["change_rate"].round(3)}


class Hoarder(MemoryStore):
    """Keeps what was removed."""

    async def save(self, outcomes=(), rows=None, *, removed=(), **more):
        await super().save(outcomes, rows, **more)


class Silent(MemoryStore):
    """Tells of nothing that comes back."""

    async def events(self, after=0, many=200):
        return [event for event in await super().events(after, many) if event.kind != "new" or event.old_digest is None]


@pytest.mark.parametrize("kind", [Forgetful, Careless, Vague, Hoarder, Silent])
def test_the_suite_finds_what_is_wrong(kind):
    with pytest.raises(AssertionError):
        asyncio.run(check_store(kind))
