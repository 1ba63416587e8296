"""The service under load: pages per second and latency by HTTP, beside a loop without HTTP in the same run.

    python benchmarks/bench_serve.py --pages 100000 --seconds 20 --out benchmarks/results/serve.json

Each batch is a pick of 100 pages and a record of their 100 outcomes (digests, a third of them changed), in SQLite with
``synchronous`` as in a crawl. Three ways are timed: engine and store in a plain loop (pick, record, save of outcomes
with rows), the desk in a loop without HTTP (leases too), and the service in a process of its own with four clients in
another. Clients are plain `recrawl.client` in threads.

    python benchmarks/bench_serve.py --latency --pages 1000000 --seconds 60 --out benchmarks/results/serve_latency.json

times picks and records of 100 pages that have copies of different age, so that every outcome teaches and tables are
refitted, while somebody asks for forecasts, figures and explanations and looks at the dashboard, again and again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from serve_parts import Parts, cpu_seconds, draw

from recrawl.client import Client, Outcome
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.pages import add_pages, open_engine, save_pages
from recrawl.crawl.signals.tokens import PREFIX, new_token
from recrawl.desk import Report, open_desk
from recrawl.errors import ServiceError
from recrawl.store import Outcome as Stored
from recrawl.store import SqliteStore

BATCH, HOSTS, CLIENTS = 100, 1000, 4
LIKELY = {"min_change_probability": "0%"}  # pages are picked again however fresh they are
CONFIG = 'budget = "1000000/s"\ndelay = "0 s"\nhost_concurrency = 1000\nkeep = 0\nmin_change_probability = "0%"\n'


def settings_of(path: Path) -> Settings:
    """Nothing but engine and store limits the rate."""
    return Settings(database=str(path), budget="1000000/s", delay=0, host_concurrency=1000, keep=0, **LIKELY)


async def build(path: Path, n: int) -> str:
    """A database of n pages and a token."""
    text, token = new_token("bench", ["admin"], time.time())
    async with SqliteStore(path) as store:
        engine = await open_engine(store, time.time(), budget=1e6)
        urls = [f"https://h{k % HOSTS}.example/{k}" for k in range(n)]
        await save_pages(engine, store, add_pages(engine, Rules(), urls, time.time()))
        await store.save(notes={f"{PREFIX}bench": token.as_note()})
    return text


async def build_known(path: Path, n: int) -> str:
    """The same with a copy of each page, fetched within the last day."""
    token, now, rng = await build(path, 0), time.time(), np.random.default_rng(0)
    async with SqliteStore(path) as store:
        engine = await open_engine(store, now - 86400.0, budget=1e6)
        for first in range(0, n, 20_000):
            some = range(first, min(first + 20_000, n))
            urls = [f"https://h{k % HOSTS}.example/{k}" for k in some]
            fetched = now - 86400.0 * rng.random(len(urls))
            ids = engine.add(urls, now, fetched_at=fetched)
            given = zip(urls, fetched.tolist(), strict=True)
            outcomes = [Stored(url, at, status=200, digest=f"given:{at}") for url, at in given]
            await store.save(outcomes, engine.rows(ids))
    return token


def digest(k: int) -> str:
    """A third of the pages change from crawl to crawl."""
    return str(k) if k % 3 else str(time.monotonic())


async def plain_loop(path: Path, seconds: float) -> tuple[float, dict[str, float]]:
    """Pages per second of engine and store alone, and where the time goes."""
    async with SqliteStore(path, keep=0) as store:
        engine = await open_engine(store, time.time(), budget=1e6, min_change_probability=0.0)
        parts = Parts()
        parts.clock_crawl(engine, store)
        parts.begin()
        done, began = 0, time.perf_counter()
        while (took := time.perf_counter() - began) < seconds:
            now = time.time()
            ids = engine.pick(now, BATCH)
            urls = engine.url(ids)
            await store.copies(urls)
            changed = np.arange(len(ids)) % 3 == 0
            engine.record(ids, now, changed=changed, as_of=np.full(len(ids), now))
            given = zip(urls, changed.tolist(), strict=True)
            outcomes = [Stored(url, now, status=200, changed=c, digest=f"given:{digest(c)}") for url, c in given]
            await store.save(outcomes, engine.rows(ids))
            done += len(ids)
        return done / took, parts.table(done, "the loop")


async def desk_loop(path: Path, seconds: float) -> tuple[float, dict[str, float]]:
    """Pages per second of the desk without HTTP, with four callers, and where the time goes."""
    live, desk = await open_desk(settings_of(path))
    parts = Parts()
    parts.clock_crawl(live.crawler.engine, live.store)
    running = asyncio.create_task(live.crawler.run(crawl=False))
    parts.begin()
    done, began = 0, time.perf_counter()

    async def call() -> None:
        nonlocal done
        while time.perf_counter() - began < seconds:
            pages = await desk.pick(BATCH, wait=1.0)
            await desk.record([Report(page.lease, 200, digest=digest(k)) for k, page in enumerate(pages)])
            done += len(pages)

    await asyncio.gather(*(call() for _ in range(CLIENTS)))
    took = time.perf_counter() - began
    table = parts.table(done, "desk")
    live.crawler.stop()
    await running
    await live.close()
    return done / took, table


def clients(url: str, token: str, seconds: float) -> dict[str, Any]:
    """Pages per second and latencies of four clients."""
    times: dict[str, list[float]] = {"pick": [], "record": []}
    done, until = [0] * CLIENTS, time.perf_counter() + seconds

    def crawl(me: int) -> None:
        with Client(url, token) as client:
            while (start := time.perf_counter()) < until:
                pages = client.pick(BATCH, wait=1.0)
                picked = time.perf_counter()
                client.record([Outcome(page.lease, 200, digest=digest(k)) for k, page in enumerate(pages)])
                times["pick"].append(picked - start)
                times["record"].append(time.perf_counter() - picked)
                done[me] += len(pages)

    began = time.perf_counter()
    threads = [threading.Thread(target=crawl, args=(k,)) for k in range(CLIENTS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return {"pages_per_second": sum(done) / (time.perf_counter() - began), "pages": sum(done), "times": times}


def latency(times: list[float]) -> dict[str, float]:
    """Median, percentiles and maximum in milliseconds, and the ratio that is to be small."""
    ms = 1000.0 * np.array(times)
    found = {f"p{q}": round(float(np.percentile(ms, q)), 2) for q in (50, 90, 99)}
    ratio = round(float(np.percentile(ms, 99) / np.median(ms)), 2)
    return {**found, "max": round(float(ms.max()), 1), "p99_by_median": ratio, "calls": len(ms)}


def served(path: Path, token: str, seconds: float, *, ask: bool) -> dict[str, Any]:
    """The same by HTTP; with ``ask``, forecasts and figures are asked for all the time."""
    config = path.with_suffix(".toml")
    config.write_text(CONFIG)
    command = [sys.executable, "-m", "recrawl", "serve", "--no-crawl", "--listen", "127.0.0.1:18321"]
    command += ["--config", str(config), "--database", str(path), "--log-level", "error"]
    server, url = subprocess.Popen(command), "http://127.0.0.1:18321"
    try:
        with Client(url, token, patience=300.0) as first:
            while not first.pick(1, lease=1.0):
                time.sleep(0.1)
        asking = subprocess.Popen([sys.executable, __file__, f"--ask={url} {token} {seconds}"]) if ask else None
        given = [sys.executable, __file__, f"--client={url} {token} {seconds}"]
        before = cpu_seconds(server.pid)
        found = json.loads(subprocess.run(given, check=True, capture_output=True, text=True).stdout)
        found["cpu_us_per_page"] = round(1e6 * (cpu_seconds(server.pid) - before) / max(found.pop("pages"), 1), 1)
        if asking is not None:
            asking.wait()
    finally:
        server.terminate()
        server.wait(60)
    times = found.pop("times")
    return {**found, "latency_ms": {name: latency(values) for name, values in times.items()}}


def ask_all(url: str, token: str, seconds: float) -> None:
    """What people ask of a service and look at, again and again."""
    until = time.time() + seconds
    looking = threading.Thread(target=look_around, args=(url, token, until))
    looking.start()
    k = 0
    with Client(url, token, patience=0.0) as client:
        while time.time() < until:
            with suppress(ServiceError):  # figures about many pages take longer than this waits
                client.forecast(f"{1 + k}/s")
                client.status()
            k += 1
            time.sleep(1.0)
    looking.join()


def look_around(url: str, token: str, until: float) -> None:
    """Look at every view of the dashboard, and ask why."""
    page = "https://h1.example/1"
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    opener.open(f"{url}/sign-in", urllib.parse.urlencode({"token": token}).encode()).close()
    views = ["/", "/feed", f"/page?url={page}", "/charts.json", "/freshness", "/budget", "/hosts", "/stale"]
    with Client(url, token) as client:
        while time.time() < until:
            client.why(page)
            for view in views:
                with suppress(OSError):
                    opener.open(url + view, timeout=30.0).read()
            time.sleep(1.0)


def measure_latency(path: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Latencies at a size, with all that may delay a reply."""
    token = asyncio.run(build_known(path, given.pages))
    found = {"pages": given.pages, "batch": BATCH, "clients": CLIENTS, "seconds": given.seconds}
    return {**found, **served(path, token, given.seconds, ask=True)}


def measure_rate(path: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Pages per second by HTTP and without, by turns: what else the machine does meanwhile meets all of them."""
    token = asyncio.run(build(path, given.pages))
    found: dict[str, Any] = {"pages": given.pages, "batch": BATCH, "clients": CLIENTS, "seconds": given.seconds}
    seconds, rates, last = given.seconds / given.rounds, dict[str, list[float]](), dict[str, Any]()
    for _ in range(given.rounds):
        plain, last["engine_and_store"] = asyncio.run(plain_loop(path, seconds))
        desk, last["desk"] = asyncio.run(desk_loop(path, seconds))
        last["http"] = served(path, token, seconds, ask=False)
        for name, rate in (("engine_and_store", plain), ("desk", desk), ("http", last["http"]["pages_per_second"])):
            rates.setdefault(name, []).append(round(rate))
    found |= {name: round(float(np.mean(values))) for name, values in rates.items()}
    found |= {f"http_by_{name}": round(found["http"] / found[name], 3) for name in ("engine_and_store", "desk")}
    found |= {"rounds": rates, "latency_ms": last["http"]["latency_ms"]}
    found["http_with_questions"] = served(path, token, seconds, ask=True)
    found["cpu_us_per_page"] = {
        "engine_and_store": last["engine_and_store"],
        "desk": last["desk"],
        "http": {"the service, without clients": last["http"]["cpu_us_per_page"]},
    }
    return found


def main() -> None:
    """Run what the options say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--client")
    parser.add_argument("--ask")
    parser.add_argument("--rounds", type=int, default=4, help="turns of each way, which share the seconds")
    parser.add_argument("--latency", action="store_true", help="latencies beside refits, questions and the dashboard")
    parser.add_argument("--smallest", action="store_true", help="only whether it runs")
    given = parser.parse_args()
    if given.smallest:
        given.pages, given.seconds, given.rounds = 1000, 0.5, 1
    if given.client or given.ask:
        url, token, seconds = (given.client or given.ask).split()
        if given.ask:
            ask_all(url, token, float(seconds))
        else:
            print(json.dumps(clients(url, token, float(seconds))))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crawl.db"
        if given.smallest:
            print(json.dumps(measure_latency(Path(folder) / "known.db", given)))
        found = measure_latency(path, given) if given.latency else measure_rate(path, given)
    text = json.dumps(found, indent=2)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n")
        if "cpu_us_per_page" in found and not given.latency:
            draw(found["cpu_us_per_page"], given.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
