"""Kill a crawl that delivers events to a webhook, again and again. The receiver must miss no event.

    python benchmarks/kill_events.py --kills 50 --out benchmarks/results/kill_events.json

Pages on loopback change every few seconds. The receiver is as bad as the crawl is unlucky: it answers 500, is slow,
resets, or takes a post and dies before it says so. The crawl is a process of its own, killed with SIGKILL and
started again on the same database. At the end it runs once more, to hand over what is left.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections import defaultdict
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from aiohttp import web

from recrawl.crawl.clock import SystemClock
from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.deliver import subscribers as delivery
from recrawl.crawl.deliver.webhook import SIGNATURE, TIMESTAMP, Webhook, verify
from recrawl.crawl.http.fetcher import HttpFetcher
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.run.opening.pages import add_pages, open_engine, save_pages
from recrawl.store import BlockingStore, SqliteStore

_SPEC = spec_from_file_location("kill", Path(__file__).with_name("kill.py"))
kill = module_from_spec(_SPEC)
_SPEC.loader.exec_module(kill)

SECRET = "known to both of them"
HOSTS, PAGES = 20, 120


def serve(port: int, log: str, seed: int) -> None:
    """Pages that change, and the receiver, which writes down what it takes."""
    rng, file = random.Random(seed), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def page(request: web.Request) -> web.Response:
        if request.path == "/robots.txt":
            raise web.HTTPNotFound
        k = int(request.path.rsplit("/", 1)[1])
        state = int(time.time() / (1 + k % 5))
        if k % 11 == 7 and state % 5 == 3:
            raise web.HTTPNotFound
        return web.Response(text=f"<p>page {k}, state {state}</p>", content_type="text/html")

    async def hook(request: web.Request) -> web.Response:
        body = await request.read()
        if not verify(SECRET, request.headers[TIMESTAMP], request.headers[SIGNATURE], body):
            return web.Response(status=401)
        mood = rng.random()
        if mood < 0.15:
            return web.Response(status=500)
        if mood < 0.25:
            request.transport.abort()
            return web.Response()
        if mood < 0.35:
            await asyncio.sleep(0.3)
        os.write(file, body + b"\n")
        if mood > 0.85:
            request.transport.abort()  # it has them, and dies before it says so
        return web.Response(status=204)

    app = web.Application()
    app.router.add_get("/{tail:.*}", page)
    app.router.add_post("/hook", hook)
    web.run_app(app, host="127.0.0.1", port=port, print=None, handle_signals=False)


def crawl(database: str, port: int, seconds: float | None) -> None:
    """The crawl; it is killed, unless it is given seconds to run."""
    delivery.FIRST_WAIT, delivery.LONGEST_WAIT = 0.02, 0.2

    async def main() -> None:
        clock, store = SystemClock(), SqliteStore(database)
        engine = await open_engine(store, clock.now(), budget=100.0, host_spacing=0.05, host_concurrency=1)
        if not len(engine):
            urls = [f"http://h{k % HOSTS}.test:{port}/{k}" for k in range(PAGES)]
            await save_pages(engine, store, add_pages(engine, Rules(), urls, clock.now()))
        fetcher = HttpFetcher("recrawl-kill/1 (+loopback)", allow_private=True, resolver=kill.Loopback(), clock=clock)
        hook = Webhook(f"http://127.0.0.1:{port}/hook", SECRET, timeout=0.2)
        options = CrawlOptions(commit_delay=0.02, subscribers={"webhook": hook})
        crawler = Crawler(engine, store, fetcher, options, clock=clock)
        await crawler.run(None if seconds is None else clock.now() + seconds)
        while (await store.subscribers())[0].cursor < (await store.event_counts())["last"]:
            await crawler.run(clock.now() + 0.1)
        await hook.close()
        await fetcher.close()
        crawler.close()
        await store.close()

    asyncio.run(main())


def judge(database: Path, log: Path) -> dict[str, int]:
    """What the receiver has against what is in the database."""
    posts = [json.loads(line) for line in log.read_text().splitlines()]
    heard = [event for post in posts for event in post["events"]]
    firsts: dict[str, dict[str, object]] = {}
    doubled = different = disordered = 0
    last: defaultdict[str, int] = defaultdict(int)
    for event in heard:
        if event["id"] in firsts:
            doubled += 1
            different += firsts[event["id"]] != event
            continue
        firsts[event["id"]] = event
        disordered += event["number"] <= last[event["url"]]
        last[event["url"]] = event["number"]
    with BlockingStore(SqliteStore(database, exclusive=False)) as store:
        kept = store.events(0, 10_000_000)
        observed = {(o.url, o.began_at) for o in store.observations() if o.fetched and o.changed is not False}
        documents = {event.url: event.new_digest for event in store.snapshot()}
        damage = len(store.check())
    index: dict[str, object] = {}
    for event in sorted(firsts.values(), key=lambda event: event["number"]):
        index.pop(event["url"], None)
        if event["kind"] != "gone":
            index[event["url"]] = event["new_digest"]
    return {
        "events": len(kept),
        "changes_without_event": len(observed - {(event.url, event.at) for event in kept}),
        "missing": len({event.id for event in kept} - set(firsts)),
        "unknown": len(set(firsts) - {event.id for event in kept}),
        "doubled_deliveries": doubled,
        "doubled_with_different_content": different,
        "out_of_order": disordered,
        "missed_as_reported": sum(post["missed"] for post in posts),
        "documents": len(documents),
        "documents_that_differ": sum(index.get(url) != digest for url, digest in documents.items()),
        "damage": damage,
    }


def run(kills: int, seed: int, folder: Path, show=lambda text: None) -> dict[str, object]:
    """Kill again and again; the figures of the whole run."""
    rng, port = random.Random(seed), kill.free_port()
    database, log = folder / "events.db", folder / "posts"
    log.touch()
    began = time.time()
    with kill.serving(__file__, port, log, seed):
        for k in range(kills):
            before, give_up_at = log.stat().st_size, time.monotonic() + kill.PATIENCE
            child = kill.started(__file__, "crawl", database, port, None)
            while log.stat().st_size == before and time.monotonic() < give_up_at:
                time.sleep(0.002)
            time.sleep(rng.uniform(0.0, 0.6))  # events come all the time now
            kill.killed(child)
            show(f"{k + 1} of {kills}")
        assert kill.started(__file__, "crawl", database, port, 0.5).wait() == 0, "the last run ends by itself"
    return {"kills": kills, "seconds": round(time.time() - began, 1), **judge(database, log)}


if __name__ == "__main__":
    kill.command_line(__doc__, 50, run)
