"""The Scrapy side of bench_crawl.py: fetch all pages once, hash the main text, keep the result in SQLite.

``python benchmarks/scrapy_crawl.py PORT N_HOSTS N_PAGES CONCURRENCY DATABASE LOOP`` prints a JSON line.
"""

from __future__ import annotations

import json
import resource
import sqlite3
import sys
import time

import scrapy
from crawl_server import addresses
from scrapy.crawler import CrawlerProcess

from recrawl.crawl.detect.detector import detector
from recrawl.crawl.http.fetched import Fetched

COMMIT_EVERY = 256  # rows
_SCHEMA = "create table copies (url text primary key, fetched_at real, status integer, digest text, size integer)"


class Pages(scrapy.Spider):
    """All pages, one after the other."""

    name = "pages"

    def __init__(self, urls: list[str], database: str) -> None:
        super().__init__()
        self._urls, self._detector, self._waiting = urls, detector("main"), 0
        self._base = sqlite3.connect(database)
        self._base.execute("pragma journal_mode = wal")
        self._base.execute("pragma synchronous = normal")
        self._base.execute(_SCHEMA)

    async def start(self):
        for url in self._urls:
            yield scrapy.Request(url, callback=self.parse)

    def parse(self, response):
        kind = (response.headers.get("Content-Type") or b"").decode("latin-1")
        fetched = Fetched(response.url, response.url, response.status, 0.0, 0.0, {"content-type": kind}, response.body)
        row = (response.url, time.time(), response.status, self._detector.digest(fetched), len(response.body))
        self._base.execute("insert into copies values (?, ?, ?, ?, ?)", row)
        self._waiting += 1
        if self._waiting >= COMMIT_EVERY:
            self._base.commit()
            self._waiting = 0

    def closed(self, reason: str) -> None:
        self._base.commit()
        self._base.close()


def main() -> None:
    port, n_hosts, n_pages, concurrency = map(int, sys.argv[1:5])
    database, loop = sys.argv[5:7]
    hosts = addresses(n_hosts)
    urls = [f"http://{hosts[k % n_hosts]}:{port}/page/{k}" for k in range(n_pages)]
    settings = {
        "CONCURRENT_REQUESTS": concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": concurrency,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": True,
        "COOKIES_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "ERROR",
        "ASYNCIO_EVENT_LOOP": "uvloop.Loop" if loop == "uvloop" else None,
    }
    process = CrawlerProcess(settings)
    process.crawl(Pages, urls=urls, database=database)
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    process.start()
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    rows = sqlite3.connect(database).execute("select count(*), count(distinct digest) from copies").fetchone()
    print(
        json.dumps(
            {"pages": rows[0], "digests": rows[1], "seconds": took, "cpu": cpu, "peak_mb": after.ru_maxrss / 1024}
        )
    )


if __name__ == "__main__":
    main()
