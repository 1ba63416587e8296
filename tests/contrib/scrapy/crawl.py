"""One crawl by Scrapy with the add-on, in a process of its own: ``python crawl.py TASK``, a JSON file.

The task has ``settings``, ``urls`` (the start requests), ``stats``, a file to which Scrapy's stats are written, and
``words``, a file to which leases are added as their outcomes are handed in, and as the desk says what became of them.
Requests name their lease to the server.
"""

import json
import sys
from pathlib import Path

import scrapy
from scrapy.crawler import CrawlerProcess

from recrawl.contrib.scrapy import ProcessSource
from recrawl.contrib.scrapy.answers import lease_of
from recrawl.contrib.scrapy.outbox import Outbox


class Pages(scrapy.Spider):
    """Yields an item for each page, and its links; a page that says so makes the callback fail.

    Links have a callback of their own. Some start requests have an errback, which counts what it gets.
    """

    name = "pages"

    async def start(self):
        for url in self.start_urls:
            yield scrapy.Request(url, errback=self.trouble if url.endswith(("/circle", "/page/2")) else None)

    def trouble(self, failure):
        self.crawler.stats.inc_value(f"errback/{failure.type.__name__}")

    def parse_found(self, response, found_on):
        self.crawler.stats.inc_value(f"found on {found_on}")
        yield from self.parse(response)

    def parse(self, response):
        if b"trouble" in response.body:
            raise ValueError("a mistake in a callback")
        yield {"url": response.url, "text": response.css("p::text").get(), "at": response.headers.get("Date")}
        for link in response.css("a::attr(href)").getall():
            found_on = response.url.rpartition("/")[2]
            yield response.follow(link, self.parse_found, meta=response.meta, cb_kwargs={"found_on": found_on})
        yield None


class NamesLease:
    """Names the lease of a request in a header."""

    def process_request(self, request, spider=None):
        if (lease := lease_of(request)) is not None:
            request.headers["X-Lease"] = lease


def note_words(path):
    """Add what is handed in and what the desk has acknowledged to a file, each in one write, before Scrapy goes on."""
    put, record = Outbox.put, ProcessSource.record

    def note(lines):
        with open(path, "a") as file:
            file.write("".join(f"{lease} {word}\n" for lease, word in lines))

    def put_noted(outbox, report):
        note([(report.lease, "put")])
        put(outbox, report)

    async def recorded(source, reports):
        words = await record(source, reports)
        note([(report.lease, word) for report, word in zip(reports, words, strict=True)])
        return words

    Outbox.put, ProcessSource.record = put_noted, recorded


def main() -> None:
    task = json.loads(Path(sys.argv[1]).read_text())
    note_words(task["words"])
    settings = {
        "ADDONS": {"recrawl.contrib.scrapy.Recrawl": 500},
        "RECRAWL_BUDGET": "1000/s",
        "RECRAWL_SETTINGS": {"min_change_probability": "0"},
        "LOG_LEVEL": "INFO",
        "TELNETCONSOLE_ENABLED": False,
        "RETRY_TIMES": 1,
        "REDIRECT_MAX_TIMES": 3,
        "DOWNLOADER_MIDDLEWARES": {NamesLease: 999},
        **task["settings"],
    }
    process = CrawlerProcess(settings)
    crawler = process.create_crawler(Pages)
    process.crawl(crawler, start_urls=task["urls"])
    process.start()
    stats = {name: value for name, value in crawler.stats.get_stats().items() if isinstance(value, int | float | str)}
    Path(task["stats"]).write_text(json.dumps(stats))


if __name__ == "__main__":
    main()
