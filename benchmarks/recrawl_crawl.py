"""The recrawl side of bench_crawl.py: fetch all pages once, hash the main text, keep the result in SQLite.

``python benchmarks/recrawl_crawl.py PORT N_HOSTS N_PAGES CONCURRENCY DATABASE LOOP`` prints a JSON line.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sqlite3
import sys
import time
from collections.abc import Mapping
from typing import Any

from crawl_server import addresses

from recrawl.crawl.clock import SystemClock
from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.http.fetcher import HttpFetcher, Limits
from recrawl.crawl.polite.robots import Robots
from recrawl.crawl.run.crawler import Crawler
from recrawl.engine import Engine
from recrawl.store import SqliteStore

AGENT = "recrawl-bench/1"
UNPACED = 1e6  # requests a second: as many as there is room for


async def crawl(urls: list[str], concurrency: int, database: str) -> tuple[float, float]:
    """Crawl all pages once; seconds and seconds of CPU."""
    clock = SystemClock()
    engine = Engine(UNPACED, start=clock.now(), sources=0)
    engine.add(urls, clock.now())
    store = SqliteStore(database, keep=0)
    await store.save(rows=engine.rows())
    limits = Limits(connections=concurrency)
    fetcher = HttpFetcher(AGENT, allow_private=True, limits=limits, clock=clock)

    def heard(name: str, fields: Mapping[str, Any]) -> None:
        if crawler.counters.new >= len(urls):
            crawler.stop()

    crawler = Crawler(
        engine,
        store,
        fetcher,
        CrawlOptions(concurrency=concurrency, on_event=heard),
        robots=Robots(fetcher, AGENT, clock),
        clock=clock,
    )
    before, began = usage(), time.perf_counter()
    await crawler.run()
    took, used = time.perf_counter() - began, usage() - before
    crawler.close()
    await store.close()
    await fetcher.close()
    return took, used


def usage() -> float:
    """Seconds of CPU so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    port, n_hosts, n_pages, concurrency = map(int, sys.argv[1:5])
    database, loop = sys.argv[5:7]
    hosts = addresses(n_hosts)
    urls = [f"http://{hosts[k % n_hosts]}:{port}/page/{k}" for k in range(n_pages)]
    work = crawl(urls, concurrency, database)
    if loop == "uvloop":
        import uvloop

        took, cpu = uvloop.run(work)
    else:
        took, cpu = asyncio.run(work)
    pages, digests = sqlite3.connect(database).execute("select count(*), count(distinct digest) from copy").fetchone()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"pages": pages, "digests": digests, "seconds": took, "cpu": cpu, "peak_mb": peak}))


if __name__ == "__main__":
    main()
