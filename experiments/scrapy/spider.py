"""The spider of run.py. Its task comes as JSON on standard input."""

from __future__ import annotations

import asyncio
import json
import sys

import scrapy
from scrapy.crawler import CrawlerProcess

TASK = json.load(sys.stdin)


class Pages(scrapy.Spider):
    """All pages; without the add-on in turn, again and again."""

    name = "pages"

    async def start(self):
        loop = asyncio.get_running_loop()
        at = loop.time()
        while True:
            for url in TASK["urls"]:
                yield scrapy.Request(url, dont_filter=True)
                if not TASK["addon"]:
                    # what was not requested in time lapses, as with the add-on's budget
                    at = max(at + 1.0 / TASK["budget"], loop.time() - 1.0)
                    await asyncio.sleep(max(at - loop.time(), 0.0))
            if TASK["addon"]:
                return

    def parse(self, response):
        yield {"url": response.url, "title": response.css("title::text").get()}


SETTINGS = {"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False, "RETRY_ENABLED": False}
LINES = {
    "ADDONS": {"recrawl.contrib.scrapy.Recrawl": 500},
    "RECRAWL_DATABASE": TASK["database"],
    "RECRAWL_BUDGET": f"{TASK['budget']}/s",
}

process = CrawlerProcess(SETTINGS | (LINES if TASK["addon"] else {}))
process.crawl(Pages)
process.start()
