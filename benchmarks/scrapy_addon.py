"""One crawl of bench_scrapy.py: ``python benchmarks/scrapy_addon.py TASK``, JSON, prints a JSON line."""

from __future__ import annotations

import asyncio
import json
import sys
import time

import scrapy
from crawl_server import addresses
from scrapy.crawler import CrawlerProcess

from recrawl.contrib.scrapy import DatabaseSource
from recrawl.contrib.scrapy.options import Options


class Pages(scrapy.Spider):
    """All pages, each once; ends after the last."""

    name = "pages"
    times: tuple[float, ...] = ()
    n = most = 0

    async def start(self):
        for url in self.urls:
            yield scrapy.Request(url)

    def parse(self, response):
        self.n += 1
        self.times = (*self.times[:1], time.perf_counter())
        yield {"url": response.url, "title": response.css("title::text").get()}
        if self.n == self.most:
            raise scrapy.exceptions.CloseSpider("done")


async def add(settings: scrapy.settings.Settings, urls: list[str]) -> None:
    source = await DatabaseSource.open(Options.read(settings))
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
        settings |= {"RECRAWL_BUDGET": "100000/s", "RECRAWL_CHANGE": task["change"]}
        asyncio.run(add(scrapy.settings.Settings(settings), urls))
        time.sleep(3.0)  # what that opening may have spent of the budget is over
    process = CrawlerProcess(settings)
    crawler = process.create_crawler(Pages)
    process.crawl(crawler, urls=[] if task["database"] else urls, most=len(urls))
    process.start()
    first, last = crawler.spider.times
    print(json.dumps({"pages": crawler.spider.n, "seconds": last - first}))


if __name__ == "__main__":
    main()
