"""The service under load: pages per second by HTTP beside a loop without HTTP in the same run, and latencies.

    python benchmarks/bench_serve.py --runs 3 --out benchmarks/results/serve.json

Each batch is a pick of 100 pages and a record of their 100 outcomes, in SQLite with ``synchronous`` as in a crawl.
Three ways are timed (`serve_ways.py`; the service by `serve_run.py`): engine and store in a plain loop, the desk in a
loop without HTTP, and the service in a process of its own with four clients in another. Each has its own copy of the
same database, the same settings and finds the same changes; they take turns, so that all go through the same part of an
engine's life.

    python benchmarks/bench_serve.py --latency --pages 1000000 --seconds 60 --out benchmarks/results/serve_latency.json

times picks and records of 100 pages that have copies of different age, so that every outcome teaches and tables are
refitted, while somebody asks for forecasts, figures and explanations and looks at the dashboard, again and again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from serve_parts import cpu_seconds, draw
from serve_world import BATCH, CLIENTS, build, build_known, write_config

from recrawl.client import Client
from recrawl.errors import ServiceError

WAYS, RUN = (Path(__file__).with_name(name) for name in ("serve_ways.py", "serve_run.py"))
URL = "http://127.0.0.1:18321"
FAILED = "failed:"
NAMES = {"loop": "engine_and_store", "desk": "desk", "clients": "http"}


def latency(times: list[float]) -> dict[str, float]:
    """Median, percentiles and maximum in milliseconds, and the ratio that is to be small."""
    ms = 1000.0 * np.array(times)
    found = {f"p{q}": round(float(np.percentile(ms, q)), 2) for q in (50, 90, 99)}
    ratio = round(float(np.percentile(ms, 99) / np.median(ms)), 2)
    return {**found, "max": round(float(ms.max()), 1), "p99_by_median": ratio, "calls": len(ms)}


@contextmanager
def served(path: Path, token: str) -> Iterator[int]:
    """A service, which is ready; its process id."""
    write_config(path.with_suffix(".toml"))
    command = [sys.executable, str(RUN), "serve", "--no-crawl", "--listen", URL.removeprefix("http://")]
    command += ["--config", str(path.with_suffix(".toml")), "--database", str(path), "--log-level", "error"]
    server = subprocess.Popen(command, env={**os.environ, "PARTS": str(path.with_suffix(".json"))})
    try:
        with Client(URL, token, patience=600.0) as first:
            while not first.pick(1, lease=1.0):
                time.sleep(0.1)
        yield server.pid
    finally:
        server.terminate()
        server.wait(60)


class Way:
    """A way to crawl, which does so on command."""

    def __init__(self, name: str, *given: str) -> None:
        command = [sys.executable, str(WAYS), name, *given]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pages, self.seconds, self.rates = 0, 0.0, list[int]()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found

    def crawl(self, many: int | str, *, counts: bool = True) -> None:
        """Make so many crawls; clients also crawl for some seconds, such as 60s."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{many}\n")
        self._process.stdin.flush()
        found = self._answer()
        if counts:
            self.pages += found["pages"]
            self.seconds += found["seconds"]
            self.rates.append(round(found["pages"] / found["seconds"]))

    def end(self) -> dict[str, Any]:
        """End it; where its time went."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        found = self._answer()
        self._process.wait()
        return found


def ask_all(url: str, token: str, seconds: float) -> None:
    """What people ask of a service and look at, again and again; print how often it was answered."""
    until, answered = time.time() + seconds, Counter[str](forecasts=0, views=0)
    looking = threading.Thread(target=look_around, args=(url, token, until, answered))
    looking.start()
    k = 0
    with Client(url, token, patience=0.0) as client:
        while time.time() < until:
            with suppress(ServiceError):  # figures about many pages take longer than this waits
                client.forecast(f"{1 + k}/s")
                answered["forecasts"] += 1
                client.status()
            k += 1
            time.sleep(1.0)
    looking.join()
    print(json.dumps(answered))


def look_around(url: str, token: str, until: float, answered: Counter[str]) -> None:
    """Look at every view of the dashboard, and ask why."""
    page = "https://h1.example/1"
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    opener.open(f"{url}/sign-in", urllib.parse.urlencode({"token": token}).encode()).close()
    views = ["/", "/?order=stale", "/feed", f"/page?url={page}", "/signals", "/settings"]
    views += ["/freshness", "/budget", "/hosts", "/stale"]
    with Client(url, token) as client:
        while time.time() < until:
            client.why(page)
            for view in views:
                look(opener, url + view, answered)
            time.sleep(1.0)


def look(opener: urllib.request.OpenerDirector, address: str, answered: Counter[str]) -> None:
    """Open a view, which may take longer than this waits, but must be there."""
    try:
        with opener.open(address, timeout=30.0) as answer:
            answer.read()
            found = "views" if answer.url == address else f"{FAILED} leads to {answer.url}"
    except urllib.error.HTTPError as problem:
        found = f"{FAILED} {address} answers {problem.code}"
    except OSError:
        found = "views that took longer than 30 s"
    answered[found] += 1


def refits(token: str) -> int:
    """How often the service has refitted its tables."""
    request = urllib.request.Request(f"{URL}/metrics", headers={"authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60.0) as answer:
        lines = answer.read().decode().splitlines()
    return int(next(float(line.split()[1]) for line in lines if line.startswith("recrawl_refits_total ")))


def measure_latency(path: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Latencies at a size, with all that may delay a reply."""
    token = asyncio.run(build_known(path, given.pages))
    found = {"pages": given.pages, "batch": BATCH, "clients": CLIENTS, "seconds": given.seconds}
    with served(path, token):
        before, ask = refits(token), [sys.executable, __file__, f"--ask={URL} {token} {given.seconds}"]
        asking = subprocess.Popen(ask, stdout=subprocess.PIPE, text=True)
        clients = Way("clients", URL, token)
        clients.crawl(f"{given.seconds}s")
        answered = json.loads(asking.communicate()[0])
        times = clients.end()["times"]
        meanwhile = {"refits": refits(token) - before, **answered}
    if failed := [name for name in meanwhile if name.startswith(FAILED)]:
        raise SystemExit(f"views of the dashboard: {failed}")
    if not given.smallest and not all(meanwhile.values()):
        raise SystemExit(f"latencies say nothing unless each of these happened meanwhile: {meanwhile}")
    return {
        **found,
        "meanwhile": meanwhile,
        "pages_per_second": round(clients.pages / clients.seconds),
        "latency_ms": {name: latency(values) for name, values in times.items()},
    }


def measure_rate(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Pages per second by HTTP and without, by turns: what else the machine does meanwhile meets all of them."""
    first = folder / "first.db"
    token = asyncio.run(build(first, given.pages))
    for name in NAMES:
        shutil.copy(first, folder / f"{name}.db")
    turn = max(round(given.crawls * given.pages / given.turns), CLIENTS * BATCH)
    with ExitStack() as stack:
        server = stack.enter_context(served(folder / "clients.db", token))
        ways = {name: Way(name, str(folder / f"{name}.db")) for name in ("loop", "desk")}
        ways["clients"] = Way("clients", URL, token)
        spent = 0.0
        for k in range(given.turns + 1):  # in the first, kernels are loaded: it does not count
            for name, way in ways.items():
                before = cpu_seconds(server)
                if name == "clients":
                    os.kill(server, signal.SIGUSR1)
                way.crawl(turn, counts=k > 0)
                if name == "clients":
                    os.kill(server, signal.SIGUSR2)
                spent += cpu_seconds(server) - before if k > 0 and name == "clients" else 0.0
        parts = {NAMES[name]: way.end() for name, way in ways.items()}
    http = parts.pop("http")
    found: dict[str, Any] = {"pages": given.pages, "batch": BATCH, "clients": CLIENTS}
    found["crawls"] = {NAMES[name]: way.pages for name, way in ways.items()}
    found |= {NAMES[name]: round(way.pages / way.seconds) for name, way in ways.items()}
    found |= {f"http_by_{name}": round(found["http"] / found[name], 3) for name in ("engine_and_store", "desk")}
    found["turns"] = {NAMES[name]: way.rates for name, way in ways.items()}
    found["latency_ms"] = {name: latency(values) for name, values in http["times"].items()}
    per_turn = json.loads((folder / "clients.json").read_text())
    scale = given.turns / ways["clients"].pages  # parts are clocked per turn
    found["cpu_us_per_page"] = {**parts, "http": {part: round(us * scale, 1) for part, us in per_turn.items()}}
    found["cpu_us_per_page"]["http"]["all"] = round(1e6 * spent / ways["clients"].pages, 1)
    found["cpu_us_per_page"]["four clients"] = {"clients": http["clients"]}
    return found


def median_of_runs(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """The run of median ratio, with the ratios of all."""
    found = []
    for k in range(given.runs):
        (folder / f"run {k}").mkdir()
        found.append(measure_rate(folder / f"run {k}", given))
    found.sort(key=lambda one: one["http_by_engine_and_store"])
    return {**found[len(found) // 2], "ratio_by_run": [one["http_by_engine_and_store"] for one in found]}


def main() -> None:
    """Run what the options say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--crawls", type=float, default=2.0, help="of each page, by each way")
    parser.add_argument("--turns", type=int, default=4, help="turns of each way, which share the crawls")
    parser.add_argument("--runs", type=int, default=1, help="runs of the rates; the median one is reported")
    parser.add_argument("--seconds", type=float, default=60.0, help="of a measurement of latencies")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--ask")
    parser.add_argument("--latency", action="store_true", help="latencies beside refits, questions and the dashboard")
    parser.add_argument("--smallest", action="store_true", help="only whether it runs")
    given = parser.parse_args()
    if given.smallest:
        given.pages, given.seconds, given.turns = 1000, 0.5, 1
    if given.ask:
        url, token, seconds = given.ask.split()
        ask_all(url, token, float(seconds))
        return
    with tempfile.TemporaryDirectory() as folder:
        if given.smallest:
            print(json.dumps(measure_latency(Path(folder) / "known.db", given)))
        some = Path(folder)
        found = measure_latency(some / "crawl.db", given) if given.latency else median_of_runs(some, given)
    text = json.dumps(found, indent=2)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n")
        if not given.latency:
            draw(found["cpu_us_per_page"], given.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
