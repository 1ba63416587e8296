"""One crawl of bench_scrapy.py: ``python benchmarks/scrapy_addon.py TASK``, JSON, prints a JSON line."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import scrapy
from crawl_server import addresses
from scrapy.crawler import CrawlerProcess

from recrawl.contrib.scrapy import DatabaseSource
from recrawl.contrib.scrapy.options import Options

_TICK = 1.0 / os.sysconf("SC_CLK_TCK")


class Pages(scrapy.Spider):
    """All pages, each once; ends after the last."""

    name = "pages"
    first: tuple[float, ...] = ()
    last: tuple[float, ...] = ()
    n = most = 0

    async def start(self):
        for url in self.urls:
            yield scrapy.Request(url)

    def parse(self, response):
        self.n += 1
        if self.n in (1, self.most):
            self.first, self.last = self.first or marks(), marks()
        yield {"url": response.url, "title": response.css("title::text").get()}
        if self.n == self.most:
            raise scrapy.exceptions.CloseSpider("done")


def marks() -> tuple[float, ...]:
    """Now: time, processor time of this process, and of the processes that it has started."""
    return time.perf_counter(), time.process_time(), sum(map(cpu_of, children()))


def children() -> list[int]:
    """The processes that this one has started, where the system tells."""
    file = Path(f"/proc/self/task/{os.getpid()}/children")
    return [int(word) for word in file.read_text().split()] if file.is_file() else []


def cpu_of(pid: int) -> float:
    """Seconds of processor that a process has used."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return _TICK * (int(words[11]) + int(words[12]))


async def add(settings: scrapy.settings.Settings, urls: list[str]) -> None:
    source = await DatabaseSource.open(Options.read(settings).crawl_settings())
    for k in range(0, len(urls), 1000):
        await source.add(urls[k : k + 1000])
    await source.close()


def main() -> None:
    task = json.loads(sys.argv[1])
    hosts, concurrency = addresses(task["hosts"]), task["concurrency"]
    urls = [f"http://{hosts[k % len(hosts)]}:{task['port']}/page/{k}" for k in range(task["pages"])]
    settings = {
        "CONCURRENT_REQUESTS": concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": concurrency,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "ERROR",
    }
    if task["database"]:
        settings |= {"ADDONS": {"recrawl.contrib.scrapy.Recrawl": 500}, "RECRAWL_DATABASE": task["database"]}
        settings |= {"RECRAWL_BUDGET": "100000/s", "RECRAWL_CHANGE": task["change"], "RECRAWL_PROCESS": task["process"]}
        asyncio.run(add(scrapy.settings.Settings(settings), urls))
        time.sleep(3.0)  # what that opening may have spent of the budget is over
    process = CrawlerProcess(settings)
    crawler = process.create_crawler(Pages)
    process.crawl(crawler, urls=[] if task["database"] else urls, most=len(urls))
    process.start()
    took = [after - before for before, after in zip(crawler.spider.first, crawler.spider.last, strict=True)]
    print(json.dumps({"pages": len(urls), "seconds": took[0], "cpu": took[1], "desk_cpu": took[2]}))


if __name__ == "__main__":
    main()
