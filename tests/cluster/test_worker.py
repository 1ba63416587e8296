"""Workers on a real server: shards are shared, move, and are crawled by one worker at a time."""

import asyncio
import itertools
import json
import time

import asyncpg
import pytest

from recrawl.cli.commands import call
from recrawl.cluster import tables
from recrawl.cluster.hosts import shards_of
from recrawl.cluster.overview import drain, overview
from recrawl.cluster.ownership.stores import ShardStores
from recrawl.cluster.worker import ShardWorker
from recrawl.crawl import MemoryWeb, Settings, SystemClock, Web
from recrawl.store.postgres.address import Address

pytestmark = pytest.mark.slow

N_SHARDS, SECONDS = 4, 1.5
NUMBER = itertools.count()
URLS = [f"https://h{host}.example/{k}" for host in range(8) for k in range(3)]


@pytest.fixture
def database(postgres):
    """A cluster with pages."""
    address = postgres.address(f"c{next(NUMBER)}")
    made = ["cluster", "create", "--shards", N_SHARDS, "--lease", SECONDS, "--budget", "100/s", "--database", address]
    assert call([str(word) for word in made]) == 0
    assert call(["add", *URLS, "--database", address]) == 0
    return address


def settings_of(database):
    return Settings(database=database, contact="me@example.org", delay="0.01 s", listings=False)


def cluster_of(database):
    return asyncio.run(tables.read(Address.parse(database)))


class Web4:
    """A web for workers in one process, and which of them asked what when."""

    def __init__(self):
        self.asked = []

    def of(self, name):
        clock = SystemClock()

        def page(url, now):
            self.asked.append((time.monotonic(), name, url))
            return None if url.endswith("robots.txt") else f"<p>{url} {len(self.asked) // 40}"

        web = MemoryWeb(page, clock, max_redirects=0)
        return Web("recrawl/1", web, web, clock)


async def until(holds, seconds=300.0):
    """Wait for a condition, with a generous bound."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        await asyncio.sleep(0.01)


def test_two_workers_share_the_shards_and_one_takes_over_when_the_other_ends(database, capsys):
    cluster, web = cluster_of(database), Web4()

    async def main():
        one = ShardWorker(cluster, settings_of(database), name="one", web=web.of("one"))
        running = asyncio.create_task(one.run())
        await until(lambda: len(one.shards) == N_SHARDS)
        await until(lambda: len({url for *_, url in web.asked}) > len(URLS))  # and robots.txt
        two = ShardWorker(cluster, settings_of(database), name="two", web=web.of("two"))
        joined = asyncio.create_task(two.run())
        await until(lambda: len(one.shards) == len(two.shards) == N_SHARDS // 2)
        assert not set(one.shards) & set(two.shards)
        await until(lambda: sum(name == "two" for _, name, _ in web.asked) > 20)
        found = await overview(cluster)
        assert [worker["shards"] for worker in found["workers"]] == [2, 2]
        assert 0.0 < found["rate"] <= found["reserved"] <= 100.0
        await _end_connections(cluster)
        n = len(web.asked)
        await until(lambda: len({name for _, name, _ in web.asked[n:]}) == 2)
        await drain(cluster, "two")
        counted = await joined
        assert counted["acknowledged"] == counted["ended"] > 0
        await until(lambda: len(one.shards) == N_SHARDS)
        one.stop()
        await running

    asyncio.run(main())
    owners = {}
    for at, name, url in web.asked:
        owners.setdefault(shards_of([url], N_SHARDS)[0], []).append((at, name))
    for shard in owners.values():
        names = [name for name, _ in itertools.groupby(name for _, name in sorted(shard))]
        assert names in (["one"], ["one", "two"], ["one", "two", "one"]), "a shard moves whole"
    _check_the_whole(database, capsys, len(web.asked))


async def _end_connections(cluster):
    """End all connections of workers, as a restart of the server does."""
    connection = await asyncpg.connect(cluster.address.dsn)
    ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'recrawl'"
    assert await connection.fetchval(ended) >= 10
    await connection.close()


def _check_the_whole(database, capsys, n_requests):
    """Nothing was lost: every crawl that ended is an outcome of one shard, and events are numbered per shard."""
    capsys.readouterr()
    n_outcomes = 0
    with ShardStores(cluster_of(database)) as stores:
        for shard in range(N_SHARDS):
            store = stores.shared(shard)
            n_outcomes += sum(one.requests for one in store.observations())
            events = store.events(0, 10_000)
            assert [one.number for one in events] == list(range(1, len(events) + 1))
            assert set(shards_of([one.url for one in events], N_SHARDS)) <= {shard}
    robots = len({url.split("/")[2] for url in URLS})
    assert n_outcomes <= n_requests <= n_outcomes + 3 * robots
    assert call(["run", "--dry-run", "40", "--database", database, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["in"] for one in found] == sorted(one["in"] for one in found)
    assert len(found) == 40
    assert {one["url"] for one in found} <= set(URLS)
    assert len(set(shards_of([one["url"] for one in found], N_SHARDS))) > 1


def test_commands_speak_of_the_whole(database, capsys):
    def run(*words):
        code = call([*words, "--database", database, "--json"])
        out, err = capsys.readouterr()
        return code, json.loads(out) if code == 0 else err

    assert run("add", *URLS, "https://new.example/")[1] | {"database": ""} == {
        "database": "",
        "added": 1,
        "known": len(URLS),
        "pages": len(URLS) + 1,
    }
    assert run("cluster", "budget", "50/s")[1]["budget"] == "50/s"
    assert run("cluster", "status")[1]["budget"] == "50/s"
    code, err = run("run", "--dry-run", "3")
    assert (code, "no shard has a share of the budget yet" in err) == (2, True)
    code, err = run("cluster", "drain", "nobody")
    assert (code, "worker 'nobody' is not one of none" in err) == (2, True)
    code, err = run("cluster", "create")
    assert (code, "is a cluster already" in err) == (2, True)


def test_a_lost_answer_does_not_double_a_write(database):
    """The connection ends after the commit and before its answer: the next attempt finds the number of the write."""
    from recrawl.cluster.ownership.gate import Gate
    from recrawl.cluster.ownership.leases import ShardLeases
    from recrawl.cluster.ownership.sessions import Connections
    from recrawl.errors import StoreUnreachableError
    from recrawl.store import PostgresStore

    cluster = cluster_of(database)

    async def main():
        address = cluster.address
        connection = await asyncpg.connect(address.dsn, server_settings={"search_path": address.schema})
        held = await ShardLeases("w", time.monotonic, seconds=60.0).take(connection, 0)
        connections = Connections(cluster, writers=1)
        access, answers = connections.of_gate(Gate(held), lambda: True), []
        session = access.writer.session
        plain = session.call

        async def losing(work):
            found = await plain(work)
            if len(answers) == 0:
                answers.append(found)
                raise StoreUnreachableError("lost")
            return found

        session.call = losing
        store = PostgresStore(cluster.shard_database(0), access=access)
        await store.queue([{"add": ["https://a.example/"]}])
        assert len(answers) == 1
        assert len(await store.commands()) == 1
        await connections.close()
        await connection.close()

    asyncio.run(main())
