"""Where the time of the URL Frontier service goes: processor time per URL of the steps behind two calls, without gRPC.

    python benchmarks/urlfrontier_parts.py --out benchmarks/results/urlfrontier_parts.json

`PutDiscovered`: batches of 100 new URLs in 3,000 queues are read, written, and put a second time; then all of them
become rows (strict) or pages (managed). `GetURLs` of a managed crawl of 30,000 URLs: calls for 10 and for 100 queues.
Microseconds of the thread of the event loop, and of all threads: the store of the engine writes in one of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from recrawl.contrib.urlfrontier import FrontierService, Modes
from recrawl.contrib.urlfrontier.api.wire import URLInfo, message
from recrawl.contrib.urlfrontier.batches import Discovered, read_batches
from recrawl.contrib.urlfrontier.crawls import Crawls
from recrawl.contrib.urlfrontier.frontier import Ask
from recrawl.contrib.urlfrontier.items import Put
from recrawl.crawl.config.settings import Settings
from recrawl.desk import open_desk

QUEUES, BATCH, TOGETHER = 3000, 100, 8


@asynccontextmanager
async def opened(mode: str) -> AsyncIterator[tuple[Crawls, Any]]:
    """The crawls of a service in a mode, and its desk."""
    with tempfile.TemporaryDirectory() as folder:
        live = desk = None
        if mode == "managed":
            hosts = {"delay": 0, "host_concurrency": 0}
            settings = Settings(database=f"{folder}/a.db", budget="1000000/s", keep=0, **hosts)  # type: ignore[arg-type]
            live, desk = await open_desk(settings)
        service = FrontierService(Path(folder) / "queues", Modes.of(mode), desk)
        await service.crawls.open()
        yield service.crawls, desk
        await service.close()
        if live is not None:
            await live.close()


class Clock:
    """Microseconds by part: those of this thread, and of the whole process."""

    def __init__(self) -> None:
        self.thread: dict[str, float] = defaultdict(float)
        self._process, self._began = 0.0, 0.0

    def start(self) -> None:
        """From now on, all threads count."""
        self._began = time.process_time()

    def stop(self) -> None:
        """All threads count no more."""
        self._process += time.process_time() - self._began

    def wrap(self, owner: Any, name: str, part: str) -> None:
        """Count the time of a plain method of an object."""
        call = getattr(owner, name)

        @functools.wraps(call)
        def counted(*args: Any, **options: Any) -> Any:
            began = time.thread_time()
            try:
                return call(*args, **options)
            finally:
                self.thread[part] += time.thread_time() - began

        setattr(owner, name, counted)

    def table(self, n: int) -> dict[str, float]:
        """Microseconds of each of n URLs."""
        found = {**self.thread, **({"all threads": self._process} if self._process else {})}
        return {part: round(1e6 * seconds / max(n, 1), 2) for part, seconds in found.items()}


def batches(n: int) -> list[bytes]:
    """Messages of n new URLs."""
    infos = [URLInfo(url=f"http://n{k % QUEUES}.example/{k}", crawlID="new") for k in range(n)]
    some = [infos[first : first + BATCH] for first in range(0, n, BATCH)]
    return [message("DiscoveredBatch")(ID="b", items=part).SerializeToString() for part in some]


async def put_discovered(mode: str, n: int) -> dict[str, float]:
    """The steps of `PutDiscovered`."""
    clock, kind = Clock(), message("DiscoveredBatch")
    async with opened(mode) as (crawls, _):
        groups: list[Discovered] = []
        raw = batches(n)
        for first in range(0, len(raw), TOGETHER):
            began = time.thread_time()
            found = read_batches([kind.FromString(one) for one in raw[first : first + TOGETHER]])
            clock.thread["read"] += time.thread_time() - began
            groups.append(found)
        for part in ("write new URLs", "known URLs"):
            for found in groups:
                began = time.thread_time()
                await crawls.arrive(found)
                clock.thread[part] += time.thread_time() - began
        part = "later: pages and rows" if mode == "managed" else "later: rows"
        began = time.process_time()
        for queue in list(crawls.frontier.by_id.values()):
            await crawls._open(queue)
        clock.thread[part] += time.process_time() - began
    return clock.table(n)


async def get_urls(queues: int, n: int, calls: int) -> dict[str, float]:
    """The steps of `GetURLs` of a managed crawl."""
    clock, got = Clock(), 0
    async with opened("managed") as (crawls, desk):
        urls = [f"http://h{k % QUEUES}.example/page/{k}" for k in range(n)]
        puts = [Put("bench", f"h{k % QUEUES}.example", url, None, b"") for k, url in enumerate(urls)]
        await crawls.arrive(Discovered.of(puts))
        crawls.frontier.set_delay("bench", "", 0.0)
        ask = Ask(queues, 100 // queues, 2.0)
        while crawls._managed is not None and crawls._managed.n_waiting:
            await crawls.take("bench", ask)
        clock.wrap(desk.components.engine, "pick", "pick")
        clock.wrap(desk.components.engine, "put_back", "put pages back of further queues")
        clock.wrap(crawls.frontier.file, "of_pages", "read rows of pages")
        clock.wrap(crawls.frontier, "lease", "write leases of queues")
        clock.start()
        began = time.thread_time()
        for _ in range(calls):
            got += len(await crawls.take("bench", ask))
        clock.thread["all of this thread"] = time.thread_time() - began
        clock.stop()
    return {**clock.table(got), "urls of a call": round(got / calls, 1)}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=60_000)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--smallest", action="store_true", help="only whether it runs")
    given = parser.parse_args()
    if given.smallest:
        given.urls, given.calls = 1000, 3
    found: dict[str, Any] = {"urls": given.urls, "microseconds of a URL": {}}
    rows = found["microseconds of a URL"]
    for mode in ("strict", "managed"):
        rows[f"PutDiscovered, {mode}"] = asyncio.run(put_discovered(mode, given.urls))
    for queues in (10, 100):
        rows[f"GetURLs, managed, {queues} queues"] = asyncio.run(get_urls(queues, given.urls // 2, given.calls))
    text = json.dumps(found, indent=2)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
