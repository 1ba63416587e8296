"""One spider over the demo's web, before and after the settings lines: freshness and requests by the server's log.

    pip install -e .[scrapy,crawl]
    python experiments/scrapy/run.py --json experiments/scrapy/result.json

Before: the spider requests all pages in turn, at the rate of the budget, again and again. After: the same spider with
the add-on and the same rate. Both run at the same time, each with a server of its own, and see the same changes. The
server logs each request; a copy is as of its last request that was answered with the page or by 304. Freshness is the
mean over pages and time, after the first pass and ``--learn`` seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.crawl.clock import SystemClock
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.run.opening.pages import add_pages
from recrawl.demo.judge import true_freshness, window
from recrawl.demo.server import DemoServer
from recrawl.demo.web import DemoWeb, ServedRequest
from recrawl.demo.world import DAY, DemoWorld, draw_world
from recrawl.engine import Engine
from recrawl.simulate.trace import Trace
from recrawl.store.opening import open_store

SPIDER = Path(__file__).parent / "spider.py"


async def prepare(database: str, urls: list[str], budget: float) -> None:
    """A database whose pages change in the demo's unit of time: a second stands for an hour."""
    store, now = open_store(database, keep=1, create=True), SystemClock().now()
    engine = Engine(budget, start=now, day=DAY)
    add_pages(engine, Rules(), urls, now)
    await store.save(rows=engine.rows())
    await store.close()


async def crawl(world: DemoWorld, task: dict[str, Any], seconds: float) -> tuple[list[ServedRequest], float]:
    """What the server saw of one crawl, and when it ended."""
    web = DemoWeb(world, SystemClock())
    async with DemoServer(web):
        urls = [web.url(page.site, page.path) for page in world.pages]
        # the demo's names are not known to every resolver: the server is the proxy of its own hosts
        environment = {**os.environ, "http_proxy": f"http://127.0.0.1:{web.port}", "no_proxy": ""}
        with tempfile.TemporaryDirectory() as folder:
            await prepare(f"{folder}/pages.db", urls, task["budget"])
            given = json.dumps({**task, "urls": urls, "database": f"{folder}/pages.db"})
            process = await asyncio.create_subprocess_exec(
                sys.executable, str(SPIDER), stdin=asyncio.subprocess.PIPE, env=environment
            )
            assert process.stdin is not None
            process.stdin.write(given.encode())
            process.stdin.close()
            while not web.log:
                await asyncio.sleep(0.05)
            await asyncio.sleep(seconds)
            end = web.now()
            process.send_signal(2)
            await process.wait()
        return web.log, end


def judged(world: DemoWorld, log: list[ServedRequest], end: float, first_pass: float) -> dict[str, Any]:
    """Freshness after the first pass, and requests."""
    begin = log[0].at + first_pass
    shown = [one for one in log if one.page >= 0 and one.version >= 0]
    copied = np.full(len(world.pages), -np.inf)
    for one in shown:
        if one.at <= begin:
            copied[one.page] = one.at
    trace = window(world.trace, copied, begin, end)
    plain = Trace(begin, end, offset=trace.offset, changed_at=trace.changed_at, day=trace.day)
    later = [one for one in shown if begin < one.at <= end]
    run = true_freshness(plain, np.array([one.page for one in later]), np.array([one.at for one in later]))
    counted = [one for one in log if begin < one.at <= end]
    return {
        "freshness": round(run.freshness, 4),
        "requests": len(counted),
        "requests_per_second": round(len(counted) / (end - begin), 2),
        "pages_without_copy_at_first": int((copied == -np.inf).sum()),
        "seconds": round(end - begin, 1),
    }


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--learn", type=float, default=180.0)
    parser.add_argument("--budget", type=float, default=25.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    world = draw_world(options.seed, options.learn + options.seconds + 120.0)
    first_pass, found = 1.2 * len(world.pages) / options.budget, dict[str, Any]()
    names, before = ("before", "after"), first_pass + options.learn
    tasks = [{"addon": name == "after", "budget": options.budget} for name in names]
    seen = await asyncio.gather(*(crawl(world, task, before + options.seconds) for task in tasks))
    for name, (log, end) in zip(names, seen, strict=True):
        found[name] = judged(world, log, end, before)
        print(name, json.dumps(found[name]))
    if options.json is not None:
        given = {"seed": options.seed, "budget": options.budget, "learn": options.learn, "pages": len(world.pages)}
        options.json.write_text(json.dumps(given | found, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
