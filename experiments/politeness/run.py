"""Politeness as the servers see it: 10,000 fetches on 50 hosts, the crawler ended and killed several times in between.

The server is a process of its own, so that it outlives the crawler and its times are not the crawler's. Its log is
checked at the end: no page that robots.txt forbids, no page before robots.txt, no two requests to a host closer than
its delay by more than 5 ms, robots.txt and restarts included.

    python experiments/politeness/run.py                    about three minutes; writes politeness.json
    python experiments/politeness/run.py --fetches 500      shorter; nothing is written
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from recrawl.crawl.clock import SystemClock
from recrawl.demo.live import warm_up
from recrawl.demo.politeness import manners
from recrawl.demo.server import DemoServer
from recrawl.demo.web import DemoWeb, ServedRequest
from recrawl.demo.world import DemoWorld, Site, draw_world

RESULT = Path(__file__).with_name("politeness.json")
FETCHES, HOSTS, PAGES = 10_000, 50, 40
DELAY = 0.1  # seconds between two requests to a host that asks for nothing else
LONG = 4.0  # of every tenth host: longer than a restart takes
BUDGET = 400.0  # requests a second: more than the delays allow
RUN = (4.0, 9.0)  # seconds between restarts
AGENT = "recrawl-politeness/1"


def sites() -> tuple[Site, ...]:
    """Fifty hosts: some slow, some failing, some with a crawl-delay of their own in robots.txt."""
    kinds: tuple[dict[str, Any], ...] = (
        {},
        {"latency": 0.03},
        {"crawl_delay": 0.25},
        {"failing": 0.05},
        {"outages": 1.0},
    )
    return tuple(
        Site(f"h{k}", PAGES, 5.0, **({"crawl_delay": LONG} if k % 10 == 9 else kinds[k % len(kinds)]))
        for k in range(HOSTS)
    )


def world() -> DemoWorld:
    """What the server shows."""
    return draw_world(1, 900.0, sites())


async def serve(log_path: Path) -> None:
    """Serve until standard input ends, then write the log."""
    web = DemoWeb(world(), SystemClock())
    async with DemoServer(web):
        print(web.port, flush=True)
        loop = asyncio.get_running_loop()
        line = loop.run_in_executor(None, sys.stdin.readline)
        while not line.done():
            await asyncio.sleep(0.5)
            print(sum(request.page >= 0 for request in web.log), flush=True)
        await line
    log_path.write_text(json.dumps([[v.came_at, v.at, v.host, v.path, v.page, v.version, v.status] for v in web.log]))


async def crawl(port: int, database: Path) -> None:
    """Crawl until SIGTERM."""
    from recrawl.crawl.config.options import CrawlOptions
    from recrawl.crawl.http.fetcher import HttpFetcher
    from recrawl.crawl.polite.robots import Robots
    from recrawl.crawl.run.crawler import Crawler
    from recrawl.demo.resolver import LoopbackResolver
    from recrawl.engine import Engine
    from recrawl.store import SqliteStore

    clock, store = SystemClock(), SqliteStore(database, keep=0)
    saved = await store.load()
    if saved is None:
        web = DemoWeb(world(), clock, port)
        engine = Engine(BUDGET, start=clock.now(), day=24.0, sources=0, host_spacing=DELAY, host_concurrency=1)
        engine.min_change_probability = 0.0  # every request counts here
        engine.add(web.urls + web.private_urls, clock.now())
        await store.save(rows=engine.rows())
    else:
        engine = Engine.restore(saved, clock.now())
    fetcher = HttpFetcher(AGENT, allow_private=True, resolver=LoopbackResolver(), clock=clock)
    options, robots = CrawlOptions(concurrency=HOSTS), Robots(fetcher, AGENT, clock)
    crawler = Crawler(engine, store, fetcher, options, robots=robots, clock=clock)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, crawler.stop)
    await crawler.run()
    crawler.close()
    await fetcher.close()
    await store.close()


def measure(fetches: int, seed: int = 1) -> dict[str, Any]:
    """Let crawlers run one after the other until the server has seen so many fetches; what its log shows."""
    asyncio.run(warm_up())  # kernels are compiled on first use, which would take the crawlers longer than they live
    rng, began = random.Random(seed), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        log_path, database = Path(folder) / "log.json", Path(folder) / "crawl.db"
        server = _start("--serve", str(log_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert server.stdin is not None
        assert server.stdout is not None
        port, seen, restarts, killed = int(server.stdout.readline()), 0, -1, 0
        crawler = None
        try:
            while seen < fetches:
                restarts += 1
                crawler = _start("--crawl", str(port), str(database))
                ends_at = time.monotonic() + rng.uniform(*RUN)
                while time.monotonic() < ends_at and seen < fetches and crawler.poll() is None:
                    seen = int(server.stdout.readline())
                if crawler.poll() not in (None, 0):
                    raise RuntimeError(f"the crawler ended with {crawler.returncode}")
                kill = restarts % 2 == 0
                killed += kill
                crawler.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
                crawler.wait(60)
            server.stdin.write("\n")
            server.stdin.close()
            server.stdout.read()
            server.wait(30)
        finally:
            server.kill()
            if crawler is not None:
                crawler.kill()
        log = [ServedRequest(*row) for row in json.loads(log_path.read_text())]
    delay = {site.host: max(DELAY, site.crawl_delay or 0.0) for site in sites()}
    found = manners(log, delay)
    return {
        **found.as_dict(),
        "fetches": sum(request.page >= 0 for request in log),
        "robots_requests": sum(request.path == "/robots.txt" for request in log),
        "delays": sorted(set(delay.values())),
        "crawlers": restarts + 1,
        "killed": killed,
        "seconds": round(time.monotonic() - began, 1),
        "load": [round(each, 2) for each in os.getloadavg()],
    }


def _start(*words: str, **pipes: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, __file__, *words], **pipes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fetches", type=int, default=FETCHES)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--crawl", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve is not None:
        asyncio.run(serve(given.serve))
    elif given.crawl is not None:
        asyncio.run(crawl(int(given.crawl[0]), Path(given.crawl[1])))
    else:
        found = measure(given.fetches)
        print(json.dumps(found, indent=2))
        if given.fetches >= FETCHES:
            RESULT.write_text(json.dumps(found, indent=2) + "\n")
        sys.exit(0 if found["is_polite"] else 1)


if __name__ == "__main__":
    main()
