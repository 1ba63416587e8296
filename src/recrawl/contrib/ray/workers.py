"""Workers of a cluster as Ray actors, and the process that starts another for each that is lost."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from recrawl.cluster.tables import Cluster
from recrawl.cluster.worker import ShardWorker, check_cluster_settings
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.warming import warm_up
from recrawl.errors import ParameterError
from recrawl.logs import event

log = logging.getLogger(__name__)

_PAUSE = 1.0  # seconds before another worker is started for one that was lost
_ENDING = 6.0  # leases that workers have to save everything after a stop
_MOST = 1000

Build = Callable[..., ShardWorker]  # as `ShardWorker`: cluster, settings, name


class Actor:
    """One worker, in a process that Ray starts somewhere."""

    def __init__(self, build: Build, cluster: Cluster, settings: Settings, name: str) -> None:
        self._build, self._cluster, self._settings, self._name = build, cluster, settings, name
        self._worker: ShardWorker | None = None
        self._stopped = False
        warm_up()

    async def run(self) -> dict[str, Any]:
        """Work until ``stop`` or a drain; what was counted."""
        if self._stopped:
            return {}
        self._worker = self._build(self._cluster, self._settings, name=self._name)
        return await self._worker.run()

    async def stop(self) -> None:
        """Start no more crawls, save everything, give all shards back; ``run`` returns then."""
        self._stopped = True
        if self._worker is not None:
            self._worker.stop()


class RayWorkers:
    """So many workers on a Ray cluster that this process has joined (`connected`), spread over its machines.

    A worker that is lost, alone or with its machine, is replaced by another under another name; its shards are free
    when their leases are over.
    """

    def __init__(self, cluster: Cluster, settings: Settings, workers: int, *, build: Build = ShardWorker) -> None:
        if not 1 <= workers <= _MOST:
            raise ParameterError(f"workers is {workers}: must lie between 1 and {_MOST}")
        check_cluster_settings(settings)
        self._cluster, self._settings, self._n, self._build = cluster, settings, workers, build
        self._remote = ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")(Actor)
        self._prefix = f"ray-{uuid.uuid4().hex[:6]}"
        self.actors: dict[str, Any] = {}
        self._n_made = 0
        self._stopping = asyncio.Event()
        self.lost = 0

    async def run(self, seconds: float | None = None, *, on_start: Callable[[], None] | None = None) -> dict[str, Any]:
        """Keep the workers going until ``stop``, for some seconds, or until all were drained; what was counted."""
        if on_start is not None:
            on_start()
        kept = [asyncio.create_task(self._keep_one()) for _ in range(self._n)]
        ended: asyncio.Future[list[Counter[str]]] = asyncio.gather(*kept)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                stopped: asyncio.Future[Any] = asyncio.ensure_future(self._stopping.wait())
                await asyncio.wait({stopped, ended}, return_when=asyncio.FIRST_COMPLETED)
        self.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(_ENDING * self._cluster.seconds):
                await asyncio.shield(ended)
        for name, actor in self.actors.items():
            event(log, logging.WARNING, "worker.killed", worker=name)
            ray.kill(actor)
        counted: Counter[str] = Counter()
        for one in await ended:
            counted += one
        return {"workers_lost": self.lost, **counted}

    def stop(self) -> None:
        """Let all workers save everything and end."""
        self._stopping.set()
        for actor in self.actors.values():
            actor.stop.remote()

    async def _keep_one(self) -> Counter[str]:
        """One worker after the other, until one ends by itself; what they counted."""
        while not self._stopping.is_set():
            name = f"{self._prefix}-{self._n_made}"
            self._n_made += 1
            actor = self.actors[name] = self._remote.remote(self._build, self._cluster, self._settings, name)
            event(log, logging.INFO, "worker.asked", worker=name)
            try:
                return Counter(await actor.run.remote())
            except RayTaskError as problem:
                self.stop()
                raise problem.cause from None
            except (RayActorError, RayError) as problem:
                self.lost += 1
                event(log, logging.WARNING, "worker.lost", worker=name, error=type(problem).__name__)
            finally:
                del self.actors[name]
            with suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE):
                    await self._stopping.wait()
        return Counter()
