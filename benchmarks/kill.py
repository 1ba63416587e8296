"""Kill a crawl at random moments, each with a fetch and a write in flight, and see what is lost: nothing may be.

    python benchmarks/kill.py --kills 200 --out benchmarks/results/kill.json

A server on loopback shows pages that change and notes every request. The crawl is a process of its own, killed with
SIGKILL and started again on the same database. What it says is acknowledged goes through a file that the killer reads,
what is in flight through one that both have mapped. Both are processes of their own, not forks: the killer may hold
threads and locks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import mmap
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from aiohttp import web
from aiohttp.abc import AbstractResolver

from recrawl import Engine
from recrawl._system.sockets import knock
from recrawl.crawl.clock import SystemClock
from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.http.fetcher import HttpFetcher
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.run.opening.pages import add_pages, open_engine, save_pages
from recrawl.errors import ParameterError
from recrawl.store import BlockingStore, SqliteStore

BUDGET, DELAY, HOSTS, PAGES = 40.0, 0.2, 20, 300
SLACK = 0.005  # seconds by which a gap may be shorter than the delay
LONGEST = 100  # outcomes in a life, at most
PATIENCE = 120.0  # seconds until a process that does nothing is given up


class Loopback(AbstractResolver):
    """Every name is this machine."""

    async def resolve(self, host, port=0, family=socket.AF_INET):
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}]

    async def close(self):
        pass


class Shared:
    """What the crawl tells its killer without a call that could fail, in a file: see the names of the places."""

    FETCHES, WRITES, ACKNOWLEDGED = range(3)  # fetches and outcomes that are being written; outcomes that are kept
    BYTES = 24

    def __init__(self, file: Path) -> None:
        if not file.exists():
            file.write_bytes(bytes(self.BYTES))
        with file.open("r+b") as opened:
            self._map = mmap.mmap(opened.fileno(), self.BYTES)

    def add(self, place: int, by: int) -> None:
        struct.pack_into("q", self._map, 8 * place, self.get(place) + by)

    def get(self, place: int) -> int:
        return int(struct.unpack_from("q", self._map, 8 * place)[0])

    def clear(self) -> None:
        self._map[:] = bytes(self.BYTES)


def serve(port: int, log: str, seed: int) -> None:
    """Pages that change every few seconds, some slowly answered; every request is noted when it comes in."""
    rng, file = random.Random(seed), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def page(request: web.Request) -> web.Response:
        now = time.time()
        os.write(file, f"{now!r} {request.host.split(':')[0]} {request.path}\n".encode())
        if request.path == "/robots.txt":
            raise web.HTTPNotFound
        k = int(request.path.rsplit("/", 1)[1])
        await asyncio.sleep(rng.uniform(0.002, 0.06))
        return web.Response(text=f"<p>page {k}, state {int(now / (2 + k % 37))}</p>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/{tail:.*}", page)
    web.run_app(app, host="127.0.0.1", port=port, print=None, handle_signals=False)


def crawl(database: str, acknowledged: str, flight: str, port: int) -> None:
    """The crawl that is killed: it ends in no other way."""
    shared = Shared(Path(flight))
    file = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    class Fetcher(HttpFetcher):
        async def fetch(self, url, **options):
            shared.add(Shared.FETCHES, 1)
            try:
                return await super().fetch(url, **options)
            finally:
                shared.add(Shared.FETCHES, -1)

    class Store(SqliteStore):
        async def save(self, outcomes=(), rows=None, **more):
            shared.add(Shared.WRITES, len(outcomes))
            try:
                await super().save(outcomes, rows, **more)
            finally:
                shared.add(Shared.WRITES, -len(outcomes))

    def heard(name, fields):
        if name == "saved":
            lines = [f"{o.url} {o.began_at!r} {o.digest}\n" for o in fields["outcomes"]]
            os.write(file, "".join(lines).encode())
            shared.add(Shared.ACKNOWLEDGED, len(lines))

    async def main() -> None:
        clock, store = SystemClock(), Store(database)
        settings = {"budget": BUDGET, "host_spacing": DELAY, "host_concurrency": 1}
        engine = await open_engine(store, clock.now(), **settings)
        if not len(engine):
            urls = [f"http://h{k % HOSTS}.test:{port}/{k}" for k in range(PAGES)]
            await save_pages(engine, store, add_pages(engine, Rules(), urls, clock.now()))
        fetcher = Fetcher("recrawl-kill/1 (+loopback)", allow_private=True, resolver=Loopback(), clock=clock)
        crawler = Crawler(engine, store, fetcher, CrawlOptions(commit_delay=0.02, on_event=heard), clock=clock)
        await crawler.run()

    asyncio.run(main())


def free_port() -> int:
    """A port on loopback that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def started(script: str, part: str, *arguments: object) -> subprocess.Popen[bytes]:
    """Run a function of a script in a process of its own; its arguments pass through JSON."""
    return subprocess.Popen([sys.executable, script, part, json.dumps(arguments, default=str)])


def killed(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that has not ended by itself."""
    process.kill()
    status = process.wait()
    assert status == -signal.SIGKILL, f"the process ended by itself, with {status}"


@contextmanager
def serving(script: str, port: int, log: Path, seed: int) -> Iterator[None]:
    """The server of a script, until the block ends."""
    server, give_up_at = started(script, "serve", port, log, seed), time.monotonic() + PATIENCE
    try:
        while True:
            try:
                knock(f"127.0.0.1:{port}")
                break
            except ParameterError:
                assert server.poll() is None, "the server has ended"
                assert time.monotonic() < give_up_at, "the server has not begun"
                time.sleep(0.02)
        yield
    finally:
        killed(server)


def kill_one(database: Path, acknowledged: Path, flight: Path, port: int, rng: random.Random) -> dict[str, int]:
    """Start the crawl, kill it after some outcomes, with a fetch and a write in flight; how many of each."""
    shared, n = Shared(flight), rng.randint(0, LONGEST)
    shared.clear()
    child, give_up_at = started(__file__, "crawl", database, acknowledged, flight, port), time.monotonic() + PATIENCE
    while time.monotonic() < give_up_at and child.poll() is None:
        if shared.get(Shared.ACKNOWLEDGED) >= n and shared.get(Shared.FETCHES) > 0 and shared.get(Shared.WRITES) > 0:
            break
        time.sleep(0.0003)
    killed(child)
    return {"fetches": shared.get(Shared.FETCHES), "writes": shared.get(Shared.WRITES)}


def judge(database: Path, acknowledged: Path) -> dict[str, int]:
    """What is missing from the database after a kill."""
    said = [line.split() for line in acknowledged.read_text().splitlines()]
    with BlockingStore(SqliteStore(database)) as store:
        outcomes = list(store.observations())
        rows = store.load()
        problems = store.check()
    kept = Counter((o.url, repr(o.began_at), str(o.digest)) for o in outcomes)
    lost = sum((Counter(tuple(line) for line in said if len(line) == 3) - kept).values())
    compared, changed = Counter(), Counter()
    for outcome in outcomes:
        compared[outcome.url] += outcome.changed is not None and outcome.fetched
        changed[outcome.url] += bool(outcome.changed)
    learned = zip(rows["url"], rows["n_crawls"].tolist(), rows["n_changes"].tolist(), strict=True)
    unlearned = sum((n, m) != (compared[url], changed[url]) for url, n, m in learned)
    Engine.restore(rows, time.time())
    return {
        "acknowledged": len(said),
        "observations": len(outcomes),
        "acknowledged_missing": lost,
        "pages_missing": PAGES - len(rows["url"]),
        "pages_whose_rate_is_not_what_was_observed": unlearned,
        "damage": len(problems),
    }


def windows(log: Path, restarts: list[float]) -> dict[str, float]:
    """The largest share of what any window may see, and the smallest gap between two requests to a host."""
    lines = [line.split() for line in log.read_text().splitlines()]
    at = np.array([float(line[0]) for line in lines])
    order = np.argsort(at, kind="stable")
    at, hosts = at[order], np.array([line[1] for line in lines])[order]
    starts = np.searchsorted(np.sort(restarts), at)
    worst = 0.0
    for i in range(len(at)):
        seen = np.arange(1, len(at) - i + 1)
        allowed = BUDGET * (at[i:] - at[i] + 1.0 + starts[i:] - starts[i])
        worst = max(worst, float((seen / allowed).max()))
    gaps = [np.diff(at[hosts == host]) for host in np.unique(hosts)]
    return {
        "requests": len(at),
        "largest_share_of_allowed": round(worst, 4),
        "smallest_gap": round(float(min((gap.min() for gap in gaps if len(gap)), default=math.inf)), 5),
        "delay": DELAY,
    }


def run(kills: int, seed: int, folder: Path, show=lambda text: None) -> dict[str, object]:
    """Kill again and again; the figures of the whole run."""
    rng, port = random.Random(seed), free_port()
    database, acknowledged, flight = folder / "kill.db", folder / "acknowledged", folder / "flight"
    log = folder / "requests"
    acknowledged.touch()
    began = time.time()
    in_flight, restarts, worst = [], [], Counter()
    with serving(__file__, port, log, seed):
        for k in range(kills):
            restarts.append(time.time())
            in_flight.append(kill_one(database, acknowledged, flight, port, rng))
            found = judge(database, acknowledged)
            for name in list(found)[2:]:
                worst[name] = max(worst[name], found[name])
            show(f"{k + 1} of {kills}: {found}, {in_flight[-1]}")
    both = sum(one["fetches"] > 0 and one["writes"] > 0 for one in in_flight)
    return {
        "kills": kills,
        "kills_with_fetch_and_write_in_flight": both,
        "seconds": round(time.time() - began, 1),
        **found,
        **worst,
        "budget_per_second": BUDGET,
        **windows(log, restarts[1:]),
    }


def command_line(description: str, kills: int, run: Callable[..., dict]) -> None:
    """Read the options of a run that kills a crawl, run it, print and write what was found. Or be one of its parts."""
    if len(sys.argv) == 3 and sys.argv[1] in ("serve", "crawl"):
        vars(sys.modules["__main__"])[sys.argv[1]](*json.loads(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=kills)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(given.kills, given.seed, Path(folder), lambda text: print(text, file=sys.stderr, flush=True))
    print(json.dumps(found, indent=1))
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    command_line(__doc__, 200, run)
