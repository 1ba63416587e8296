"""Clusters on a real server, webs that note which worker asked what when, and workers in one process."""

import asyncio
import itertools
import time
from dataclasses import replace

from recrawl.cli.commands import call
from recrawl.cluster import tables
from recrawl.cluster.worker import ShardWorker
from recrawl.crawl import MemoryWeb, Settings, SystemClock, Web
from recrawl.store.postgres.address import Address

NUMBER = itertools.count()


def made(postgres, urls, *, shards=4, seconds=1.5, budget="40/s"):
    """The address of a new cluster with pages."""
    address = postgres.address(f"w{next(NUMBER)}")
    asyncio.run(tables.create(Address.parse(address), shards, budget, seconds=seconds))
    if urls:
        assert call(["add", *urls, "--database", address]) == 0
    return address


def cluster_of(database):
    return asyncio.run(tables.read(Address.parse(database)))


def settings_of(database, **more):
    return Settings(database=database, contact="me@example.org", delay="0.01 s", listings=False, **more)


class Asked:
    """A web for workers in one process, and which of them asked what when; ``page(url, now)`` answers."""

    def __init__(self, page=None):
        self.asked, self.page = [], page or (lambda url, now: f"<p>{url} {len(self.asked) // 10}")

    def of(self, name, **robots):
        clock = SystemClock()

        def answer(url, now):
            self.asked.append((time.monotonic(), name, url))
            return None if url.endswith("robots.txt") else self.page(url, now)

        web = MemoryWeb(answer, clock, max_redirects=0, **robots)
        return Web("recrawl/1", web, web, clock)

    def urls(self):
        """What was asked, without robots.txt."""
        return [url for *_, url in self.asked if not url.endswith("robots.txt")]


class Worker(ShardWorker):
    """A worker that polls its commands quickly."""

    def __init__(self, cluster, settings, name, web, *, options=None, **more):
        quick = {"commands_every": 0.05, **(options or {})}
        super().__init__(cluster, settings, name=name, web=web, options=lambda _: quick, **more)


async def until(holds, seconds=120.0):
    """Wait for a condition, with a generous bound."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        await asyncio.sleep(0.01)


def changed(settings, **more):
    """A function that reads settings: those given, with changes."""
    return lambda: replace(settings, **more)
