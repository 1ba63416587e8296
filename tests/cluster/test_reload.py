"""``recrawl reload`` on a cluster: all workers read their settings again, by an order in the database or SIGHUP."""

import asyncio
import json
import time
from dataclasses import replace

import pytest

from recrawl.cli.commands import call
from recrawl.cluster import tables
from recrawl.cluster.reloading import order_reload
from recrawl.contrib.browser import assemble
from recrawl.crawl.run.opening.reload import Reloaded
from recrawl.errors import ParameterError
from recrawl.store.postgres.address import Address

from .clusters import Asked, Worker, cluster_of, made, settings_of, until

pytestmark = pytest.mark.slow

URLS = [f"https://h{host}.example/{k}" for host in range(6) for k in range(2)]


def test_workers_that_run_read_their_settings_again(postgres):
    database = made(postgres, URLS, shards=3)
    cluster, web, settings = cluster_of(database), Asked(), settings_of(database)
    files = {"one": settings, "two": settings}

    async def main():
        workers = [Worker(cluster, settings, name, web.of(name), read=lambda name=name: files[name]) for name in files]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        await until(lambda: sum(len(worker.shards) for worker in workers) == 3 and len(web.urls()) > 20)
        assert await _done(cluster) == {"one": Reloaded(), "two": Reloaded()}
        # other hours: nothing is asked while they are closed, and the budget is not that of the file
        files["one"] = files["two"] = replace(settings, hours="", budget="9000/s", keep=3, min_change_probability="2%")
        assert await _done(cluster) == dict.fromkeys(files, Reloaded(("min_change_probability",), ("keep",)))
        engines = [crawl._live.crawler.engine for worker in workers for crawl in worker._crawls.values()]
        assert {engine.min_change_probability for engine in engines} == {0.02}
        rule = {"match": "*/1", "importance": 7.0}
        files["one"], files["two"] = replace(files["one"], rule=(rule,)), replace(files["two"], detector="none")
        found = await _done(cluster)
        assert found["one"] == Reloaded(("rule",), ("keep",))
        assert "none" in found["two"].error
        files["two"] = files["one"]
        assert (await _done(cluster))["two"] == Reloaded(("rule",), ("keep",))
        for engine in [crawl._live.crawler.engine for worker in workers for crawl in worker._crawls.values()]:
            rows = engine.rows(engine.ids())
            of = dict(zip(rows["url"], rows["importance"], strict=True))
            assert all(value == (7.0 if url.endswith("/1") else 1.0) for url, value in of.items())
        # a shard that is taken over is opened with the settings of the reload
        workers[0].stop()
        await running[0]
        await until(lambda: len(workers[1].shards) == 3 and all(c._live for c in workers[1]._crawls.values()))
        assert {c._live.crawler.engine.min_change_probability for c in workers[1]._crawls.values()} == {0.02}
        workers[1].stop()
        await running[1]

    asyncio.run(main())


async def _done(cluster):
    return {one.worker: one.done for one in await order_reload(cluster, 300.0)}


def test_hours_that_are_reloaded_hold_at_once_and_the_budget_does_not_rise_before_its_share(postgres):
    database = made(postgres, URLS, shards=2, budget="2000000/day")
    cluster, web = cluster_of(database), Asked()
    settings = settings_of(database)
    files = [settings]

    async def main():
        worker = Worker(cluster, settings, "one", web.of("one"), read=lambda: files[-1])
        running = asyncio.create_task(worker.run())
        await until(lambda: len(worker.shards) == 2 and len(web.urls()) > 10)
        budgets = [crawl._live.crawler.budget for crawl in worker._crawls.values()]
        now = time.time()
        hour = (time.localtime(now).tm_hour + 12) % 24  # far from now
        files.append(replace(settings, hours=f"{hour}-{(hour + 1) % 24}"))
        before = sum(budget.rate for budget in budgets)
        await worker.reload()
        assert all(budget.hours is not None and not budget.ready(now) for budget in budgets)
        assert sum(budget.rate for budget in budgets) <= before
        n = len(web.asked)
        await asyncio.sleep(0.2)
        assert len(web.asked) <= n + 64  # what was begun
        files.append(settings)
        await until(lambda: sum(budget.rate for budget in budgets) > 10 * before)  # the controller's share of 1 h a day
        await worker.reload()
        assert (
            sum(budget.rate for budget in budgets) <= before * 1.001
        )  # at once: a share of 24 times as much is not used
        await until(lambda: len(web.asked) > n + 100)
        worker.stop()
        await running

    asyncio.run(main())


def test_the_command_prints_what_each_worker_did(postgres, capsys):
    database = made(postgres, URLS[:2], shards=1)
    cluster = cluster_of(database)

    def answers(number, *texts):
        async def write():
            connection = await tables.connect(cluster.address)
            await connection.execute("DELETE FROM worker")
            for k, text in enumerate(texts):
                add = (
                    "INSERT INTO worker (name, host, pid, began, seen, reloaded, answer) "
                    "VALUES ($1, 'h', 1, clock_timestamp(), clock_timestamp() + interval '1 hour', $2, $3)"
                )
                await connection.execute(add, f"w{k}", number, text)
            await connection.close()

        asyncio.run(write())

    def reload(*words):
        code = call(["reload", "--wait", "0.2", "--database", database, *words])
        return (code, *capsys.readouterr())

    capsys.readouterr()
    code, _, err = reload()
    assert (code, "no worker is running" in err) == (2, True)
    good = json.dumps({"changed": ["rule"], "needs_restart": ["keep"], "error": None})
    answers(99, good, good)
    code, out, _ = reload()
    assert (code, out.count("goes on with other settings: rule"), out.count("only used after a restart: keep")) == (
        0,
        2,
        2,
    )
    code, out, _ = reload("--json")
    assert [one["worker"] for one in json.loads(out)["workers"]] == ["w0", "w1"]
    answers(99, good, json.dumps({"changed": [], "needs_restart": [], "error": "budget 'often'"}))
    code, _, err = reload()
    assert (code, "worker w1 keeps its settings: budget 'often'" in err) == (2, True)
    answers(0, None)
    code, _, err = reload()
    assert (code, "worker w0 did not answer within 0.2 s" in err) == (2, True)


def test_an_earlier_cluster_gets_the_columns_that_it_lacks(postgres):
    """The tables of version 1 are brought up to date by the first worker, once."""
    database = made(postgres, [], shards=1)
    cluster = cluster_of(database)

    async def main():
        connection = await tables.connect(cluster.address)
        await connection.execute("DROP TABLE cluster, shard_lease, worker, share, published, shard_pass, notice")
        await connection.execute(tables._STEPS[0])
        await connection.execute("INSERT INTO cluster (version, shards, seconds, budget) VALUES (1, 1, 5, '1/s')")
        for _ in range(2):
            await tables.bring_up_to_date(cluster)
            assert await connection.fetchval("SELECT version FROM cluster") == len(tables._STEPS)
        assert await connection.fetchval("SELECT reload FROM cluster") == 0
        await connection.execute("UPDATE cluster SET version = 1000")
        with pytest.raises(Exception, match="1000"):
            await tables.bring_up_to_date(cluster)
        await connection.close()

    asyncio.run(main())
    assert asyncio.run(tables.read(Address.parse(database))).shards == 1


def test_pages_are_rendered_by_the_rules_of_all_shards(postgres, monkeypatch):
    """One browser per worker; rules that are reloaded count for it. Without a browser the command says so."""
    pytest.importorskip("playwright")
    database = made(postgres, URLS[:4], shards=2)
    cluster, web = cluster_of(database), Asked()
    settings = settings_of(database, rule=({"match": "*/1", "render": True},))
    seen = []

    def fake(settings, rules):
        inner = web.of("one")
        render = assemble.by_rules(rules)

        class Rendering:
            async def fetch(self, url, **options):
                seen.append((url, render(url) is not None))
                return await inner.pages.fetch(url, **options)

            async def close(self):
                await inner.pages.close()

        return replace(inner, pages=Rendering())

    monkeypatch.setattr(assemble, "rendered_web", fake)
    from recrawl.cli.shared.options.opening import worker_of

    async def main():
        files = [settings]
        worker = worker_of(cluster, settings, name="one", read=lambda: files[-1])
        running = asyncio.create_task(worker.run())
        await until(lambda: len(set(seen)) == 4)
        assert all(rendered is url.endswith("/1") for url, rendered in seen)
        files.append(replace(settings, rule=()))
        assert (await worker.reload()).changed == ("rule",)
        n = len(seen)
        await until(lambda: len(seen) > n + 70)  # beyond those that had begun
        assert not any(rendered for _, rendered in seen[-3:])
        worker.stop()
        await running

    asyncio.run(main())
    monkeypatch.undo()
    monkeypatch.setattr(assemble.shutil, "which", lambda name: None)
    with pytest.raises(ParameterError, match="need Chromium"):
        worker_of(cluster, settings, name="two")
