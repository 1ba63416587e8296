"""A crawl in a process of its own, with its memory bounded: ``python -m crawl.hostile.crawl SETTINGS``.

It says "ready" and begins when it is given a line.

127.0.0.1 counts as the public internet here, so that every other address is refused as it would be on the live web.
"""

import asyncio
import json
import resource
import socket
import ssl
import sys
import time
from pathlib import Path

from aiohttp.abc import AbstractResolver

from recrawl.crawl.config.settings import Settings
from recrawl.crawl.http import connect
from recrawl.crawl.run.opening.assemble import Web, open_crawl
from recrawl.crawl.run.opening.warming import warm_up
from recrawl.engine.names.addresses import host_of

MB = 1 << 20
PUBLIC = "127.0.0.1"


class Names(AbstractResolver):
    """Names of the test; each question about a name takes the next of its addresses, the last for good."""

    def __init__(self, names):
        self._names = {name: list(addresses) for name, addresses in names.items()}

    async def resolve(self, host, port=0, family=socket.AF_INET):
        addresses = self._names.get(host, [PUBLIC] if host.startswith("good") else [])
        if not addresses:
            raise OSError("no such name")
        address = addresses.pop(0) if len(addresses) > 1 else addresses[0]
        return [{"hostname": host, "host": address, "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}]

    async def close(self):
        pass


def written():
    """Bytes of memory that this process can write to, as the limit counts them."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmData")


class Tried:
    """Ends a crawl when every host has been crawled."""

    def __init__(self):
        self._left, self._crawler = set(), None

    def end_with_all(self, crawler):
        self._left = {host_of(url) for url in crawler.engine.url(crawler.engine.ids())}
        self._crawler = crawler

    def __call__(self, name, fields):
        if name == "crawled" and self._crawler is not None:
            self._left.discard(host_of(fields["outcome"].url))
            if not self._left:
                self._crawler.stop()


async def main(given):
    is_public = connect.is_public
    connect.is_public = lambda address: address == PUBLIC or is_public(address)
    settings = Settings(**given["settings"])
    trust = ssl.create_default_context(cafile=Path(__file__).parent / "authority.pem")
    web = Web.http(settings, resolver=Names(given["names"]), ssl_context=trust)
    tried = Tried()
    live = await open_crawl(settings, web=web, on_event=tried)
    warm_up()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    limit = written() + given["memory"]
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    print("ready", flush=True)
    sys.stdin.readline()
    cpu, began = time.process_time(), live.clock.now()
    if given["each"]:
        tried.end_with_all(live.crawler)
    counts = await live.crawler.run(began + given["seconds"])
    said = {
        **counts.as_dict(),
        "began": began,
        "cpu": time.process_time() - cpu,
        "rss_before": before // MB,
        "rss_peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 // MB,
    }
    await live.close()
    print(json.dumps(said))


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
