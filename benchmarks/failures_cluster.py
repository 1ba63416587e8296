"""Three workers of a cluster on loopback hosts, and failures at random; then everything is checked by the logs.

Workers are killed, stopped for six leases and continued, cut off from the database by a proxy; PostgreSQL is killed and
started again. A lease is 5 s, a stop 30 s. Of the kind `hold`, a worker stops in the middle of a transaction that saves
outcomes, and goes on once the next owner of the shard has saved some: without the check of the epoch it then writes its
own, each time.

Run: python benchmarks/failures_cluster.py [--failures 100] [--hosts 50] [--lease 5] [--unchecked] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from failures_verdict import Run, verdict, whole_lines
from failures_web import Side

from recrawl.cluster import tables
from recrawl.cluster.hosts import shards_of
from recrawl.cluster.overview import overview
from recrawl.store.postgres.address import Address

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from postgres_server import Server

HERE = Path(__file__).parent
N_SHARDS, N_WORKERS, PER_HOST = 12, 3, 10
LEASE, BUDGET = 5.0, 36.0
STOP = 6  # leases
KINDS = ("kill", "stop", "cut", "database")


@dataclass
class Worker:
    """A place for worker processes, one after the other; ``busy_until``: what it suffers ends then."""

    number: int
    process: subprocess.Popen[bytes] | None = None
    name: str = ""
    lives: int = 0
    busy_until: float = 0.0


@dataclass
class Scene:
    """Server, hosts, proxies, workers, and what was done to them."""

    folder: Path
    server: Server
    side: Side
    rng: random.Random
    unchecked: bool
    lease: float
    workers: list[Worker] = field(default_factory=list)
    done: list[dict[str, Any]] = field(default_factory=list)
    later: list[tuple[float, Any]] = field(default_factory=list)

    def start(self, worker: Worker) -> None:
        worker.lives += 1
        worker.name = f"w{worker.number}.{worker.lives}"
        port = self.side.proxies[worker.number].port
        address = self.server.address("crawl").replace(f":{self.server.port}/", f":{port}/")
        command = [sys.executable, str(HERE / "failures_worker.py"), worker.name, address]
        command += [str(self.folder), *(["unchecked"] if self.unchecked else [])]
        with open(self.folder / f"{worker.name}.err", "wb") as err:
            worker.process = subprocess.Popen(command, stderr=err, stdout=err)

    def tend(self) -> None:
        """Do what is due, and start workers that ended."""
        now = time.monotonic()
        due, self.later = [one for one in self.later if one[0] <= now], [one for one in self.later if one[0] > now]
        for _, call in due:
            call()
        for worker in self.workers:
            if worker.process is not None and worker.process.poll() is not None and now >= worker.busy_until:
                self.start(worker)

    def rest(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.tend()
            time.sleep(0.05)

    def fail(self, kind: str) -> None:
        """One failure, at random."""
        now = time.monotonic()
        fit = [one for one in self.workers if one.busy_until <= now and one.process is not None and one.lives]
        fit = [one for one in fit if one.process is not None and one.process.poll() is None]
        if kind == "database":
            self.server.stop(signal.SIGQUIT)
            away = self.rng.uniform(0.2, 1.5 * self.lease)
            self.later.append((now + away, self.server.start))
            self.done.append({"kind": kind, "at": now, "until": now + away})
            self.rest(away + 0.1)
            return
        if kind == "hold":  # some shards have no pages
            fit = [one for one in fit if any(line.get("saved") for line in self.logged(f"{one.name}.jsonl"))]
        if not fit:
            return
        worker = self.rng.choice(fit)
        assert worker.process is not None
        event = {"kind": kind, "at": now, "until": now, "worker": worker.name, "shards": self.shards_of(worker.name)}
        if kind == "kill":
            worker.process.kill()
            worker.process.wait()
            worker.busy_until = now + self.rng.uniform(0.0, 4 * self.lease)
        elif kind == "stop":
            worker.process.send_signal(signal.SIGSTOP)
            worker.busy_until = event["until"] = now + STOP * self.lease
            self.later.append((event["until"], lambda: worker.process.send_signal(signal.SIGCONT)))  # type: ignore[union-attr]
        elif kind == "hold":
            self.hold(worker, event)
        else:
            proxy, away = self.side.proxies[worker.number], self.rng.uniform(0.3, 3 * self.lease)
            self.side.soon(proxy.cut)
            worker.busy_until = event["until"] = now + away
            close = self.rng.random() < 0.5
            self.later.append((now + away, lambda: self.side.soon(lambda: proxy.mend(close=close))))
        self.done.append(event)

    def hold(self, worker: Worker, event: dict[str, Any]) -> None:
        """Let a worker stop in a transaction until the next owner of the shard has saved outcomes."""
        asked, held = self.folder / f"{worker.name}.hold", self.folder / f"{worker.name}.held"
        assert worker.process is not None
        worker.busy_until = float("inf")
        asked.touch()
        self.rest_until(held.exists)
        event.update(at=time.monotonic(), **json.loads(held.read_text()))
        held.unlink()
        shard, epoch = event["shard"], event["epoch"]
        self.rest_until(lambda: self.n_saved(shard, lambda one: one > epoch) > 0)
        before = self.n_saved(shard, epoch.__eq__)
        worker.process.send_signal(signal.SIGCONT)
        worker.busy_until = event["until"] = time.monotonic()
        if self.unchecked:
            self.rest_until(lambda: self.n_saved(shard, epoch.__eq__) > before)
        else:
            self.rest(2 * self.lease)

    def n_saved(self, shard: int, is_of: Callable[[int], bool]) -> int:
        """How many batches of outcomes of a shard were acknowledged to owners of some epochs."""
        lines = self.logged("*.jsonl")
        return sum(bool(line.get("saved")) and line["shard"] == shard and is_of(line["epoch"]) for line in lines)

    def logged(self, files: str) -> list[dict[str, Any]]:
        """What workers have logged of what was acknowledged to them."""
        return [json.loads(line) for file in self.folder.glob(files) for line in whole_lines(file)]

    def rest_until(self, holds: Callable[[], bool], seconds: float = 300.0) -> None:
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                raise TimeoutError("a worker did not come to where it was waited for")
            self.rest(0.1)

    def shards_of(self, name: str) -> list[int]:
        found = asyncio.run(self._overview())
        return [one["shard"] for one in found["shards"] if one["worker"] == name]

    async def _overview(self) -> dict[str, Any]:
        cluster = await tables.read(Address.parse(self.server.address("crawl")))
        assert cluster is not None
        return await overview(cluster)

    def end(self) -> None:
        """Mend everything, let the workers end by themselves."""
        while self.later:
            self.rest(0.1)
        self.rest(4 * self.lease)
        for worker in self.workers:
            assert worker.process is not None
            worker.process.terminate()
        for worker in self.workers:
            assert worker.process is not None
            worker.process.wait(120)


def make_cluster(server: Server, side: Side, hosts: int, folder: Path, lease: float) -> tuple[list[str], float]:
    """A cluster with the pages of some hosts; the pages, and the budget."""
    pages = [f"http://127.0.1.{h + 1}:{side.hosts.port}/{k}" for h in range(hosts) for k in range(PER_HOST)]
    (folder / "urls.txt").write_text("\n".join(pages))
    budget = BUDGET * min(hosts / 50, 1.0)
    for words in (
        ["cluster", "create", "--shards", str(N_SHARDS), "--lease", str(lease), "--budget", f"{budget:g}/s"],
        ["add", str(folder / "urls.txt"), "--allow-private"],
    ):
        subprocess.run([sys.executable, "-m", "recrawl", *words, "--database", server.address("crawl")], check=True)
    return pages, budget


def play(
    failures: int, hosts: int, *, seed: int, unchecked: bool, kinds: tuple[str, ...], folder: Path, lease: float
) -> dict[str, Any]:
    """The whole run; its verdict."""
    server, workers = Server(synchronous_commit="on", max_connections="100"), [Worker(k) for k in range(N_WORKERS)]
    try:
        side = Side(server.port, N_WORKERS, seed)
        scene = Scene(folder, server, side, random.Random(seed), unchecked, lease)
        pages, budget = make_cluster(server, side, hosts, folder, lease)
        scene.workers = workers
        for worker in workers:
            scene.start(worker)
        while not all(scene.shards_of(worker.name) for worker in scene.workers) or not side.hosts.asked:
            scene.rest(0.5)
        scene.rest(2 * lease)
        plan = [kinds[k % len(kinds)] for k in range(10 * failures)]
        scene.rng.shuffle(plan)
        while len(scene.done) < failures:
            kind = plan.pop()
            scene.fail(kind)
            scene.rest(3.2 * lease if kind == "kill" else scene.rng.uniform(0.3, 3.0 * lease))
        scene.end()
        urls = [(url, int(shard)) for url, shard in zip(pages, shards_of(pages, N_SHARDS), strict=True)]
        run = Run(folder, server.address("crawl"), side.hosts.asked, scene.done, dict(urls), budget, lease)
        return {"failures": dict(Counter(one["kind"] for one in scene.done)), **verdict(run)}
    finally:
        for worker in workers:
            if worker.process is not None and worker.process.poll() is None:
                worker.process.kill()
        server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--failures", type=int, default=100)
    parser.add_argument("--hosts", type=int, default=50)
    parser.add_argument("--lease", type=float, default=LEASE, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--unchecked", action="store_true", help="transactions do not check the lease")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--json", type=Path, default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder, began = given.folder or Path(made), time.monotonic()
        kinds = tuple(given.kinds.split(","))
        how: dict[str, Any] = {"seed": given.seed, "unchecked": given.unchecked, "lease": given.lease}
        found = play(given.failures, given.hosts, kinds=kinds, folder=folder, **how)
    found = {
        "seconds": round(time.monotonic() - began),
        "lease": given.lease,
        "stop": STOP * given.lease,
        "workers": N_WORKERS,
        "shards": N_SHARDS,
        **found,
    }
    print(json.dumps(found, indent=1))
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
