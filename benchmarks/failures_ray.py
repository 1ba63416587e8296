"""The workers of a cluster as actors on a local Ray cluster; actors and nodes are killed, everything is checked.

Each node has one processor and so one worker. Nodes are on 127.0.0.2, because Ray replaces 127.0.0.1 by the machine's
address. The hosts, the pages and the verdict are those of `failures_cluster.py`. Ray runs its workers at niceness 15;
here they have that of this process, so that other work on the machine does not hold them up more than its servers.

Run: python benchmarks/failures_ray.py [--failures 30] [--hosts 20] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from failures_cluster import LEASE, N_SHARDS, N_WORKERS, make_cluster
from failures_verdict import Run, verdict
from failures_web import Side
from failures_worker import logged_worker, settings_of

from recrawl.cluster import tables
from recrawl.cluster.hosts import shards_of
from recrawl.cluster.overview import overview
from recrawl.contrib.ray import RayWorkers, connected
from recrawl.store.postgres.address import Address

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from postgres_server import Server

KINDS = ("actor", "node")
ADDRESS = "127.0.0.2"


class Scene:
    """Ray's nodes, the workers on them, and what was done to them."""

    def __init__(self, database: str, folder: Path, seed: int) -> None:
        import ray
        from ray.cluster_utils import Cluster as Nodes

        self._ray, self.rng, self.done = ray, random.Random(seed), list[dict[str, Any]]()
        self.nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 0, "node_ip_address": ADDRESS})
        for _ in range(N_WORKERS + 1):  # one to spare
            self.nodes.add_node(num_cpus=1, node_ip_address=ADDRESS)
        self.address = self.nodes.address
        self._database, self._folder = database, folder

    async def play(self, side: Side, failures: int) -> dict[str, Any]:
        """Run the workers until so many failures are over; what they counted."""
        cluster = await tables.read(Address.parse(self._database))
        assert cluster is not None
        build = partial(logged_worker, folder=str(self._folder))
        team = RayWorkers(cluster, settings_of(self._database), N_WORKERS, build=build)
        running = asyncio.create_task(team.run())
        while len({one.worker for one in side.hosts.asked}) < N_WORKERS:
            await asyncio.sleep(0.2)
            assert not running.done() or running.result()
        await asyncio.sleep(2 * LEASE)
        plan = [KINDS[k % len(KINDS)] for k in range(failures)]
        self.rng.shuffle(plan)
        for kind in plan:
            await self._fail(kind, team, cluster)
            await asyncio.sleep(self.rng.uniform(3.2, 5.0) * LEASE)
        team.stop()
        return await running

    async def _fail(self, kind: str, team: RayWorkers, cluster: tables.Cluster) -> None:
        found = await overview(cluster)
        owned = {name: [one["shard"] for one in found["shards"] if one["worker"] == name] for name in team.actors}
        name = self.rng.choice([name for name, shards in owned.items() if shards])
        actor = team.actors[name]
        where = await actor.__ray_call__.remote(_node_of) if kind == "node" else None
        now = time.monotonic()
        if kind == "actor":
            self._ray.kill(actor)
        else:
            (node,) = [one for one in self.nodes.worker_nodes if one.node_id == where]
            self.nodes.remove_node(node, allow_graceful=False)
            self.nodes.add_node(num_cpus=1, node_ip_address=ADDRESS)  # Ray wants the main thread
        done = {"kind": "kill", "what": kind, "at": now, "until": now, "worker": name, "shards": owned[name]}
        self.done.append(done)


def _node_of(actor: Any) -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())


def play(failures: int, hosts: int, *, seed: int, folder: Path) -> dict[str, Any]:
    """The whole run; its verdict."""
    here = str(Path(__file__).parent)
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ["PYTHONPATH"] = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    server = Server(synchronous_commit="on", max_connections="100")
    try:
        side = Side(server.port, 0, seed)
        pages, budget = make_cluster(server, side, hosts, folder, LEASE)
        scene = Scene(server.address("crawl"), folder, seed)
        try:
            with connected(scene.address):
                counted = asyncio.run(scene.play(side, failures))
        finally:
            scene.nodes.shutdown()
        shard = {url: int(one) for url, one in zip(pages, shards_of(pages, N_SHARDS), strict=True)}
        run = Run(folder, server.address("crawl"), side.hosts.asked, scene.done, shard, budget, LEASE)
        lost = {"workers_lost": counted["workers_lost"]}
        return {"failures": dict(Counter(one["what"] for one in scene.done)), **lost, **verdict(run)}
    finally:
        server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--failures", type=int, default=30)
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        began = time.monotonic()
        found = play(given.failures, given.hosts, seed=given.seed, folder=Path(made))
    found = {"seconds": round(time.monotonic() - began), "lease": LEASE, "workers": N_WORKERS, **found}
    print(json.dumps(found, indent=1))
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
