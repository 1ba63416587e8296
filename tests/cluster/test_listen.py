"""``run --listen`` on a cluster: any worker takes what others say for all shards; nothing acknowledged is lost."""

import asyncio
import hmac
import random
import signal
import subprocess
import sys
from contextlib import asynccontextmanager

import aiohttp
import pytest
from postgres_server import free_port

from recrawl.cli.commands import call
from recrawl.cluster import tables
from recrawl.cluster.hosts import shards_of
from recrawl.cluster.ownership.stores import ShardStores
from recrawl.crawl import MemoryWeb, SystemClock, Web
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.http.memory import Answer
from recrawl.serve.cluster_service import beside_worker
from recrawl.store import PostgresStore

from .clusters import Asked, Worker, cluster_of, made, settings_of, until

pytestmark = pytest.mark.slow

N_SHARDS = 4
URLS = [f"https://h{host}.example/{k}" for host in range(8) for k in range(2)]
PUBLIC = "https://crawl.example.org"
KEY = "0123456789abcdef"
SHARD_OF = dict(zip(URLS, shards_of(URLS, N_SHARDS).tolist(), strict=True))


def listening(database, **more):
    return settings_of(database, listen="127.0.0.1:0", public_url=PUBLIC, **more)


@asynccontextmanager
async def served(cluster, settings):
    """The HTTP interface of a worker, without the worker."""
    async with beside_worker(cluster, settings) as server, aiohttp.ClientSession(server.url) as client:
        yield client


async def notes_of(cluster, shard, prefix):
    async with PostgresStore(cluster.shard_database(shard), exclusive=False) as store:
        return await store.notes(prefix)


async def rows_of(cluster, name):
    """The rows of a table of all shards."""
    connection = await tables.connect(cluster.address)
    found = []
    for shard in range(N_SHARDS):
        found += [
            (shard, dict(row))
            for row in await connection.fetch(f"SELECT * FROM {cluster.shard_address(shard).schema}.{name}")
        ]
    await connection.close()
    return found


def test_what_is_acknowledged_survives_whoever_took_it_and_whoever_has_the_shard(postgres, capsys):
    database = made(postgres, URLS, shards=N_SHARDS, budget="200/s")
    capsys.readouterr()
    assert call(["token", "add", "cms", "--scope", "signal", "--database", database]) == 0
    token = capsys.readouterr().out.strip()
    cluster, settings = cluster_of(database), listening(database)

    def page(url, now):
        return KEY if url.endswith(f"{KEY}.txt") else f"<p>{url}"

    web = Asked(page)

    async def main():
        headers = {"authorization": f"Bearer {token}"}
        async with served(cluster, settings) as client:  # no worker has any shard
            said = [{"url": url} for url in URLS] + [{"url": "https://h0.example/unknown"}]
            async with client.post("/v1/signals", json={"signals": said}, headers=headers) as answer:
                assert (answer.status, (await answer.json())["accepted"]) == (200, len(URLS))
            ping = {"host": "h0.example", "key": KEY, "urlList": [URLS[0], URLS[1]]}
            async with client.post("/indexnow", json=ping) as answer:
                assert answer.status == 202
            other = {"host": "none.example", "key": KEY, "urlList": ["https://none.example/"]}
            async with client.post("/indexnow", json=other) as answer:
                assert answer.status == 200, "a host without pages causes no request"
            async with client.get("/indexnow", params={"url": "x", "key": KEY}) as answer:
                assert answer.status in (400, 422)
        queued = await rows_of(cluster, "command")  # the process is gone: nothing of it was in memory alone
        assert {shard for shard, _ in queued} == set(SHARD_OF.values())
        assert web.asked == []
        one = Worker(cluster, settings, "one", web.of("one"))
        stored = asyncio.create_task(one.run())

        while len(await rows_of(cluster, "command")) > 0:
            await asyncio.sleep(0.02)
        await until(lambda: any(url.endswith(f"{KEY}.txt") for url in web.urls()))
        connection = await tables.connect(cluster.address)
        shard = SHARD_OF[URLS[0]]
        schema = cluster.shard_address(shard).schema

        async def heard():
            return await connection.fetchval(f"SELECT value FROM {schema}.note WHERE name LIKE 'indexnow:%'")

        for _ in range(2000):
            if '"valid": true' in (await heard() or ""):
                break
            await asyncio.sleep(0.01)
        assert '"valid": true' in await heard()
        one.stop()
        await stored
        names = await connection.fetch(f"SELECT value FROM {schema}.note WHERE name LIKE 'signal%'")
        assert any("cms" in row["value"] for row in names)
        assert any("indexnow" in row["value"] for row in names)
        # a key that is known is answered from the notes of its shard
        async with served(cluster, settings) as client:
            async with client.get("/indexnow", params={"url": URLS[0], "key": KEY}) as answer:
                assert answer.status == 200
            async with client.get(
                "/indexnow", params={"url": URLS[0], "key": KEY, "keyLocation": "https://h0.example/b/k.txt"}
            ) as answer:
                assert answer.status in (403, 422)
        await connection.close()

    asyncio.run(main())
    key_files = [url for url in web.urls() if url.endswith(f"{KEY}.txt")]
    assert key_files == [f"https://h0.example/{KEY}.txt"], "once, by the owner of the shard"


def test_a_queue_that_is_full_refuses_instead_of_losing(postgres, capsys, monkeypatch):
    from recrawl.cluster import reading

    database = made(postgres, URLS[:2], shards=N_SHARDS)
    capsys.readouterr()
    assert call(["token", "add", "cms", "--scope", "signal", "--database", database]) == 0
    token = capsys.readouterr().out.strip()
    cluster, settings = cluster_of(database), listening(database)
    monkeypatch.setattr(reading, "MOST_QUEUED", 0)

    async def main():
        async with served(cluster, settings) as client:
            said, headers = {"signals": [{"url": URLS[0]}]}, {"authorization": f"Bearer {token}"}
            async with client.post("/v1/signals", json=said, headers=headers) as answer:
                assert answer.status == 429
            async with client.get("/indexnow", params={"url": URLS[0], "key": KEY}) as answer:
                assert answer.status == 429
        assert [row for _, row in await rows_of(cluster, "command") if "token" not in row["value"]] == []

    asyncio.run(main())


class Posting:
    """A fetcher that also streams and sends forms, as that of a crawl does."""

    def __init__(self, web, asked, name):
        self._web, self._asked, self._name = web, asked, name
        self.fetch, self.close = web.fetch, web.close

    async def stream(self, url, sink, **options):
        return await self._web.fetch(url, **options)

    async def post(self, url, form):
        self._asked.append((self._name, url, dict(form)))
        return Fetched(url, url, 202, 0.0, 0.0)


def test_subscriptions_are_kept_by_the_shard_of_the_page_and_called_back_at_any_worker(postgres):
    """The hub is asked by the owner of its host; it verifies at, and delivers to, another process."""
    page, hub = URLS[0], next(url for url in URLS if SHARD_OF[url] != SHARD_OF[URLS[0]])
    database = made(postgres, [page, hub], shards=N_SHARDS, budget="20/s")
    cluster, settings = cluster_of(database), listening(database)
    posts = []

    def answer(url, now):
        if url == page:
            headers = {"content-type": "text/html", "link": f'<{hub}>; rel="hub", <{page}>; rel="self"'}
            return Answer("<p>first", headers=headers)
        return None if url.endswith("robots.txt") else "<p>hub"

    def web_of(name):
        clock = SystemClock()
        web = MemoryWeb(answer, clock, max_redirects=0)
        return Web("recrawl/1", Posting(web, posts, name), web, clock)

    async def main():
        workers = [Worker(cluster, settings, name, web_of(name)) for name in ("one", "two")]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        await until(lambda: posts)
        (name, url, form), shard = posts[0], SHARD_OF[page]
        assert url == hub
        assert SHARD_OF[hub] in next(worker for worker in workers if worker.name == name).shards
        callback = form["hub.callback"]
        assert callback.startswith(f"{PUBLIC}/shards/{shard}/websub/")
        path = callback.removeprefix(PUBLIC)
        async with served(cluster, settings) as client:
            query = {"hub.mode": "subscribe", "hub.topic": form["hub.topic"], "hub.lease_seconds": "864000"}
            async with client.get(path, params=query | {"hub.challenge": "c1"}) as found:
                assert (found.status, await found.text()) == (200, "c1")
            for wrong in (path[:-1] + "_", path.replace(f"/shards/{shard}/", f"/shards/{(shard + 1) % N_SHARDS}/")):
                async with client.get(wrong, params=query | {"hub.challenge": "c1"}) as found:
                    assert found.status == 404
                async with client.post(wrong, data=b"x") as found:
                    assert found.status == 410
            async with client.get("/shards/99/websub/x", params=query) as found:
                assert found.status == 404
            verified = await _noted(cluster, shard, lambda note: note["verified_at"] > 0)
            assert verified["topic"] == form["hub.topic"]
            body = b"<p>second, by the hub"
            for secret, taken in (("wrong", False), (form["hub.secret"], True)):
                signature = "sha256=" + hmac.new(secret.encode(), body, "sha256").hexdigest()
                sent = {"x-hub-signature": signature, "content-type": "text/html"}
                async with client.post(path, data=body, headers=sent) as found:
                    assert found.status == 202
                if not taken:
                    await asyncio.sleep(0.2)
                    assert (await _noted(cluster, shard, lambda note: True))["n_deliveries"] == 0
            await _noted(cluster, shard, lambda note: note["n_deliveries"] == 1)
        for worker in workers:
            worker.stop()
        counted = [await one for one in running]
        assert sum(one.get("deliveries", 0) for one in counted) == 1

    asyncio.run(main())


async def _noted(cluster, shard, holds):
    """The note of the one subscription of a shard, once it is as wanted."""
    for _ in range(3000):
        notes = list((await notes_of(cluster, shard, "websub:")).values())
        if notes and holds(notes[0]):
            return notes[0]
        await asyncio.sleep(0.02)
    raise AssertionError(notes)


def test_a_signal_whose_owner_is_lost_before_it_says_so_is_taken_again(postgres, capsys):
    """The signal is stored before its command is deleted; the next owner finds it repeated."""
    database = made(postgres, URLS[:1], shards=1, budget="0.001/s")
    cluster, settings = cluster_of(database), listening(database)

    async def main():
        command = {"signals": [[URLS[0], "cms", None, 0.0]]}
        async with PostgresStore(cluster.shard_database(0), exclusive=False) as store:
            await store.queue([command, command])  # the same twice: as if the first owner was lost in between
            worker = Worker(cluster, settings, "one", Asked().of("one"))
            running = asyncio.create_task(worker.run())
            while await store.commands():
                await asyncio.sleep(0.02)
            assert [one.url for one in await store.signals()] == [URLS[0]]
            worker.stop()
            await running

    asyncio.run(main())


@pytest.mark.full
def test_processes_that_are_killed_lose_no_acknowledged_signal(postgres, capsys, tmp_path):
    """Two workers in processes of their own get signals and are killed again and again."""
    urls = [f"https://h{host}.example/{k}" for host in range(10) for k in range(30)]
    database = made(postgres, urls, shards=N_SHARDS, budget="0.01/s")
    capsys.readouterr()
    assert call(["token", "add", "cms", "--scope", "signal", "--database", database]) == 0
    headers = {"authorization": f"Bearer {capsys.readouterr().out.strip()}"}
    cluster, draw, acknowledged = cluster_of(database), random.Random(7), set()

    def started():
        port = free_port()
        words = [
            "run",
            "--listen",
            f"127.0.0.1:{port}",
            "--database",
            database,
            "--contact",
            "me@example.org",
            "--quiet",
        ]
        with open(tmp_path / f"{port}.log", "wb") as log:
            process = subprocess.Popen([sys.executable, "-m", "recrawl", *words], cwd=tmp_path, stdout=log, stderr=log)
        return port, process

    async def said(client, port, some):
        try:
            body = {"signals": [{"url": url} for url in some]}
            async with client.post(f"http://127.0.0.1:{port}/v1/signals", json=body, headers=headers) as answer:
                if answer.status == 200 and (await answer.json())["accepted"] == len(some):
                    acknowledged.update(some)
        except (aiohttp.ClientError, ConnectionError):
            await asyncio.sleep(0.05)

    async def main():
        left, running = list(urls), [started(), started()]
        try:
            async with aiohttp.ClientSession() as client:
                for _ in range(6):
                    n = len(acknowledged)
                    while len(acknowledged) < min(n + 40, len(urls)):
                        some = draw.sample(left, 3)
                        await said(client, draw.choice(running)[0], some)
                    victim = draw.randrange(2)
                    running[victim][1].send_signal(signal.SIGKILL)
                    running[victim][1].wait()
                    running[victim] = started()
            while any("signals" in row["value"] for _, row in await rows_of(cluster, "command")):
                await asyncio.sleep(0.1)
        finally:
            for _, process in running:
                process.kill()
                process.wait()

    asyncio.run(main())
    with ShardStores(cluster) as stores:
        there = {one.url for shard in range(N_SHARDS) for one in stores.shared(shard).signals()}
    assert len(acknowledged) >= 200
    assert acknowledged <= there
