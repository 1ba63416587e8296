"""Three ways to crawl the same pages: engine and store in a loop, the desk in a loop, clients of a service.

Each is a process of its own that waits for numbers on its standard input, one per line. It makes so many crawls and
prints the seconds and the pages that they took, as JSON. At the end of its input it prints where its time went.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
from serve_parts import Parts
from serve_world import BATCH, CLIENTS, World, settings_of

from recrawl.client import Client, Outcome
from recrawl.crawl.run.opening.assemble import engine_of
from recrawl.desk import Desk, Report, open_desk
from recrawl.serve.running import keep_loaded
from recrawl.store import Outcome as Stored
from recrawl.store import SqliteStore


async def orders() -> AsyncIterator[int]:
    """How many crawls are to be made next, again and again."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield int(line)


def said(pages: int, began: float) -> None:
    """Say how long crawls took."""
    print(json.dumps({"pages": pages, "seconds": time.perf_counter() - began}), flush=True)


async def loop(path: Path) -> None:
    """Engine and store alone: pick, compare with the copies, record, save."""
    world, parts = World(), Parts()
    settings = settings_of(path)
    async with SqliteStore(path, keep=0) as store:
        engine = await engine_of(store, settings, time.time())
        parts.clock_crawl(engine, store)
        keep_loaded()
        async for many in orders():
            parts.resume()
            done, began = 0, time.perf_counter()
            while done < many:
                now = time.time()
                ids = engine.pick(now, BATCH)
                urls = engine.url(ids)
                copies = await store.copies(urls)
                digests = [f"given:{world.digest(url)}" for url in urls]
                before = [copies[url].digest if url in copies else None for url in urls]
                changed = [None if b is None else a != b for a, b in zip(digests, before, strict=True)]
                record(engine, ids, now, changed)
                given = zip(urls, changed, digests, strict=True)
                outcomes = [Stored(url, now, status=200, changed=c, digest=digest) for url, c, digest in given]
                await store.save(outcomes, engine.rows(ids))
                done += len(ids)
            parts.pause(done)
            said(done, began)
    print(json.dumps(parts.table("the loop")))


def record(engine: Any, ids: Any, now: float, changed: list[bool | None]) -> None:
    """Give outcomes to the engine: those of pages with a copy, and the first ones."""
    compared = np.array([one is not None for one in changed], bool)
    if compared.any():
        flags = np.array([one for one in changed if one is not None], bool)
        engine.record(ids[compared], now, changed=flags, as_of=np.full(len(flags), now))
    if not compared.all():
        engine.record(ids[~compared], now, as_of=np.full(int((~compared).sum()), now))


async def desk(path: Path) -> None:
    """The desk without HTTP, with four callers."""
    world, parts = World(), Parts()
    live, asked = await open_desk(settings_of(path))
    parts.clock_crawl(live.crawler.engine, live.store)
    running = asyncio.create_task(live.crawler.run(crawl=False))
    keep_loaded()
    async for many in orders():
        parts.resume()
        began = time.perf_counter()
        done = sum(await asyncio.gather(*(_call(asked, world, many // CLIENTS) for _ in range(CLIENTS))))
        parts.pause(done)
        said(done, began)
    live.crawler.stop()
    await running
    await live.close()
    print(json.dumps(parts.table("desk")))


async def _call(asked: Desk, world: World, many: int) -> int:
    """Crawls of one caller, and some more that a last pick may bring."""
    done = 0
    while done < many:
        pages = await asked.pick(BATCH, wait=1.0)
        await asked.record([Report(page.lease, 200, digest=world.digest(page.url)) for page in pages])
        done += len(pages)
    return done


class _Caller(threading.Thread):
    """A client that makes crawls, with a connection of its own: ``many``, or until a time."""

    def __init__(self, client: Client, world: World, many: float, until: float) -> None:
        super().__init__()
        self._client, self._world, self._many, self._until = client, world, many, until
        self.done, self.times = 0, list[tuple[float, float]]()

    def run(self) -> None:
        """Crawl."""
        while self.done < self._many and (start := time.perf_counter()) < self._until:
            pages = self._client.pick(BATCH, wait=1.0)
            picked = time.perf_counter()
            self._client.record([Outcome(page.lease, 200, digest=self._world.digest(page.url)) for page in pages])
            self.times.append((picked - start, time.perf_counter() - picked))
            self.done += len(pages)


def clients(url: str, token: str) -> None:
    """Four clients of a service; a number of crawls may also be one of seconds, such as 60s."""
    world, times, done = World(), list[tuple[float, float]](), 0
    began_cpu, connected = time.process_time(), [Client(url, token) for _ in range(CLIENTS)]
    for line in sys.stdin:
        many, until, began = math.inf, math.inf, time.perf_counter()
        if line.endswith("s\n"):
            until = began + float(line[:-2])
        else:
            many = int(line) // CLIENTS
        callers = [_Caller(client, world, many, until) for client in connected]
        for one in callers:
            one.start()
        for one in callers:
            one.join()
            times += one.times
        said(sum(one.done for one in callers), began)
        done += sum(one.done for one in callers)
    cpu = 1e6 * (time.process_time() - began_cpu) / max(done, 1)
    both = dict(zip(("pick", "record"), zip(*times, strict=True), strict=True))
    print(json.dumps({"times": both, "clients": round(cpu, 1), "pages": done}))


WAYS: dict[str, Callable[[Path], Awaitable[None]]] = {"loop": loop, "desk": desk}


if __name__ == "__main__":
    way, *given = sys.argv[1:]
    if way == "clients":
        clients(*given)
    else:
        asyncio.run(WAYS[way](Path(given[0])))
