"""Leases of shards, on a real server: never two owners, and no transaction of an owner that another has followed."""

import asyncio
import time

import asyncpg
import pytest

from recrawl.cluster.ownership.leases import MARGIN, Held, LeaseLostError, ShardLeases, check
from recrawl.store import BlockingStore, PostgresStore
from recrawl.store.postgres.address import Address

pytestmark = pytest.mark.slow


@pytest.fixture
def connect(postgres):
    """A function that opens a connection to a schema with a log of what owners wrote."""
    address = Address.parse(postgres.address("leases"))
    BlockingStore(PostgresStore(postgres.address("leases"))).close()

    async def opened():
        return await asyncpg.connect(address.dsn, server_settings={"search_path": address.schema})

    async def begin():
        connection = await opened()
        await connection.execute("DROP TABLE IF EXISTS written; DELETE FROM shard_lease")
        await connection.execute("CREATE TABLE written (n bigserial, shard integer, epoch bigint, worker text)")
        await connection.close()

    asyncio.run(begin())
    return opened


async def write(connection, held, *, checked=True):
    """A transaction of an owner."""
    async with connection.transaction():
        if checked:
            await check(connection, held)
        await connection.execute(
            "INSERT INTO written (shard, epoch, worker) VALUES ($1, $2, $3)", held.shard, held.epoch, held.worker
        )


async def stale_writes(connection):
    """How many rows an owner wrote after the next one had written."""
    return await connection.fetchval(
        "SELECT count(*) FROM written AS late WHERE EXISTS (SELECT 1 FROM written AS other "
        "WHERE other.shard = late.shard AND other.n < late.n AND other.epoch > late.epoch)"
    )


def leases(worker, **options):
    return ShardLeases(worker, time.monotonic, **options)


async def checked_in_time(connect, mine, shard, *, cut_off):
    """A connection with a transaction that checked a short lease, and the lease: again where the machine was slow."""
    while True:
        connection = await connect()
        if cut_off:
            await mine.prepare(connection)
        held = await mine.take(connection, shard)
        while held is None:
            await asyncio.sleep(0.01)
            held = await mine.take(connection, shard)
        try:
            await connection.transaction().start()
            await check(connection, held)
            return connection, held
        except (LeaseLostError, asyncpg.PostgresError, asyncpg.InterfaceError):
            await connection.close()


def test_a_shard_has_one_owner_until_its_lease_is_over_or_given_back(connect):
    async def main():
        connection = await connect()
        one, two = leases("one", seconds=60.0), leases("two", seconds=60.0)
        held = await one.take(connection, 3)
        assert (held.shard, held.epoch, held.worker) == (3, 1, "one")
        assert await two.take(connection, 3) is None
        assert await one.take(connection, 3) is None, "not even by itself: an owner renews"
        assert (await two.take(connection, 4)).epoch == 1
        renewed = await one.renew(connection, held)
        assert renewed.until >= held.until
        await write(connection, renewed)
        await one.release(connection, renewed)
        followed = await two.take(connection, 3)
        assert followed.epoch == 2, "the epoch goes up with each owner"
        await one.release(connection, renewed)  # nothing: it is no longer its own
        await two.renew(connection, followed)
        for late in (one.renew(connection, renewed), write(connection, renewed)):
            with pytest.raises(LeaseLostError, match=r"shard 3: the lease of one \(epoch 1\) is over"):
                await late
        assert await stale_writes(connection) == 0
        await connection.close()

    asyncio.run(main())


def test_the_next_owner_waits_until_the_lease_is_over(connect):
    async def main():
        connection = await connect()
        one, two = leases("one", seconds=0.3), leases("two", seconds=60.0)
        held = await one.take(connection, 0)
        until = await connection.fetchval("SELECT until FROM shard_lease")
        while (followed := await two.take(connection, 0)) is None:
            await asyncio.sleep(0.01)
        assert await connection.fetchval("SELECT clock_timestamp()") >= until
        assert held.left(time.monotonic()) <= 0.0, "by its own clock the lease was over before"
        assert followed.epoch == 2
        with pytest.raises(LeaseLostError):
            await write(connection, held)
        await connection.close()

    asyncio.run(main())


def test_a_transaction_that_checked_is_over_before_the_next_owner_begins(connect):
    async def main():
        other = await connect()
        one, two = leases("one", seconds=0.2), leases("two", seconds=60.0)
        mine, held = await checked_in_time(connect, one, 0, cut_off=False)
        while await other.fetchval("SELECT until > clock_timestamp() FROM shard_lease"):
            await asyncio.sleep(0.01)
        taking = asyncio.ensure_future(two.take(other, 0))
        watching = await connect()
        while not await watching.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            await asyncio.sleep(0.01)
        await mine.execute("INSERT INTO written (shard, epoch, worker) VALUES (0, $1, 'one')", held.epoch)
        assert not taking.done()
        await mine.execute("COMMIT")
        await write(other, await taking)
        assert await stale_writes(other) == 0
        for connection in (mine, other, watching):
            await connection.close()

    asyncio.run(main())


def test_a_worker_that_stands_still_in_a_transaction_is_cut_off(connect):
    async def main():
        other = await connect()
        one, two = leases("one", seconds=0.2), leases("two", seconds=60.0)
        mine, held = await checked_in_time(connect, one, 0, cut_off=True)  # and then nothing
        while (followed := await two.take(other, 0)) is None:
            await asyncio.sleep(0.01)
        assert followed.epoch == held.epoch + 1
        while not mine.is_closed():
            await asyncio.sleep(0.01)
        await other.close()

    asyncio.run(main())


@pytest.mark.parametrize("checked", [True, False])
def test_workers_that_pause_beyond_their_leases(connect, checked):
    """Eight workers on two shards, each pausing for longer than its lease; without checks it is noticed."""

    async def work(k, until):
        connection, mine, n = await connect(), leases(f"w{k}", seconds=0.05), 0
        while n < until:
            held = await mine.take(connection, k % 2)
            if held is None:
                await asyncio.sleep(0.005)
                continue
            for pause in (0.0, 0.0, 0.06 + 0.02 * (k // 2)):  # the last is a stop of the process
                await asyncio.sleep(pause)
                try:
                    await write(connection, held, checked=checked)
                except LeaseLostError:
                    break
            n += 1
        await connection.close()

    async def main():
        await asyncio.gather(*(work(k, 3) for k in range(8)))
        connection = await connect()
        stale, owners = await stale_writes(connection), await connection.fetch("SELECT shard, epoch FROM shard_lease")
        pairs = await connection.fetch(
            "SELECT shard, epoch FROM written GROUP BY 1, 2 HAVING count(DISTINCT worker) > 1"
        )
        await connection.close()
        return stale, pairs, sum(row["epoch"] for row in owners)

    stale, pairs, n_owners = asyncio.run(main())
    assert pairs == [], "an epoch has one worker"
    assert n_owners == 24
    assert (stale == 0) if checked else (stale > 0)


def test_no_request_starts_with_less_than_a_second_left():
    held = Held(0, "w", 1, until=105.0)
    assert held.may_request(100.0)
    assert held.may_request(105.0 - MARGIN)
    assert not held.may_request(105.0 - MARGIN + 0.01)
