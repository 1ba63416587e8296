"""Discovered batches: as if each URL were put by itself, also after restarts, deletions and full disks."""

import asyncio
import random
import sqlite3

import pytest

from recrawl.contrib.urlfrontier import Modes
from recrawl.contrib.urlfrontier.api.wire import FAIL, OK, SKIPPED
from recrawl.contrib.urlfrontier.arrivals import Arrivals
from recrawl.contrib.urlfrontier.batches import Discovered
from recrawl.contrib.urlfrontier.crawls import Search
from recrawl.contrib.urlfrontier.frontier import Ask
from recrawl.contrib.urlfrontier.items import Put
from recrawl.contrib.urlfrontier.queue_file import QueueFile
from tests.contrib.urlfrontier.services import World


def url_of(k):
    return f"http://h{k % 3}.example/{k}"


def puts_of(numbers, crawl="c", date=None, metadata=b""):
    return [Put(crawl, f"h{k % 3}.example", url_of(k), date, metadata) for k in numbers]


async def listed(crawls, crawl="c"):
    """All URLs with their dates, as they are stored."""
    queues = crawls.frontier.some(crawl, "")
    return sorted([(queue.key, row.url, row.date, row.created) async for queue, row in crawls.rows(queues, Search())])


async def active(crawls):
    """How many URLs wait in each queue that has any."""
    return {queue.key: queue.active for queue in crawls.frontier.some("c", "") if queue.active}


class Twins:
    """A service that takes batches as they come, and one that puts each URL by itself."""

    def __init__(self, folder, mode):
        self.worlds = []
        for name in ("batches", "single"):
            (folder / name).mkdir()
            self.worlds.append(World(folder / name, Modes.of(mode)))

    async def open(self):
        for world in self.worlds:
            await world.open()

    async def close(self):
        for world in self.worlds:
            await world.close()

    def pass_time(self, seconds):
        for world in self.worlds:
            world.clock._now += seconds

    async def both(self, does):
        """What an act gives, which must be the same on both."""
        first, second = [await does(world.service.crawls) for world in self.worlds]
        assert first == second
        return first

    async def arrive(self, puts):
        batches, single = (world.service.crawls for world in self.worlds)
        states = await batches.arrive(Discovered.of(puts))
        assert states == await single.put(puts)
        return states


async def act(twins, random, *, ordered):
    """One act, chosen at random."""
    numbers = random.sample(range(40), random.randint(1, 12))
    kind = random.choice(
        ["arrive"] * 4 + ["put", "known", "take", "take", "list", "find", "delete", "purge", "restart"]
    )
    if kind == "arrive":
        await twins.arrive([*puts_of(numbers), None])
    elif kind in ("put", "known"):
        date = int(twins.worlds[0].clock.now()) + random.choice([-50, 50]) if kind == "known" else None
        await twins.both(lambda crawls: crawls.put(puts_of(numbers[:4], date=date)))
    elif kind == "take" and ordered:
        ask = Ask(random.randint(1, 3), random.randint(1, 5), 20.0)

        async def take(crawls):
            return [one.row.url for one in await crawls.take("c", ask)]

        await twins.both(take)
    elif kind == "list":
        await twins.both(listed)
    elif kind == "find":

        async def find(crawls):
            queue = crawls.frontier.queue("c", f"h{numbers[0] % 3}.example")
            row = None if queue is None else await crawls.find(queue, url_of(numbers[0]))
            return None if row is None else row.url

        await twins.both(find)
    elif kind == "delete":
        await twins.both(lambda crawls: crawls.delete(crawls.frontier.some("c", f"h{numbers[0] % 3}.example")))
    elif kind == "purge":
        before = twins.worlds[0].clock.now() - 30.0
        await twins.both(lambda crawls: crawls.purge(crawls.frontier.some("c", ""), before))
    elif kind == "restart":
        await twins.open()


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "seed"), [*(("strict", seed) for seed in range(6)), ("managed", 0), ("managed", 1)])
def test_batches_are_as_if_each_url_were_put_by_itself(mode, seed, tmp_path):
    async def run():
        twins, choice = Twins(tmp_path, mode), random.Random(seed)
        try:
            await twins.open()
            for _ in range(60):
                twins.pass_time(choice.choice([1.0, 2.0, 15.0]))
                await act(twins, choice, ordered=mode == "strict")

                await twins.both(active)
            await twins.both(listed)
            if mode == "managed":
                for world in twins.worlds:
                    await world.service.crawls.swept()  # the pages of deleted queues leave a little later
                pages = [
                    sorted(world.desks.crawler.engine.url(world.desks.crawler.engine.ids())) for world in twins.worlds
                ]
                assert pages[0] == pages[1]
        finally:
            await twins.close()

    asyncio.run(run())


def test_a_queue_makes_rows_of_what_it_serves_and_the_arrival_goes_when_all_are_rows(tmp_path):
    async def run():
        world = World(tmp_path)
        await world.open()
        crawls = world.service.crawls
        file = crawls.frontier.file
        count = lambda table: file.db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: E731
        try:
            assert set(await crawls.arrive(Discovered.of(puts_of(range(300), metadata=b"\x1a\x03\x0a\x01a")))) == {OK}
            assert (count("url"), count("arrival")) == (0, 2)
            assert crawls.frontier.totals(crawls.frontier.by_id.values()).active == 300
            (one,) = await crawls.take("c", Ask(1, 1, 30.0))
            assert (one.row.url, one.row.metadata) == (url_of(0), b"\x1a\x03\x0a\x01a")
            assert 1 <= count("url") < 100, "of one queue, and of one arrival"
            assert set(await crawls.arrive(Discovered.of(puts_of(range(300))))) == {SKIPPED}
            assert len(await listed(crawls)) == 300
            await crawls.arrive(Discovered.of(puts_of([1000])))
            await listed(crawls)
            assert (count("url"), count("arrival")) == (301, 1), "the last is deleted with the next rows"
            await world.open()
            assert len(await listed(world.service.crawls)) == 301
        finally:
            await world.close()

    asyncio.run(run())


def test_a_full_disk_fails_a_batch_and_it_can_be_sent_again(tmp_path):
    async def run():
        world = World(tmp_path)
        await world.open()
        crawls = world.service.crawls
        try:
            assert await crawls.arrive(Discovered.of(puts_of([0]))) == [OK]
            crawls.frontier.file.db.execute("PRAGMA query_only = ON")
            assert await crawls.arrive(Discovered.of(puts_of([0, 3, 4]))) == [FAIL] * 3
            with pytest.raises(sqlite3.Error):
                await crawls.take("c", Ask(1, 1, 1.0))
            crawls.frontier.file.db.execute("PRAGMA query_only = OFF")
            assert await crawls.arrive(Discovered.of(puts_of([0, 3, 4]))) == [SKIPPED, OK, OK]
            assert [one.row.url for one in await crawls.take("c", Ask(2, 9, 1.0))] == [url_of(0), url_of(3), url_of(4)]
        finally:
            await world.close()

    asyncio.run(run())


def test_hashes_are_forgotten_where_there_are_too_many_and_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr("recrawl.contrib.urlfrontier.arrivals._MOST_KNOWN", 10)

    async def run():
        world = World(tmp_path)
        await world.open()
        try:
            crawls = world.service.crawls
            assert set(await crawls.arrive(Discovered.of(puts_of(range(12))))) == {OK}
            await crawls.take("c", Ask(1, 1, 1.0))
            assert set(await crawls.arrive(Discovered.of(puts_of([0, 3])))) == {SKIPPED}
            known = {queue.key: queue.known for queue in crawls.frontier.by_id.values()}
            assert [known[f"h{k}.example"] for k in range(3)] == [True, False, False], "read when needed"
            assert set(await crawls.arrive(Discovered.of(puts_of(range(12))))) == {SKIPPED}
        finally:
            await world.close()

    asyncio.run(run())


def test_a_file_of_the_first_version_is_taken_over(tmp_path):
    path = tmp_path / "old.urlfrontier"
    file = QueueFile(path)
    with file.transaction():
        file.add_queue("c", "h0.example")
        file.db.execute("DROP TABLE arrival")
        file.db.execute("DROP TABLE serve")
        file.db.execute("ALTER TABLE queue DROP COLUMN opened")
        file.db.execute("PRAGMA user_version = 1")
    file.close()
    again = QueueFile(path)
    assert [row[:3] + row[7:] for row in again.queues()] == [(1, "c", "h0.example", 0, 0, 0)]
    Arrivals(again, {}).load({})
    again.close()
