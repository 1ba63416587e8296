"""The URL Frontier service: the rate of each call beside that of an empty echo service in the same run.

    python benchmarks/bench_urlfrontier.py --out benchmarks/results/urlfrontier.json

Three services run in processes of their own: an echo with the same messages in and out and no work in between, a strict
crawl and a managed crawl of 80,000 URLs in 8,000 queues. One client in another process makes each call for a fifth of a
second, on the echo and the strict crawl in turn, then on the echo and the managed crawl, 15 times; a ratio is the
median of the rounds (`rate_by_echo_of_rounds`: the lowest round, and the middle half). The echo reads what the service
reads, and its answers have the size of the service's: where a call is answered with several URLs, it sends as many as
the service did just before. URLs are leased for one second, and a service is asked every 0.8 s, so that a queue with
one URL in process can be used every second time: 8,000 queues allow 20,000 URLs a second. 3,000 would allow 7,500, less
than the echo sends on a fast machine.

Calls without a stream are made 16 at a time; `PutURLs` is one stream of items, counted by acknowledgements;
`PutDiscovered` sends batches of 100, and `GetURLs` and `ListURLs` are counted by URLs. Beside the rates, the processor
time of the server per call is compared: the client is slower than an empty service. `later` of `PutDiscovered` is the
rate if the time is included after which all URLs are pages of the engine; in strict crawls, URLs become rows when
`GetURLs` serves them first, as most that it serves here.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np

from recrawl.contrib.urlfrontier import FrontierClient, FrontierService, GrpcServer, Modes
from recrawl.contrib.urlfrontier.api.wire import CALLS, AckMessage, BatchAck, URLInfo, message
from recrawl.contrib.urlfrontier.testing.bench import discovered, known
from recrawl.crawl.config.settings import Settings
from recrawl.desk import open_desk

QUEUES, PER_QUEUE, AT_ONCE, BATCH = 8000, 10, 16, 100
LEASE = 1  # seconds
KINDS = ("echo", "strict", "managed")
META = {"signature": ["0123456789abcdef0123456789abcdef"], "fetch.statusCode": ["200"], "depth": ["3"]}
TICKS = os.sysconf("SC_CLK_TCK")


# --- servers ----------------------------------------------------------------------------------------------------------


def echo_handlers() -> dict[str, Any]:
    """Handlers that answer with messages of the usual size and do nothing."""
    info = discovered("http://h1.example/page/1", "bench", "h1.example", metadata=META).discovered.info
    item = known("http://h1.example/page/1", "bench", 1.7e9, "h1.example", metadata=META)
    keys = [f"h{k}.example" for k in range(100)]
    fixed = {
        "GetStats": message("Stats")(size=9, counts={"completed": 1, "active_queues": 1}, crawlID="bench"),
        "ListQueues": message("QueueList")(values=keys, total=QUEUES, size=100, crawlID="bench"),
        "ListCrawls": message("StringList")(values=["bench"]),
        "GetURLStatus": item,
    }

    def unary(name: str) -> Any:
        answer = fixed.get(name, message(CALLS[name].gives)())

        async def handle(request: Any, context: Any) -> Any:
            return answer

        return handle

    async def get_urls(request: Any, context: Any) -> AsyncIterator[Any]:
        for _ in range(request.max_queues * request.max_urls_per_queue):
            yield info

    async def list_urls(request: Any, context: Any) -> AsyncIterator[Any]:
        for _ in range(100):
            yield item

    async def put_urls(items: Any, context: Any) -> AsyncIterator[Any]:
        async for one in items:
            yield AckMessage(ID=one.ID)

    async def put_discovered(batches: Any, context: Any) -> AsyncIterator[Any]:
        async for batch in batches:
            yield BatchAck(ID=batch.ID, statuses=[0] * len(batch.items))

    streams = {"GetURLs": get_urls, "ListURLs": list_urls, "PutURLs": put_urls, "PutDiscovered": put_discovered}
    return {name: streams.get(name) or unary(name) for name in CALLS}


async def serve(kind: str, folder: Path) -> None:
    """Serve until the process ends; the address is printed."""
    server = GrpcServer("127.0.0.1", 0)
    if kind == "echo":
        await server.start(echo_handlers())
    else:
        desk = None
        if kind == "managed":
            settings = Settings(
                database=str(folder / "managed.db"),
                budget="1000000/s",
                delay=0,
                host_concurrency=0,
                keep=0,
                min_change_probability="0%",
            )
            live, desk = await open_desk(settings)
            running = asyncio.create_task(live.crawler.run(crawl=False))
            running.add_done_callback(lambda done: done.exception())
        await FrontierService(folder / f"{kind}.urlfrontier", Modes.of(kind), desk).start(server)
    gc.freeze()  # as the command does
    print(server.address, flush=True)
    await asyncio.Event().wait()


class Server:
    """A service in a process of its own."""

    def __init__(self, kind: str, folder: Path) -> None:
        command = [sys.executable, __file__, "--serve", kind, str(folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()

    def used(self) -> float:
        """Seconds of processor time."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


# --- calls ------------------------------------------------------------------------------------------------------------


class Load:
    """The calls of one client; each gives how many units were done."""

    def __init__(self, server: Server) -> None:
        self.client, self._server = FrontierClient(server.address), server
        self._new = itertools.count(10**6)
        self.sizes: list[int] = []  # of the answers to `GetURLs`; for the echo, those that it is asked for
        self.later = 0.0  # seconds until what was put is settled
        self.start()

    def start(self) -> None:
        """What comes before does not count."""
        self._began, self._used = time.perf_counter(), self._server.used()
        self._ended: tuple[float, float] | None = None

    def stop(self) -> None:
        """What comes after does not count."""
        self._ended = self.since()

    def since(self) -> tuple[float, float]:
        """Seconds since then, and seconds of the server's processor time."""
        return self._ended or (time.perf_counter() - self._began, self._server.used() - self._used)

    async def fill(self) -> None:
        """80,000 URLs in 8,000 queues, without delays, in batches as they are discovered."""
        urls = [f"http://h{k % QUEUES}.example/page/{k}" for k in range(QUEUES * PER_QUEUE)]
        infos = [discovered(url, "bench", metadata=META).discovered.info for url in urls]
        some = [infos[first : first + BATCH] for first in range(0, len(infos), BATCH)]
        batches = [message("DiscoveredBatch")(ID="b", items=part) for part in some]
        _ = [ack async for ack in self.client.PutDiscovered(iter(batches))]
        await self.client.CountURLs(crawlID="bench", key="h1.example", filter="none")  # until all are pages
        await self.client.SetDelay(delay_requestable=0)

    async def _put(self, items: list[Any]) -> int:
        n = 0
        async for _ in self.client.PutURLs(iter(items)):
            n += 1
        return n

    async def unary(self, name: str, seconds: float, **fields: Any) -> int:
        """One call again and again, some at a time."""
        until, call, done = time.perf_counter() + seconds, getattr(self.client, name), 0

        async def repeat() -> None:
            nonlocal done
            while time.perf_counter() < until:
                await call(**fields)
                done += 1

        await asyncio.gather(*(repeat() for _ in range(AT_ONCE)))
        return done

    async def put_discovered_urls(self, seconds: float) -> int:
        """A stream of new URLs."""
        return await self._stream(seconds, lambda k: discovered(f"http://n{k % QUEUES}.example/{k}", "new", id=str(k)))

    async def put_known_urls(self, seconds: float) -> int:
        """A stream of URLs that were served just before, which is not counted: each put is an observation."""
        served, most = list[Any](), max(int(4000 * seconds), 50)
        while len(served) < most:
            asked = {"max_queues": 1000, "max_urls_per_queue": 1, "crawlID": "bench", "delay_requestable": 60}
            some = [info async for info in self.client.GetURLs(**asked)]
            if not some:
                break
            served += some
        soon, items = int(time.time()), []
        for k, info in enumerate(served):
            items.append(known(info.url, "bench", soon, info.key, metadata={**META, "signature": [str(k % 3)]}))
            items[-1].ID = str(k)
        self.start()
        return await self._put(items)

    async def _stream(self, seconds: float, item: Callable[[int], Any]) -> int:
        until, room, done = time.perf_counter() + seconds, asyncio.Semaphore(4000), 0

        async def items() -> AsyncIterator[Any]:
            while time.perf_counter() < until:
                await room.acquire()
                yield item(next(self._new))

        async for _ in self.client.PutURLs(items()):
            done += 1
            room.release()
        return done

    async def batches(self, seconds: float) -> int:
        """A stream of batches of new URLs."""
        until, room, done = time.perf_counter() + seconds, asyncio.Semaphore(16), 0

        async def some() -> AsyncIterator[Any]:
            while time.perf_counter() < until:
                await room.acquire()
                batch = message("DiscoveredBatch")(ID="b")
                for k in itertools.islice(self._new, BATCH):
                    batch.items.append(URLInfo(url=f"http://n{k % QUEUES}.example/{k}", crawlID="new"))
                yield batch

        async for ack in self.client.PutDiscovered(some()):
            done += len(ack.statuses)
            room.release()
        self.stop()
        began = time.perf_counter()
        await self.client.CountURLs(crawlID="new", key="n1.example", filter="none")
        self.later = time.perf_counter() - began
        return done

    async def get_urls(self, seconds: float, queues: int) -> int:
        """100 URLs at a time, of some queues; of the echo, as many as another service gave."""
        until, done = time.perf_counter() + seconds, 0
        sizes = itertools.cycle(self.sizes or [0])
        asked = {"max_queues": queues, "max_urls_per_queue": 100 // queues}
        asked |= {"crawlID": "bench", "delay_requestable": LEASE}
        echo, given = bool(self.sizes), list[int]()
        while time.perf_counter() < until:
            if echo:
                asked |= {"max_queues": next(sizes), "max_urls_per_queue": 1}
            infos = [info async for info in self.client.GetURLs(**asked)]
            done += len(infos)
            given += [len(infos)] if infos else []
            if not infos:  # all are in process
                await asyncio.sleep(0.02)
        self.sizes = given
        return done

    async def list_urls(self, seconds: float) -> int:
        """Lists of 100 URLs."""
        until, done = time.perf_counter() + seconds, 0
        while time.perf_counter() < until:
            done += len([item async for item in self.client.ListURLs(crawlID="bench", start=500)])
        return done

    async def delete(self, name: str, seconds: float) -> int:
        """Queues or crawls of one URL each, deleted; putting them in is not counted."""
        fields = "key" if name == "DeleteQueue" else "value"
        names = [f"d{next(self._new)}" for _ in range(max(int(800 * seconds), 20))]
        crawl = (lambda one: "gone") if name == "DeleteQueue" else (lambda one: one)
        items = [discovered("http://d.example/" + one, crawl(one), one, id=one) for one in names]
        await self._put(items)
        more, call, done = {"crawlID": "gone"} if name == "DeleteQueue" else {}, getattr(self.client, name), 0
        self.start()

        async def some(part: list[str]) -> None:
            nonlocal done
            for one in part:
                await call(**{fields: one}, **more)
                done += 1

        await asyncio.gather(*(some(names[k::AT_ONCE]) for k in range(AT_ONCE)))
        return done


def calls(load: Load) -> dict[str, Callable[[float], Awaitable[int]]]:
    """What is measured, in this order: URLs that are put as known were served before."""
    key = {"key": "h7.example", "crawlID": "bench"}
    url = {"url": "http://h7.example/page/7", "crawlID": "bench"}
    fields: dict[str, dict[str, Any]] = {
        "ListNodes": {},
        "ListCrawls": {},
        "ListQueues": {"crawlID": "bench"},
        "GetStats": key,
        "BlockQueueUntil": {**key, "time": 5},
        "SetActive": {"state": True},
        "GetActive": {},
        "SetDelay": {**key, "delay_requestable": 0},
        "SetLogLevel": {"package": "other", "level": 2},
        "SetCrawlLimit": {**key, "limit": 0},
        "GetURLStatus": url,
        "CountURLs": {**key, "filter": "page"},
        "PurgeURLs": {**key, "days": 30},
    }
    plain = {name: (lambda s, name=name, given=given: load.unary(name, s, **given)) for name, given in fields.items()}
    return {
        **plain,
        "ListURLs": load.list_urls,
        "GetURLs, 10 of 10 queues": lambda s: load.get_urls(s, 10),
        "GetURLs, 1 of 100 queues": lambda s: load.get_urls(s, 100),
        "PutURLs, known": load.put_known_urls,
        "PutURLs, discovered": load.put_discovered_urls,
        "PutDiscovered": load.batches,
        "DeleteQueue": lambda s: load.delete("DeleteQueue", s),
        "DeleteCrawl": lambda s: load.delete("DeleteCrawl", s),
    }


async def measure(servers: dict[str, Server], seconds: float, rounds: int, only: str) -> dict[str, Any]:
    """Rates and processor times of all calls, by call and service."""
    loads = {kind: Load(server) for kind, server in servers.items()}
    for kind, load in loads.items():
        if kind != "echo":
            await load.fill()
    done = {kind: calls(load) for kind, load in loads.items()}
    found: dict[str, Any] = {}
    for name in [one for one in done["echo"] if only in one]:
        runs: dict[str, list[Run]] = {kind: [] for kind in KINDS[1:]}
        for count in range(rounds + 1):  # the first does not count: kernels are loaded
            for kind in KINDS[1:]:
                loads[kind].sizes = []
                service = await timed(loads[kind], done[kind][name], seconds)
                loads["echo"].sizes = loads[kind].sizes
                echo = await timed(loads["echo"], done["echo"][name], seconds)
                if count > 0:
                    runs[kind].append(Run(service, echo, loads[kind]))
        found[name] = row_of(runs)
        print(f"{name:25}", found[name], flush=True)
    return found


async def timed(load: Load, call: Callable[[float], Awaitable[int]], seconds: float) -> tuple[int, float, float]:
    """How many units were done, in how many seconds, and in how much processor time of the server."""
    load.later = 0.0
    load.start()
    n = max(await call(seconds), 1)
    return n, *load.since()


class Run:
    """One call on a service and on the echo: rates, the times of the servers, and the rate with what is done later."""

    def __init__(self, service: tuple[int, float, float], echo: tuple[int, float, float], load: Load) -> None:
        self.rate, self.echo_rate = service[0] / service[1], echo[0] / echo[1]
        self.cost, self.echo_cost = service[2] / service[0], echo[2] / echo[0]
        self.later_rate = service[0] / (service[1] + load.later)
        self.size = statistics.mean(load.sizes or [0])


def spread(ratios: list[float]) -> list[float]:
    """The lowest, and the ends of the middle half."""
    return [round(float(one), 3) for one in np.quantile(ratios, (0.0, 0.25, 0.75))]


def row_of(runs: dict[str, list[Run]]) -> dict[str, Any]:
    """Medians of the rounds, and the ratios to the echo."""

    def median(kind: str, of: Callable[[Run], float]) -> float:
        return statistics.median(map(of, runs[kind]))

    both = [run for some in runs.values() for run in some]
    row = {
        "per_second": {"echo": round(statistics.median(run.echo_rate for run in both))}
        | {kind: round(median(kind, lambda run: run.rate)) for kind in runs},
        "server_microseconds": {"echo": round(1e6 * statistics.mean(run.echo_cost for run in both), 1)}
        | {kind: round(1e6 * statistics.mean(run.cost for run in some), 1) for kind, some in runs.items()},
        "rate_by_echo": {kind: round(median(kind, lambda run: run.rate / run.echo_rate), 3) for kind in runs},
        "rate_by_echo_of_rounds": {kind: spread([run.rate / run.echo_rate for run in runs[kind]]) for kind in runs},
        "echo_time_by_time": {
            kind: round(sum(run.echo_cost for run in some) / max(sum(run.cost for run in some), 1e-9), 3)
            for kind, some in runs.items()
        },
    }
    if any(run.size for run in both):
        row["urls_of_a_call"] = {
            kind: round(statistics.mean(run.size for run in some), 1) for kind, some in runs.items()
        }
    if any(run.later_rate < run.rate for run in both):
        row["later"] = {kind: round(median(kind, lambda run: run.later_rate)) for kind in runs}
    return row


def draw(found: dict[str, Any], path: Path) -> None:
    """The ratios of rates as bars, those of processor time as dots."""
    names = list(found)[::-1]
    figure, axes = plt.subplots(figsize=(8, 7), layout="constrained")
    for shift, (kind, colour) in enumerate((("managed", "#b35806"), ("strict", "#2166ac"))):
        values = [found[name]["rate_by_echo"][kind] for name in names]
        places = [k + 0.4 * shift for k in range(len(names))]
        axes.barh(places, values, 0.4, label=f"{kind}: rate", color=colour)
        times = [found[name]["echo_time_by_time"][kind] for name in names]
        axes.plot(times, places, "o", color="white", markeredgecolor="black", markersize=4)
    axes.axvline(0.5, color="black", linewidth=0.8, linestyle="--")
    axes.set_yticks([k + 0.2 for k in range(len(names))], names)
    axes.set_xlabel("rate (bar), calls per processor time (dot); echo in the same run = 1")
    axes.legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run what the options say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each call on each service in a round")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--note", default="")
    parser.add_argument("--only", default="", help="only calls whose names contain this")
    parser.add_argument("--serve", nargs=2)
    parser.add_argument("--smallest", action="store_true", help="only whether it runs")
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(given.serve[0], Path(given.serve[1])))
        return
    global QUEUES
    if given.smallest:
        given.seconds, given.rounds, QUEUES = 0.05, 1, 50
    with tempfile.TemporaryDirectory() as folder:
        servers: dict[str, Server] = {}
        try:
            for kind in KINDS:
                servers[kind] = Server(kind, Path(folder))
            found = asyncio.run(measure(servers, given.seconds, given.rounds, given.only))
        finally:
            for server in servers.values():
                server.close()
    result = {"queues": QUEUES, "urls": QUEUES * PER_QUEUE, "seconds": given.seconds, "rounds": given.rounds}
    result |= {"note": given.note} if given.note else {}
    result["calls"] = found
    for kind in KINDS[1:]:
        result[f"{kind}_below_half"] = [name for name, row in found.items() if row["rate_by_echo"][kind] < 0.5]
    if given.out is not None:
        given.out.write_text(json.dumps(result, indent=2) + "\n")
        draw(found, given.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
