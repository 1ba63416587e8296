"""``run --once`` on a cluster: every page once by all workers together, also when workers end or are lost."""

import asyncio
import time
from collections import Counter

import pytest

from recrawl.cluster import tables
from recrawl.cluster.overview import overview
from recrawl.cluster.ownership.stores import ShardStores
from recrawl.errors import StoreInUseError

from .clusters import Asked, Worker, cluster_of, made, settings_of, until

pytestmark = pytest.mark.slow

URLS = [f"https://h{host}.example/{k}" for host in range(6) for k in range(4)]


def observed(database):
    """How often each page was crawled."""
    found = Counter()
    cluster = cluster_of(database)
    with ShardStores(cluster) as stores:
        for shard in range(cluster.shards):
            found.update(one.url for one in stores.shared(shard).observations())
    return found


def test_two_workers_crawl_every_page_once_and_end(postgres):
    database = made(postgres, URLS, shards=4)
    cluster, web, settings = cluster_of(database), Asked(), settings_of(database)

    async def main():
        workers = [Worker(cluster, settings, name, web.of(name)) for name in ("one", "two")]
        found = await asyncio.gather(*(worker.run(once=True) for worker in workers))
        assert {(one["pass"], one["shards_left"]) for one in found} == {(1, 0)}
        assert Counter(web.urls()) == Counter(URLS)
        # the next pass crawls every page again
        found = await Worker(cluster, settings, "three", web.of("three")).run(once=True)
        assert (found["pass"], found["shards_left"]) == (2, 0)
        assert (await overview(cluster))["pass"] is None

    asyncio.run(main())
    assert Counter(web.urls()) == observed(database) == Counter(URLS * 2)


def test_a_pass_goes_on_where_a_lost_worker_was(postgres):
    """A worker that stands still loses its shards; another takes them and crawls what is not done, the rest not."""
    database = made(postgres, URLS, shards=3, budget="4/s")
    cluster, web, settings = cluster_of(database), Asked(), settings_of(database)

    async def main():
        first = Worker(cluster, settings, "one", web.of("one"))
        running = asyncio.create_task(first.run(once=True))
        await until(lambda: len(web.urls()) >= 3)
        second = Worker(cluster, settings, "two", web.of("two"))
        joined = asyncio.create_task(second.run(once=True))
        await until(lambda: len(second.shards) > 0 or joined.done())
        assert (await overview(cluster))["pass"]["number"] == 1
        keep, first._keeper._keep = first._keeper._keep, _stand_still  # its leases run out
        assert (await joined)["shards_left"] == 0
        first._keeper._keep = keep
        assert (await running)["shards_left"] == 0

    asyncio.run(main())
    assert set(observed(database)) == set(URLS)
    # asked again are at most those whose outcomes were not written when the shard was lost
    assert sum(Counter(web.urls()).values()) <= len(URLS) + 6


async def _stand_still(connection):
    await asyncio.sleep(3600.0)


def test_a_shard_that_is_taken_over_knows_which_pages_are_done(postgres):
    """By observations after the pass began, whatever clocks say; the next pass begins anew."""
    from recrawl.cluster.ownership.gate import Gate
    from recrawl.cluster.ownership.leases import ShardLeases
    from recrawl.cluster.ownership.sessions import Connections
    from recrawl.cluster.passes import ShardPass
    from recrawl.store import Outcome, PostgresStore

    database = made(postgres, URLS[:3], shards=1)
    cluster = cluster_of(database)

    async def main():
        connection = await tables.connect(cluster.address)
        leases = ShardLeases("w", time.monotonic, seconds=60.0)
        held = await leases.take(connection, 0)
        connections = Connections(cluster, writers=1)
        access = connections.of_gate(Gate(held), lambda: False)
        store = PostgresStore(cluster.shard_database(0), access=access)
        await store.save([Outcome(URLS[0], 1e12, status=200)])
        one = ShardPass(access, cluster.address.schema, 0, 1)
        assert await one.begin() == set()
        await store.save([Outcome(URLS[1], 5.0, status=200)])
        assert await one.begin() == {URLS[1]}
        assert await ShardPass(access, cluster.address.schema, 0, 2).begin() == set()
        await one.end()  # an owner of an earlier pass ends nothing of a later one
        assert not await connection.fetchval("SELECT ended FROM shard_pass")
        await leases.release(connection, held)
        assert (await leases.take(connection, 0)).epoch > held.epoch
        with pytest.raises(StoreInUseError):
            await ShardPass(access, cluster.address.schema, 0, 2).end()
        await connections.close()
        await connection.close()

    asyncio.run(main())


def test_workers_with_and_without_end_do_not_mix(postgres):
    database = made(postgres, URLS, shards=2, budget="1/s")
    cluster, web, settings = cluster_of(database), Asked(), settings_of(database)

    async def refused(name, **how):
        with pytest.raises(StoreInUseError) as problem:
            await Worker(cluster, settings, name, web.of(name)).run(**how)
        return str(problem.value)

    async def main():
        for how, other, said in (
            ({}, {"once": True}, "one crawl without end: end them first, or leave out --once"),
            ({"once": True}, {}, "a pass by run --once is made: start when it has ended"),
        ):
            worker = Worker(cluster, settings, "one", web.of("one"))
            running = asyncio.create_task(worker.run(**how))
            await until(lambda worker=worker: len(worker.shards) == 2)
            assert said in await refused("two", **other)
            worker.stop()
            await running

    asyncio.run(main())
