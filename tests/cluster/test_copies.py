"""Backups of a cluster at one moment, and copies of clusters and backups to a new one."""

import asyncio
import itertools
import json
import shutil
from contextlib import closing

import pytest

from recrawl.cli.commands import call
from recrawl.cluster import tables
from recrawl.cluster.copies.clusters import ClusterMoment, NewCluster
from recrawl.cluster.copies.folder import old_folders
from recrawl.cluster.copies.sharded import copy_shards
from recrawl.cluster.hosts import shards_of
from recrawl.cluster.overview import overview
from recrawl.cluster.ownership.stores import ShardStores
from recrawl.store import Outcome
from recrawl.store.postgres.address import Address
from recrawl.store.tables import TABLES

pytestmark = pytest.mark.slow

N_SHARDS = 3
NUMBER = itertools.count()
URLS = [f"https://h{host}.example/{k}" for host in range(5) for k in range(3)]


@pytest.fixture(scope="module")
def database(postgres):
    """A cluster with pages, crawls, events, bodies and notes."""
    address = postgres.address(f"b{next(NUMBER)}")
    made = ["cluster", "create", "--shards", N_SHARDS, "--lease", 1.5, "--budget", "7/s", "--database", address]
    assert call([str(word) for word in made]) == 0
    assert call(["add", *URLS, "--database", address]) == 0
    write(address, URLS, 1000.0)
    return address


def cluster_of(database):
    return asyncio.run(tables.read(Address.parse(database)))


def write(database, urls, at):
    """A crawl of each page in its shard."""
    with ShardStores(cluster_of(database)) as stores:
        for url, shard in zip(urls, shards_of(urls, N_SHARDS), strict=True):
            with stores.exclusive(int(shard)) as store:
                body = f"body of {url} at {at}".encode()
                outcome = Outcome(url, at, status=200, digest=f"d:{at}", changed=True, body=body)
                store.save([outcome], notes={f"of:{url}": at})


def rows_of(database):
    """All rows of all shards."""

    async def read(store, table):
        return [row async for rows in store.table_rows(table) for row in rows]

    found = {}
    with closing(ClusterMoment(cluster_of(database))) as moment:
        for shard in range(N_SHARDS):
            with moment.shard(shard) as store:
                found |= {(shard, table.name): store.run(read(store.store, table)) for table in TABLES}
    return found


def test_a_backup_is_put_back_as_another_cluster_with_every_row(database, postgres, tmp_path, capsys):
    capsys.readouterr()
    assert call(["backup", str(tmp_path), "--database", database, "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["pages"], done["shards"]) == (len(URLS), N_SHARDS)
    files = [f"s{shard:02d}.db" for shard in range(N_SHARDS)]
    folder = tmp_path / done["backup"].rpartition("/")[2]
    assert sorted(path.name for path in folder.iterdir()) == ["cluster.json", *files]
    assert sum(path.stat().st_size for path in folder.iterdir()) == done["bytes"]
    again, third = postgres.address(f"b{next(NUMBER)}"), postgres.address(f"b{next(NUMBER)}")
    for origin, goal in ((str(folder), again), (again, third)):
        assert call(["copy", origin, goal, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["rows"]["observation"] == done["observations"]
        assert rows_of(goal) == rows_of(database)
    found = cluster_of(third)
    assert (found.shards, found.seconds, found.budget) == (N_SHARDS, 1.5, "7/s")
    write(third, URLS[:1], 9000.0)  # numbers go on: a new row does not meet an old one
    assert rows_of(third) != rows_of(database)


def test_the_copy_is_of_one_moment(database, postgres):
    """What is written to a shard that is not copied yet is not in the copy, nor is a page that is added."""
    before = rows_of(database)
    goal = postgres.address(f"b{next(NUMBER)}")
    call(["cluster", "create", "--shards", str(N_SHARDS), "--database", goal])

    class Writing(ClusterMoment):
        def shard(self, shard):
            write(database, URLS[::3], 2000.0 + shard)
            return super().shard(shard)

    with closing(Writing(cluster_of(database))) as moment, closing(NewCluster(cluster_of(goal))) as target:
        copy_shards(moment, target, N_SHARDS)
    assert rows_of(goal) == before
    assert rows_of(database) != before


def test_backups_in_a_folder_are_kept_by_number_and_whole(database, tmp_path, capsys):
    for stamp in ("20200101T000000Z", "20210101T000000Z"):
        (tmp_path / f"{Address.parse(database).schema}-{stamp}.cluster").mkdir()
    (tmp_path / "other-20200101T000000Z.cluster").mkdir()
    capsys.readouterr()
    assert call(["backup", str(tmp_path), "--keep", "2", "--database", database, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == 1
    assert len(list(tmp_path.iterdir())) == 3
    assert old_folders(Address.parse(database).schema, tmp_path, 2) == []
    named = tmp_path / "named"
    for _ in range(2):  # a backup replaces a backup
        assert call(["backup", str(named), "--database", database]) == 0
    assert json.loads((named / "cluster.json").read_text()) == {"shards": N_SHARDS, "seconds": 1.5, "budget": "7/s"}
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]


def test_what_cannot_be_copied_is_refused_and_leaves_nothing(database, postgres, tmp_path, capsys):
    def refused(*words):
        code = call([*words])
        err = capsys.readouterr().err
        assert code != 0
        return err

    assert call(["backup", str(tmp_path / "one"), "--database", database]) == 0
    other = postgres.address(f"b{next(NUMBER)}")
    call(["cluster", "create", "--shards", "2", "--database", other])
    assert "has 2 shards, not 3: hosts do not move between shards" in refused("copy", database, other)
    assert "is not empty: it has rows of page" in refused("copy", str(tmp_path / "one"), database)
    single = postgres.address(f"b{next(NUMBER)}")
    assert call(["add", URLS[0], "--database", single]) == 0
    assert "back it up with pg_dump" in refused("backup", str(tmp_path / "x.db"), "--database", single)
    assert "the copy of a cluster is a cluster" in refused("copy", database, str(tmp_path / "new.db"))
    (tmp_path / "one" / "s01.db").unlink()
    goal = postgres.address(f"b{next(NUMBER)}")
    assert "s01.db: is missing" in refused("copy", str(tmp_path / "one"), goal)
    taken = tmp_path / "taken"
    taken.write_text("mine")
    assert "is no backup of a cluster" in refused("backup", str(taken), "--database", database)
    assert taken.read_text() == "mine"
    shutil.rmtree(tmp_path / "one")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_no_worker_may_run_on_the_goal(database, postgres, capsys):
    goal = postgres.address(f"b{next(NUMBER)}")
    call(["cluster", "create", "--shards", str(N_SHARDS), "--database", goal])
    cluster = cluster_of(goal)

    async def busy():
        connection = await tables.connect(cluster.address)
        soon = "clock_timestamp() + interval '1 hour'"
        values = f"('w', 'h', 1, clock_timestamp(), {soon})"
        await connection.execute(f"INSERT INTO worker (name, host, pid, began, seen) VALUES {values}")
        await connection.close()

    asyncio.run(busy())
    assert asyncio.run(overview(cluster))["workers"][0]["live"]
    capsys.readouterr()
    assert call(["copy", database, goal]) == 2
    assert "workers run" in capsys.readouterr().err
