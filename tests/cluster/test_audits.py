"""An audit of a whole cluster: draws by importance among shards, made by its workers, beside the truth."""

import asyncio
import json
import time

import numpy as np
import pytest

from recrawl.cli.commands import call
from recrawl.cluster import tables
from recrawl.cluster.audit import queue_audit
from recrawl.cluster.worker import ShardWorker
from recrawl.crawl import MemoryWeb, Settings, SystemClock, Web
from recrawl.store.postgres.address import Address

pytestmark = pytest.mark.full  # two workers after each other, and a crawl of all pages

N_SHARDS, N_HOSTS, PER_HOST = 4, 12, 12
URLS = [f"https://h{host}.example/{k}" for host in range(N_HOSTS) for k in range(PER_HOST)]
HEAVY, STALE = {0, 1, 2}, {1, 4, 5, 6, 7, 8, 9, 10}  # hosts: of importance 10, and whose pages change
DRAWS = 300


def host_of(url):
    return int(url.split("/")[2][1:].partition(".")[0])


async def work(cluster, database, page, over):
    """Let a worker run until something holds."""
    clock = SystemClock()
    web = MemoryWeb(page, clock, max_redirects=0)
    settings = Settings(database=database, contact="me@example.org", delay="0.001 s", listings=False)
    worker = ShardWorker(cluster, settings, name="one", web=Web("recrawl/1", web, web, clock))
    running, end = asyncio.create_task(worker.run()), time.monotonic() + 300.0
    while not await over():
        assert time.monotonic() < end, "waited too long"
        await asyncio.sleep(0.05)
    worker.stop()
    await running


def test_an_audit_of_all_shards_finds_the_truth(postgres, capsys):
    database = postgres.address("audited")
    made = ["cluster", "create", "--shards", N_SHARDS, "--lease", 1.5, "--budget", "150/s", "--database", database]
    assert call([str(word) for word in made]) == 0
    heavy = [url for url in URLS if host_of(url) in HEAVY]
    assert call(["add", *heavy, "--importance", "10", "--database", database]) == 0
    assert call(["add", *URLS, "--database", database]) == 0
    asked, turned = set(), []
    words = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "an", "en", "in", "on", "un")]

    def page(url, now):
        asked.add(url)
        if url.endswith("robots.txt"):
            return None
        if not turned or host_of(url) not in STALE:
            return "<p>old"
        turned.append(True)  # another text each time: a copy is stale however often it was crawled before its draw
        return f"<p>{words[len(turned) // len(words)]} {words[len(turned) % len(words)]}"

    def audits():
        capsys.readouterr()
        assert call(["audit", "--list", "--json", "--database", database]) == 0
        return json.loads(capsys.readouterr().out)["audits"]

    async def crawled():
        return set(URLS) <= asked

    async def audited():
        return bool(await asyncio.to_thread(audits))

    async def main():
        cluster = await tables.read(Address.parse(database))
        await work(cluster, database, page, crawled)
        turned.append(True)
        given = await queue_audit(cluster, DRAWS, 0.99, np.random.default_rng(3))
        assert sum(given.values()) == DRAWS
        await work(cluster, database, page, audited)

    asyncio.run(main())
    (found,) = audits()
    weight = np.array([10.0 if host_of(url) in HEAVY else 1.0 for url in URLS])
    truth = float(np.average([host_of(url) not in STALE for url in URLS], weights=weight))
    by_pages = float(np.mean([host_of(url) not in STALE for url in URLS]))
    assert found["low"] <= truth <= found["high"], (truth, found)
    assert not found["low"] <= by_pages <= found["high"], "pages count by importance, also across shards"
    assert found["draws"] + found["unknown"] == DRAWS
    assert found["freshness"] == pytest.approx(found["fresh"] / found["draws"]), "all were judged: each counts the same"
    assert call(["audit", "--database", database]) == 2
    assert "no worker of the cluster runs" in capsys.readouterr().err
