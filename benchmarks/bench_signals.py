"""What signals by HTTP cost a crawl: its rate while they arrive, as a share of its rate without them, in one run.

    python benchmarks/bench_signals.py                   ten minutes
    python benchmarks/bench_signals.py --quick           phases of 3 s; results are not written
    python benchmarks/bench_signals.py --only "no budget, web in memory" --by-cpu

The demo's web is served by one process and crawled by another, first once, then at a budget. A third process sends
5,000 signals a second in batches of 100, and 200 requests a second with one signal each, for 10 s; each signal has a
new ``changed_at``, so that each is written. Before and after, nothing is sent for as long, three times in turns:
``ratio`` is the mean of each phase over the two around it. The crawl is measured at the demo's budget, at the largest
that the demo takes, and without a budget, where signals and crawls compete for one core: there with the setting
``signal_share`` as it is by default, and without it; and with the web in the crawl's own process, so that it waits for
nothing. ``ratio_of_cpu`` is of crawls per second of the processor, which says what crawls
keep where they use all of it. With ``--by-cpu`` all seconds are those of the processor that the crawl has used, so that
a machine that is busy with other things slows signals and crawl alike.

The crawl has a core of its own. Sender and web, which are not what is measured, share the others: with all three on
all cores, what the sender takes of a core while it sends would count as the price of signals. ``--runs`` repeats each
case; the run of the median ratio is given with the ratios of all.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from recrawl._system import loops
from recrawl.crawl.clock import SystemClock
from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.http.fetcher import HttpFetcher
from recrawl.crawl.http.memory import MemoryWeb
from recrawl.crawl.polite.budget import Budget
from recrawl.crawl.run.opening.assemble import Web, new_crawler
from recrawl.crawl.run.opening.pages import add_pages
from recrawl.crawl.run.opening.warming import warm_up
from recrawl.crawl.signals.limits import Limit
from recrawl.crawl.signals.sources import Source
from recrawl.crawl.signals.tokens import PREFIX, new_token
from recrawl.demo.live import BUDGET
from recrawl.demo.resolver import LoopbackResolver
from recrawl.demo.server import DemoServer
from recrawl.demo.web import DemoWeb
from recrawl.demo.world import DAY, DemoWorld, draw_world
from recrawl.engine import Engine
from recrawl.serve import Context, HttpServer, build_app
from recrawl.serve.server import share_for
from recrawl.store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Awaitable

HERE = Path(__file__)
RESULTS = HERE.parent / "results" / "signals.json"
BATCHES, SINGLES, BATCH = 50.0, 200.0, 100  # requests a second; signals of a batch
CONNECTIONS = 500
WARM_UP, TURNS = 10.0, 3  # seconds before the first phase; phases with signals, each between two without
UNANSWERED = 0  # instead of a status
CASES = {  # requests a second, share of the loop's time
    "the demo's budget": (BUDGET, Settings.signal_share),
    "the demo's largest budget": (200.0, Settings.signal_share),
    "no budget": (1e6, Settings.signal_share),
    "no budget, no share": (1e6, ""),
    "no budget, web in memory": (1e6, Settings.signal_share),
    "no budget, web in memory, no share": (1e6, ""),
}
IN_MEMORY = 0  # instead of the port of a web
AGENT = "recrawl-bench/1 (+http://127.0.0.1/)"


def world() -> DemoWorld:
    """The same in each process."""
    return draw_world(1, 300.0)


async def serve() -> None:
    """The demo's web, until standard input ends."""
    async with DemoServer(web := DemoWeb(world(), SystemClock())):
        print(web.port, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def crawl(port: int, budget: float, share: str, folder: Path) -> None:
    """Crawl the demo's web, take signals, and print what was done every quarter of a second."""
    clock, web = SystemClock(), DemoWeb(world(), SystemClock(), port or 80)
    warm_up()
    text, token = new_token("sender", ["signal"], clock.now())
    engine = Engine(
        budget, start=clock.now(), day=DAY, host_spacing=0.0, host_concurrency=8, min_change_probability=0.0
    )
    add_pages(engine, Rules(), web.urls, clock.now(), importance=web.world.trace.importance)
    fetcher: Any = HttpFetcher(AGENT, allow_private=True, resolver=LoopbackResolver(), clock=clock)
    if port == IN_MEMORY:
        fetcher = MemoryWeb(web.ask, clock)
    async with SqliteStore(folder / "crawl.db") as store:
        await store.save(rows=engine.rows(), notes={f"{PREFIX}sender": token.as_note()})
        options = CrawlOptions(budget=Budget(budget, clock.now()), signal_delay=0.05, longest_hint=0.0)
        crawler = new_crawler(engine, store, Web(AGENT, fetcher, fetcher, clock), options)
        components = crawler.components
        await components.load()
        components.inbox.limits.set(Source("webhook", "sender"), Limit(1e5, 1e9))
        gate = share_for(components, Settings(signal_share=share))
        context = Context(store, components.inbox, components.tokens, share=gate)
        server = HttpServer(build_app(context), "127.0.0.1:0", share=gate)
        await server.start()
        await crawler.run(clock.now() + 60.0, once=True)
        print(json.dumps({"url": server.url, "token": text, "pages": web.urls}), flush=True)
        running = asyncio.create_task(crawler.run())
        ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        while not ended.done() and not running.done():
            used, counts = resource.getrusage(resource.RUSAGE_SELF), crawler.counters
            done = sum(counts.as_dict()[name] for name in ("changed", "unchanged"))
            print(json.dumps([time.monotonic(), done, used.ru_utime + used.ru_stime]), flush=True)
            await asyncio.sleep(0.25)
        crawler.stop()
        await running
        await server.close()
        crawler.close()
    await fetcher.close()


class Sender:
    """Sends requests at a rate; what was answered, and how fast."""

    def __init__(self, client: aiohttp.ClientSession, url: str, pages: list[str]) -> None:
        self._client, self._url, self._pages = client, f"{url}/v1/signals", pages
        self.took: list[float] = []
        self.offered = 0  # signals
        self.statuses, self.became = Counter[int](), Counter[str]()  # of requests, of signals
        self._next = 0

    async def send(self, n: int) -> None:
        """One request with n signals about the next pages."""
        some = [self._pages[(self._next + k) % len(self._pages)] for k in range(n)]
        self.offered += n
        self._next += n
        began, now = time.monotonic(), time.time()
        try:
            async with self._client.post(self._url, json=[{"url": url, "changed_at": now} for url in some]) as answer:
                found = await answer.json(content_type=None)
                self.statuses[answer.status] += 1
                if answer.status == 200:
                    self.became.update(found)
        except aiohttp.ClientError:
            self.statuses[UNANSWERED] += 1
        self.took.append(time.monotonic() - began)

    async def at_rate(self, rate: float, n: int, seconds: float, clock: Callable[[], float]) -> None:
        """Requests of n signals at a rate."""
        began, sent, tasks = clock(), 0, set[asyncio.Task[None]]()
        while (passed := clock() - began) < seconds:
            for _ in range(int(passed * rate) - sent):
                tasks.add(asyncio.create_task(self.send(n)))
                sent += 1
            await asyncio.sleep(0.002)
        await asyncio.gather(*tasks)


async def pause(seconds: float, clock: Callable[[], float]) -> None:
    """Wait for some seconds of a clock."""
    until = clock() + seconds
    while clock() < until:
        await asyncio.sleep(0.01)


def processor_time(pid: int) -> float:
    """Seconds of the processor that a process has used (Linux)."""
    return time.clock_gettime(~pid << 3 | 2)


async def child(*words: str) -> asyncio.subprocess.Process:
    """This file in a process of its own."""
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    return await asyncio.create_subprocess_exec(sys.executable, str(HERE), *words, **pipes, limit=1 << 20)


def keep_apart(*, crawl: bool) -> None:
    """Run this process on the core of the crawl, or on all others (Linux, two cores or more)."""
    cores = set(range(os.cpu_count() or 1))
    if hasattr(os, "sched_setaffinity") and len(cores) > 1:
        with suppress(OSError):  # a container that has some of the cores only
            os.sched_setaffinity(0, {0} if crawl else cores - {0})


async def measure(case: str, seconds: float, *, by_cpu: bool = False) -> dict[str, Any]:
    """Rates without signals and with them, in turns."""
    with tempfile.TemporaryDirectory() as folder:
        server = await child("--role", "server")
        assert server.stdout is not None
        port = int(await server.stdout.readline())
        port = IN_MEMORY if "memory" in case else port
        budget, share = CASES[case]
        words = {"role": "crawl", "port": port, "budget": budget, "share": share, "folder": folder}
        crawler = await child(*(f"--{name}={value}" for name, value in words.items()))
        assert crawler.stdout is not None
        begun = json.loads(await crawler.stdout.readline())
        lines: list[list[float]] = []

        async def read() -> None:
            while crawler.stdout is not None and (line := await crawler.stdout.readline()):
                lines.append(json.loads(line))

        reading = asyncio.create_task(read())
        try:
            clock = partial(processor_time, crawler.pid) if by_cpu else time.monotonic
            return await phases(begun, lines, seconds, clock)
        finally:
            for process in (crawler, server):
                if process.stdin is not None:
                    process.stdin.close()
            await asyncio.wait_for(asyncio.gather(crawler.wait(), server.wait(), reading), 60.0)


def of_runs(case: str, runs: int, seconds: float, *, by_cpu: bool) -> dict[str, Any]:
    """The run of the median ratio, and the ratios of all."""
    found = [asyncio.run(measure(case, seconds, by_cpu=by_cpu)) for _ in range(runs)]
    median = sorted(found, key=itemgetter("ratio"))[(runs - 1) // 2]
    return {"ratios": [one["ratio"] for one in found], **median}


async def phases(
    begun: dict[str, Any], lines: list[list[float]], seconds: float, clock: Callable[[], float]
) -> dict[str, Any]:
    """Phases without and with signals in turns, and what the crawl did in each."""
    headers = {"authorization": f"Bearer {begun['token']}"}
    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=CONNECTIONS)) as client:
        sender = Sender(client, begun["url"], begun["pages"])
        await asyncio.sleep(min(WARM_UP, 3.0 * seconds))
        found: list[dict[str, float]] = []

        async def measured(work: Callable[[], Awaitable[object]]) -> None:
            began = time.monotonic()
            await work()
            found.append(rate_of(lines, began, time.monotonic()))
            await asyncio.sleep(1.0)

        for _ in range(TURNS):
            await measured(lambda: pause(seconds, clock))
            await measured(
                lambda: asyncio.gather(
                    sender.at_rate(BATCHES, BATCH, seconds, clock), sender.at_rate(SINGLES, 1, seconds, clock)
                )
            )
        await measured(lambda: pause(seconds, clock))
    per_cpu = [one["crawls_per_second"] / max(one["cpu"], 1e-9) for one in found]
    took = sorted(sender.took)
    return {
        "crawls_per_second": [round(one["crawls_per_second"], 1) for one in found],
        "cpu": [round(one["cpu"], 3) for one in found],
        "ratio": mean_ratio([one["crawls_per_second"] for one in found]),
        "ratio_of_cpu": mean_ratio(per_cpu),
        "load": round(os.getloadavg()[0], 1),
        "requests": len(took),
        "answers": {str(status): n for status, n in sorted(sender.statuses.items())},
        "signals": {"offered": sender.offered, **sender.became},
        "answer_seconds": {str(q): round(took[int(q * (len(took) - 1))], 4) for q in (0.5, 0.99)},
    }


def mean_ratio(rates: list[float]) -> float | None:
    """The mean of what each phase with signals is of the two around it: the crawl's rate drifts over a minute.

    None where phases were too short to count crawls.
    """
    around = [0.5 * (before + after) for before, after in zip(rates[:-2:2], rates[2::2], strict=True)]
    if not all(around):
        return None
    return round(sum(one / quiet for one, quiet in zip(rates[1::2], around, strict=True)) / len(around), 3)


def rate_of(lines: list[list[float]], began: float, ended: float) -> dict[str, float]:
    """Crawls per second, and seconds of processor per second, between two times."""
    some = [line for line in lines if began <= line[0] <= ended]
    if len(some) < 2:
        return {"crawls_per_second": 0.0, "cpu": 0.0}
    span = some[-1][0] - some[0][0]
    return {"crawls_per_second": (some[-1][1] - some[0][1]) / span, "cpu": (some[-1][2] - some[0][2]) / span}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    parser.add_argument("--role", choices=["server", "crawl"])
    parser.add_argument("--port", type=int)
    parser.add_argument("--budget", type=float)
    parser.add_argument("--share", default="")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", help="one case")
    parser.add_argument("--by-cpu", action="store_true", help="seconds of the processor that the crawl uses")
    parser.add_argument("--runs", type=int, default=1, help="of each case")
    given = parser.parse_args()
    keep_apart(crawl=given.role == "crawl")
    if given.role == "server":
        asyncio.run(serve())
        return
    if given.role == "crawl":
        loops.run(crawl(given.port, given.budget, given.share, given.folder))
        return
    if given.smallest:
        print(asyncio.run(measure("the demo's budget", 0.4)))
        return
    seconds = 3.0 if given.quick else 10.0
    cases = [name for name in CASES if given.only in (None, name)]
    found = {name: of_runs(name, given.runs, seconds, by_cpu=given.by_cpu) for name in cases}
    text = json.dumps({"seconds": seconds, "cores": os.cpu_count(), **found}, indent=1)
    print(text)
    if not given.quick and given.only is None:
        RESULTS.write_text(text + "\n")


if __name__ == "__main__":
    main()
