"""The URL Frontier service: the rate of each call beside that of an empty echo service in the same run.

    python benchmarks/bench_urlfrontier.py --out benchmarks/results/urlfrontier.json

Three services run in processes of their own: an echo with the same messages in and out and no work in between, a strict
crawl and a managed crawl of 30,000 URLs in 3,000 queues. One client in another process makes each call for half a
second on each of them, in turn, seven times; a ratio is the median of the rounds. Calls without a stream are made 16 at
a time; `PutURLs` is one stream of items, counted by acknowledgements; `PutDiscovered` sends batches of 100, and
`GetURLs` and `ListURLs` are counted by URLs. Beside the rates, the processor time of the server per call is compared:
the client is slower than an empty service.
"""

from __future__ import annotations

import argparse
import asyncio
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

from recrawl.contrib.urlfrontier import FrontierClient, FrontierService, GrpcServer, Modes
from recrawl.contrib.urlfrontier.testing.bench import discovered, known
from recrawl.contrib.urlfrontier.wire import CALLS, AckMessage, BatchAck, URLInfo, message
from recrawl.crawl.config.settings import Settings
from recrawl.desk import open_desk

QUEUES, PER_QUEUE, AT_ONCE, BATCH = 3000, 10, 16, 100
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
        for _ in range(100):
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
                host_concurrency=1000,
                keep=0,
                min_change_probability="0%",
            )
            live, desk = await open_desk(settings)
            running = asyncio.create_task(live.crawler.run(crawl=False))
            running.add_done_callback(lambda done: done.exception())
        await FrontierService(folder / f"{kind}.urlfrontier", Modes.of(kind), desk).start(server)
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
        self.start()

    def start(self) -> None:
        """What comes before does not count."""
        self._began, self._used = time.perf_counter(), self._server.used()

    def since(self) -> tuple[float, float]:
        """Seconds since then, and seconds of the server's processor time."""
        return time.perf_counter() - self._began, self._server.used() - self._used

    async def fill(self) -> None:
        """30,000 URLs in 3,000 queues, without delays."""
        urls = [f"http://h{k % QUEUES}.example/page/{k}" for k in range(QUEUES * PER_QUEUE)]
        await self._put([discovered(url, "bench", metadata=META) for url in urls])
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
        return done

    async def get_urls(self, seconds: float, queues: int) -> int:
        """100 URLs at a time, of some queues."""
        until, done = time.perf_counter() + seconds, 0
        sizes = {"max_queues": queues, "max_urls_per_queue": 100 // queues}
        while time.perf_counter() < until:
            asked = {**sizes, "crawlID": "bench", "delay_requestable": 2}
            infos = [info async for info in self.client.GetURLs(**asked)]
            done += len(infos)
            if not infos:  # all are in process
                await asyncio.sleep(0.05)
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


async def measure(servers: dict[str, Server], seconds: float, rounds: int) -> dict[str, Any]:
    """Rates and processor times of all calls, by call and service."""
    loads = {kind: Load(server) for kind, server in servers.items()}
    for kind, load in loads.items():
        if kind != "echo":
            await load.fill()
    done = {kind: calls(load) for kind, load in loads.items()}
    found: dict[str, Any] = {}
    for name in done["echo"]:
        rates: dict[str, list[float]] = {kind: [] for kind in servers}
        costs: dict[str, list[float]] = {kind: [] for kind in servers}
        for _ in range(rounds):
            for kind, load in loads.items():
                load.start()
                n = max(await done[kind][name](seconds), 1)
                took, used = load.since()
                rates[kind].append(n / took)
                costs[kind].append(used / n)
        found[name] = row_of(rates, costs)
        print(f"{name:25}", found[name], flush=True)
    return found


def row_of(rates: dict[str, list[float]], costs: dict[str, list[float]]) -> dict[str, Any]:
    """Medians of the rounds, and their ratios to the echo."""
    rate = {kind: statistics.median(given) for kind, given in rates.items()}
    cost = {kind: statistics.median(given) for kind, given in costs.items()}
    pairs = {kind: zip(rates[kind], rates["echo"], strict=True) for kind in KINDS[1:]}
    return {
        "per_second": {kind: round(value) for kind, value in rate.items()},
        "server_microseconds": {kind: round(1e6 * value, 1) for kind, value in cost.items()},
        "rate_by_echo": {kind: round(statistics.median(a / b for a, b in given), 3) for kind, given in pairs.items()},
        "echo_time_by_time": {kind: round(cost["echo"] / max(cost[kind], 1e-9), 3) for kind in KINDS[1:]},
    }


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
    parser.add_argument("--seconds", type=float, default=0.5, help="of each call on each service in a round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--note", default="")
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
            found = asyncio.run(measure(servers, given.seconds, given.rounds))
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
