"""Leases: written once for each call, kept over restarts and crashes, and over when a URL is put again."""

import random
import sqlite3

import grpc
import pytest

from recrawl.contrib.urlfrontier import Modes
from recrawl.contrib.urlfrontier.api.wire import OK
from recrawl.contrib.urlfrontier.frontier import Ask, Frontier
from recrawl.contrib.urlfrontier.items import Put
from recrawl.contrib.urlfrontier.queue_file import QueueFile
from recrawl.contrib.urlfrontier.testing.bench import discovered, known
from recrawl.crawl.http.memory import ManualClock
from recrawl.store.leases import HELD, RECORDED
from tests.contrib.urlfrontier.services import served
from tests.desk.desks import START

MANAGED = Modes.of(managed=["news"])
URLS = [f"http://h{k}.example/{k}" for k in range(6)]


class Naive:
    """What a strict crawl promises, by URL: its queue, its date, until when it is held; when queues were served."""

    def __init__(self):
        self.dates, self.held, self.served = {}, {}, {}

    def queue_of(self, url):
        return url.split("/")[2]

    def room(self, queue, now, ask):
        held = [url for url, until in self.held.items() if until > now and self.queue_of(url) == queue]
        return ask.urls - len(held) if now - self.served.get(queue, -1e9) >= 1.0 else 0

    def due(self, queue, now):
        some = [url for url, date in self.dates.items() if 0 < date <= now and self.queue_of(url) == queue]
        free = [url for url in some if self.held.get(url, 0.0) <= now]
        return sorted(free, key=lambda url: (self.dates[url], url))

    def take(self, urls, ask, now):
        """URLs were handed out: whether they may be, and whether they are all that may be."""
        asked, found = {self.queue_of(url) for url in self.dates}, {}
        for url in urls:
            found.setdefault(self.queue_of(url), []).append(url)
        assert len(found) <= ask.queues
        may = {queue: self.due(queue, now)[: max(self.room(queue, now, ask), 0)] for queue in asked}
        assert all(some == may[queue] for queue, some in found.items())
        assert len(found) == min(ask.queues, sum(map(bool, may.values())))
        self.held |= dict.fromkeys(urls, now + ask.lease)
        self.served |= dict.fromkeys(found, now)

    def put(self, puts, now):
        for put in puts:
            if put.date is not None or put.url not in self.dates:
                self.dates[put.url] = int(now) if put.date is None else put.date
                self.held.pop(put.url, None)


def puts_of(numbers, date=None):
    urls = [f"http://h{k % 5}.example/{k}" for k in numbers]
    return [Put("c", url.split("/")[2], url, date, b"") for url in urls]


@pytest.mark.parametrize("seed", range(12))
def test_leases_are_as_in_a_naive_frontier(tmp_path, seed, monkeypatch):
    monkeypatch.setattr("recrawl.contrib.urlfrontier.serves._MOST", 4 if seed % 2 else 4096)
    chance, clock, naive = random.Random(seed), ManualClock(START), Naive()
    file = QueueFile(tmp_path / "queues")
    frontier = Frontier(file, clock)
    for _ in range(150):
        act, now = chance.choice(["take", "take", "put", "known", "pass", "pass", "restart", "delete"]), clock.now()
        numbers = [chance.randrange(60) for _ in range(chance.randint(1, 8))]
        if act == "take" and "c" in frontier.crawls:
            ask = Ask(chance.randint(1, 6), chance.randint(1, 4), chance.choice([2.0, 20.0]))
            naive.take([one.row.url for one in frontier.take(frontier.crawls["c"], ask)], ask, now)
        elif act in ("put", "known"):
            puts = puts_of(numbers, None if act == "put" else int(now) + chance.choice([-50, 5, -int(now)]))
            frontier.put(puts)
            naive.put(puts, now)
        elif act == "pass":
            clock._now += chance.choice([0.3, 1.0, 7.0])
        elif act == "delete" and chance.random() < 0.3:
            key = f"h{numbers[0] % 5}.example"
            frontier.delete(frontier.some("c", key))
            naive.dates = {url: date for url, date in naive.dates.items() if naive.queue_of(url) != key}
            naive.held = {url: until for url, until in naive.held.items() if url in naive.dates}
            naive.served.pop(key, None)
        elif act == "restart":
            file.close()  # as after a crash: nothing is written then
            file = QueueFile(tmp_path / "queues")
            frontier = Frontier(file, clock)
        held = {key: sum(naive.queue_of(url) == key and until > clock.now() for url, until in naive.held.items())
                for key in {naive.queue_of(url) for url in naive.dates}}  # fmt: skip
        assert {queue.key: queue.in_process(clock.now()) for queue in frontier.some("c", "")} == held
    file.close()


def test_a_call_writes_one_row_until_leases_are_folded(tmp_path, monkeypatch):
    monkeypatch.setattr("recrawl.contrib.urlfrontier.serves._MOST", 8)
    file = QueueFile(tmp_path / "queues")
    frontier = Frontier(file, ManualClock(START))
    frontier.put(puts_of(range(40)))
    frontier.set_delay("c", "", 0.0)

    def rows(table, where="true"):
        return file.db.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0]

    for _ in range(2):
        assert len(frontier.take(frontier.crawls["c"], Ask(5, 100, 9.0))) in (40, 0)
    assert (rows("serve"), rows("url", "until > 0")) == (0, 40), "many leases: the next call folds them"
    file.close()


async def put(client, *items):
    return [ack.status async for ack in client.PutURLs(iter(items))]


async def get(client, **fields):
    return [info.url async for info in client.GetURLs(crawlID="news", **fields)]


def fetched(url, signature="one"):
    return known(url, "news", int(START), metadata={"fetch.statusCode": ["200"], "signature": [signature]})


def test_leases_that_the_store_has_not_got_outlive_a_crash(tmp_path):
    async def test(world, client):
        store = world.desks.store
        await put(client, *(discovered(url, "news") for url in URLS))
        assert sorted(await get(client, delay_requestable=100)) == URLS
        assert await store.leases() == [], "the store gets them later"
        await world.open()
        assert sorted(lease.url for lease in await store.leases()) == URLS, "the queues say so"
        assert {round(lease.until - lease.picked_at, 1) for lease in await store.leases()} == {100.0}
        async with type(client)(world.address) as again:
            world.clock._now += 90.0
            assert await get(again) == [], "all are in process"
            assert await put(again, *map(fetched, URLS[:3]), *map(fetched, URLS[:3])) == [OK] * 6
            assert sorted(one.url for one in await world.desks.listed()) == URLS[:3], "each counts once"
            world.clock._now += 20.0
            assert await put(again, fetched(URLS[3])) == [OK]
            assert len(await world.desks.listed()) == 4, "late, and recorded"

    served(test, tmp_path, MANAGED)


def test_the_store_gets_leases_as_they_are_then(tmp_path):
    async def test(world, client):
        store = world.desks.store
        await put(client, *(discovered(url, "news") for url in URLS))
        await get(client, delay_requestable=100)
        await put(client, fetched(URLS[0]))
        await world.clock.advance(1.0)
        assert sorted(lease.url for lease in await store.leases()) == URLS[1:]
        ids = [lease.id for lease in world.desks.desk._book._ended.values()]
        assert [lease.state for lease in await store.leases(ids)] == [RECORDED]
        assert {lease.state for lease in await store.leases()} == {HELD}

    served(test, tmp_path, MANAGED)


def test_pages_whose_leases_cannot_be_written_are_free(tmp_path, monkeypatch):
    async def test(world, client):
        await put(client, *(discovered(url, "news") for url in URLS))

        def full(*args):
            raise sqlite3.OperationalError("database or disk is full")

        with monkeypatch.context() as broken:
            broken.setattr(Frontier, "lease", full)
            with pytest.raises(grpc.aio.AioRpcError) as problem:
                await get(client)
            assert problem.value.code() is grpc.StatusCode.UNAVAILABLE
        assert world.desks.desk.n_held == 0
        assert sorted(await get(client)) == URLS, "nobody has them"

    served(test, tmp_path, MANAGED)
