"""``recrawl serve`` on a cluster: the routes and views of one machine, answered from all shards."""

import asyncio
import itertools
import json
import re
import time

import aiohttp
import pytest

from recrawl.cli.commands import call
from recrawl.cluster import tables
from recrawl.cluster.hosts import shards_of
from recrawl.cluster.worker import ShardWorker
from recrawl.crawl import MemoryWeb, Settings, SystemClock, Web
from recrawl.serve.cluster_service import start_cluster_server
from recrawl.serve.crawls.shards import ClusterCrawl
from recrawl.store.postgres.address import Address

pytestmark = pytest.mark.slow

N_SHARDS = 4
NUMBER = itertools.count()
URLS = [f"https://h{host}.example/{k}" for host in range(8) for k in range(3)]


def made(postgres, *urls):
    """The address of a new cluster with pages."""
    address = postgres.address(f"s{next(NUMBER)}")
    words = ["cluster", "create", "--shards", N_SHARDS, "--lease", 1.5, "--budget", "60/s", "--database", address]
    assert call([str(word) for word in words]) == 0
    assert call(["add", *(urls or URLS), "--database", address]) == 0
    return address


def worker_of(cluster, database, page):
    clock = SystemClock()
    web = MemoryWeb(page, clock, max_redirects=0)
    settings = Settings(database=database, contact="me@example.org", delay="0.01 s", listings=False)
    options = {"commands_every": 0.05}
    return ShardWorker(cluster, settings, name="one", web=Web("recrawl/1", web, web, clock), options=lambda _: options)


async def until(holds, seconds=300.0):
    """Wait for a condition, with a generous bound."""
    end = time.monotonic() + seconds
    while not await holds():
        assert time.monotonic() < end, "waited too long"
        await asyncio.sleep(0.02)


class Served:
    """A service of a cluster, its token and a client."""

    def __init__(self, database, token):
        self.database, self.token = database, token
        self.url, self.client, self.crawl = "", None, None

    async def call(self, method, path, body=None, token=None, **more):
        headers = {"authorization": f"Bearer {token or self.token}"}
        async with self.client.request(method, self.url + path, json=body, headers=headers, **more) as answer:
            return answer.status, await answer.json(content_type=None)

    async def page(self, path):
        async with self.client.get(self.url + path) as answer:
            return answer.status, await answer.text()


def with_cluster(test, database, capsys, page):
    """Run a test with a worker and the service of a cluster."""
    capsys.readouterr()
    assert call(["token", "add", "boss", "--scope", "admin", "--database", database]) == 0
    served = Served(database, capsys.readouterr().out.strip())

    async def run():
        cluster = await tables.read(Address.parse(database))
        worker = worker_of(cluster, database, page)
        running = asyncio.create_task(worker.run())
        served.crawl = crawl = ClusterCrawl(cluster, Settings(database=database, listen="127.0.0.1:0"))
        await crawl.look()
        service, server = await start_cluster_server(crawl, "127.0.0.1:0")
        served.url = server.url
        looking = asyncio.create_task(crawl.run())
        jar = aiohttp.CookieJar(unsafe=True)
        try:
            async with aiohttp.ClientSession(cookie_jar=jar) as served.client:
                await test(served)
        finally:
            await server.close()
            await service.close()
            crawl.stop()
            await looking
            await crawl.close()
            worker.stop()
            await running

    asyncio.run(run())


def test_routes_and_views_speak_of_the_whole_cluster(postgres, capsys):
    database, n_asked = made(postgres), itertools.count()

    def page(url, now):
        return None if url.endswith("robots.txt") else f"<title>{url}</title><p>{next(n_asked) // 60}"

    async def test(one):
        await _reads(one)
        await _writes(one)
        await _events(one)
        await _dashboard(one)

    with_cluster(test, database, capsys, page)


async def _reads(one):
    async def crawled():
        return len({outcome.url for outcome in await one.crawl.reader.newest_outcomes(500)}) == len(URLS)

    await until(crawled)
    status, found = await one.call("GET", "/v1/status")
    assert (status, found["pages"], found["copies"]) == (200, len(URLS), len(URLS))
    listed, cursor = [], None
    while True:
        query = {"limit": 7} | ({} if cursor is None else {"cursor": cursor})
        status, found = await one.call("GET", "/v1/pages", params=query)
        assert status == 200
        listed += found["pages"]
        cursor = found["cursor"]
        if cursor is None:
            break
    assert sorted(row["url"] for row in listed) == sorted(URLS)
    assert all(row["fetched_at"] is not None and row["change_rate"] > 0 for row in listed)
    status, found = await one.call("GET", "/v1/why", params={"url": URLS[0]})
    assert (status, found["url"], "text" in found) == (200, URLS[0], True)
    assert (await one.call("GET", "/v1/why", params={"url": "https://no.example/"}))[0] == 404
    status, found = await one.call("GET", "/v1/hosts")
    assert (status, found["total"], found["hosts"][0]["pages"]) == (200, 8, 3)
    assert (await one.call("GET", "/v1/sources"))[1]["shards"] == N_SHARDS
    status, found = await one.call("GET", "/v1/forecast", params={"budget": "1/page/day"})
    assert (status, found["budget"]) == (200, "1/page/day")
    for path, body in (("pick", {"n": 1}), ("record", {"outcomes": []}), ("release", {"leases": []})):
        status, found = await one.call("POST", f"/v1/{path}", body)
        assert (status, "crawl its pages themselves" in found["detail"]) == (409, True)


async def _writes(one):
    new = "https://new.example/"
    assert (await one.call("POST", "/v1/pages", {"pages": [{"url": new}, {"url": URLS[0]}]}))[1] == {
        "added": 1,
        "known": 1,
    }
    assert (await one.call("POST", "/v1/pages", {"pages": [{"url": new}]}))[1] == {"added": 0, "known": 1}

    async def importance(url=new):
        status, found = await one.call("GET", "/v1/why", params={"url": url})
        return found["importance"] if status == 200 else None

    async def is_there():
        return await importance() == 1.0

    async def weighs():
        return await importance() == 5.0

    async def is_gone():
        return await importance() is None

    await until(is_there)
    changed = {"pages": [{"url": new, "importance": 5.0}]}
    assert await one.call("PATCH", "/v1/pages", changed) == (200, {"updated": 1})
    await until(weighs)
    signals = {"signals": [{"url": URLS[0]}, {"url": "https://no.example/"}]}
    assert (await one.call("POST", "/v1/signals", signals))[1] == {
        "accepted": 1,
        "repeated": 0,
        "outdated": 0,
        "unknown": 1,
    }

    async def heard():
        found = await asyncio.to_thread(one.crawl.questions.sources, time.time())
        return "webhook:boss" in {*found["unheard"], *(row["source"] for row in found["sources"])}

    await until(heard)
    assert await one.call("POST", "/v1/pages/remove", {"urls": [new]}) == (200, {"removed": 1})
    await until(is_gone)
    status, problem = await one.call("PATCH", "/v1/pages", changed)
    assert (status, problem["row"]) == (422, 0)
    assert (await one.call("PUT", "/v1/budget", {"budget": "50/s"}))[1]["rate"] == 50.0
    assert (await one.call("GET", "/v1/budget"))[1]["budget"] == "50/s"
    assert (await one.call("PUT", "/v1/budget", {"budget": "soon"}))[0] == 422


async def _events(one):
    """Every event comes once, whatever the shard, also after the stream was broken off."""
    seen, cursor = [], "start"
    for _ in range(3):
        headers = {"authorization": f"Bearer {one.token}", "last-event-id": cursor}
        async with one.client.get(one.url + "/v1/events", headers=headers) as answer:
            assert answer.status == 200
            for _ in range(8):
                fields = {}
                while line := (await answer.content.readline()).decode().strip():
                    name, _, value = line.partition(": ")
                    fields[name] = value
                if "data" in fields:
                    seen.append(json.loads(fields["data"]))
                    cursor = fields["id"]
    assert len(seen) >= 20
    ids = [(event["shard"], event["number"]) for event in seen]
    assert len(set(ids)) == len(ids)
    for event in seen:
        assert shards_of([event["url"]], N_SHARDS)[0] == event["shard"]
    for shard in range(N_SHARDS):
        mine = [number for k, number in ids if k == shard]
        assert mine == list(range(1, len(mine) + 1))
    status, _ = await one.call("GET", "/v1/events", params={"cursor": "nonsense"})
    assert status == 422


async def _dashboard(one):
    async with one.client.post(one.url + "/sign-in", data={"token": one.token}) as answer:
        assert answer.status == 200
    for path in ("/", "/?order=added", "/?order=checked", "/?order=stale", "/?q=h3.ex", "/freshness", "/budget"):
        status, text = await one.page(path)
        assert status == 200, path
    for path in ("/hosts", "/signals", "/stale", "/settings", "/feed", f"/page?url={URLS[0]}"):
        status, text = await one.page(path)
        assert status == 200, path
    assert "h0.example" in text
    status, text = await one.page("/workers")
    assert (status, text.count(">one<")) == (200, N_SHARDS + 2), "the worker and its shards, and the controller"
    status, text = await one.page("/?q=h3.ex")
    assert len(set(re.findall("https://h3.example/[0-9]", text))) == 3
    async with one.client.get(one.url + "/metrics", headers={"authorization": f"Bearer {one.token}"}) as answer:
        metrics = await answer.text()
    assert f"recrawl_cluster_shards_held {N_SHARDS}.0" in metrics
    assert "recrawl_pages 2" in metrics, "24 pages, or 25 when they were counted last"
    async with one.client.get(one.url + "/readyz") as answer:
        assert answer.status == 200
