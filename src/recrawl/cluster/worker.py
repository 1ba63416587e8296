"""Worker: crawls the shards that it has leased, each with an engine and a crawler of its own, in one event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from recrawl.cluster import passes, tables
from recrawl.cluster.notices.notices import Notices
from recrawl.cluster.ownership.gate import Gate
from recrawl.cluster.ownership.keeper import Keeper, Round
from recrawl.cluster.ownership.leases import Held
from recrawl.cluster.ownership.sessions import Connections
from recrawl.cluster.reading import ShardReader
from recrawl.cluster.reloading import answer_text, taken_over
from recrawl.cluster.shard_crawl import ShardCrawl, Surroundings
from recrawl.cluster.shares.control_round import Controller
from recrawl.cluster.tables import Cluster
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.assemble import Web, check_settings
from recrawl.crawl.run.opening.reload import Reloaded
from recrawl.engine.outcomes.lessons import Lessons
from recrawl.errors import ParameterError, RecrawlError
from recrawl.logs import event

log = logging.getLogger(__name__)

_PATIENCE = 2.0  # leases that a statement may take
_LAST_PATIENCE = 2.0  # leases that a worker which was stopped waits for the database


def worker_name() -> str:
    """The name of this process as a worker: machine and process id."""
    return f"{socket.gethostname()}-{os.getpid()}"


def check_cluster_settings(settings: Settings) -> None:
    """Raise ParameterError for settings that a worker does not support."""
    check_settings(settings)


class ShardWorker:
    """One process of a cluster. ``run`` ends when it is stopped, drained, or a time is reached.

    ``options`` gives fields of `CrawlOptions` for the crawl of a shard, by its lease. ``web`` may be made from the
    rules, which a reload replaces in place. ``read`` reads the settings again; without it they are not reloaded.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        *,
        name: str = "",
        web: Web | Callable[[Rules], Web] | None = None,
        options: Callable[[Gate], dict[str, Any]] | None = None,
        read: Callable[[], Settings] | None = None,
    ) -> None:
        check_cluster_settings(settings)
        self.cluster, self.settings, self.name = cluster, settings, name or worker_name()
        self._rules, self._read = settings.rules(), read
        self._web = web(self._rules) if callable(web) else web or Web.http(settings)
        self._connections = Connections(cluster, patience=_PATIENCE * cluster.seconds)
        self._crawls: dict[int, ShardCrawl] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._counted: Counter[str] = Counter()
        self._closed: dict[int, int] = {}  # shards that were closed, with the epochs of their leases
        self._stop_at: float | None = None  # by the monotonic clock
        self._woken = asyncio.Event()
        self._problem: RecrawlError | None = None
        self._control = Controller(cluster, settings.opening())
        self._keeper = Keeper(cluster, self.name, self._on_round, self._control.step)
        self._keeper.wanted.notices = bool(settings.notifications())
        self._reloads, self._reloading = 0, asyncio.Lock()
        self._reload_tasks: set[asyncio.Task[Reloaded]] = set()
        self._found = Round({}, {})  # the last round
        self._notices: Notices | None = None
        self._leaving: dict[asyncio.Task[None], Notices] = {}  # notices that end
        wanted, chosen = self._keeper.wanted, options or _nothing_else
        reader = ShardReader(cluster, self._connections)
        self._around = Surroundings(
            settings, cluster, self._web, self._connections, self._may_wait, wanted, reader, chosen
        )

    async def run(
        self, seconds: float | None = None, *, once: bool = False, on_start: Callable[[], None] | None = None
    ) -> dict[str, Any]:
        """Work until ``stop``, a drain, or for some seconds; what was counted.

        With ``once``, make a pass with the other workers: every page of all shards once. It ends when all are done.
        """
        began = time.monotonic()
        try:
            await tables.bring_up_to_date(self.cluster)
            number = await passes.enter(self.cluster, self.name, once=once)
            self._keeper.pass_number = self._around.pass_number = number
            self._keeper.start()
            if on_start is not None:
                on_start()
            event(log, logging.INFO, "worker.started", worker=self.name, shards=self.cluster.shards)
            while self._stop_at is None or self._tasks:
                left = None if seconds is None else began + seconds - time.monotonic()
                if left is not None and left <= 0 and self._stop_at is None:
                    self.stop()
                await self._rest(left)
        finally:
            await self._close()
        event(log, logging.INFO, "worker.ended", worker=self.name, **self._counted)
        if self._problem is not None:
            raise self._problem
        return dict(self._counted) | ({"pass": number, "shards_left": self._found.left} if once else {})

    def stop(self) -> None:
        """Start no more crawls, save everything, give all shards back."""
        if self._stop_at is None:
            self._stop_at = time.monotonic()
        self._keeper.wanted.stopping = True
        for crawl in self._crawls.values():
            crawl.stop()
        self._woken.set()

    @property
    def shards(self) -> list[int]:
        """The shards whose crawls run."""
        return sorted(self._crawls)

    def _may_wait(self) -> bool:
        """Whether transactions wait for a database that is away."""
        if self._stop_at is None:
            return True
        return time.monotonic() < self._stop_at + _LAST_PATIENCE * self.cluster.seconds

    async def _rest(self, left: float | None) -> None:
        self._woken.clear()
        try:
            async with asyncio.timeout(None if left is None or left < 0 else left):
                await self._woken.wait()
        except TimeoutError:
            pass

    # --- settings -----------------------------------------------------------------------------------------------------

    async def reload(self) -> Reloaded:
        """Read the settings again and use what can be used without a restart; the budget is the cluster's.

        Settings that are not valid are refused and those in use stay.
        """
        async with self._reloading:
            try:
                if self._read is None:
                    raise ParameterError("the settings of this worker were not read from a file")
                new = self._read()
                check_cluster_settings(new)
            except (RecrawlError, OSError) as problem:
                done = Reloaded(error=" ".join(str(problem).split()))
                event(log, logging.ERROR, "settings.refused", error=done.error)
                return done
            old = self.settings
            done, self.settings = taken_over(old, new)
            self._around.settings = self.settings
            self._rules.replace(self.settings.rules().rules)
            for crawl in list(self._crawls.values()):
                await crawl.reload(old, self.settings, self._found)
            self._control.hours = self.settings.opening()
            self._keeper.wanted.notices = bool(self.settings.notifications())
            self._end_notices(lost=False)  # they begin with a later round
            named = {name: ",".join(getattr(done, name)) for name in ("changed", "needs_restart")}
            event(log, logging.INFO, "settings.reloaded", **named)
            return done

    def _follow(self, number: int) -> None:
        """Follow an order to reload that was not followed yet; at first any: it may be younger than the settings."""
        if number > self._reloads:
            self._reloads = number
            task = asyncio.create_task(self.reload())
            self._reload_tasks.add(task)
            task.add_done_callback(self._reload_tasks.discard)
            task.add_done_callback(lambda ended: self._answer(number, ended))

    def _answer(self, number: int, task: asyncio.Task[Reloaded]) -> None:
        if not task.cancelled() and task.exception() is None:
            self._keeper.wanted.answer = number, answer_text(task.result())

    # --- rounds -------------------------------------------------------------------------------------------------------

    def _on_round(self, found: Round) -> None:
        """Use what a round of the keeper found: leases, shares, shards that come and go."""
        self._found = found
        self._follow(found.reload)
        self._notify(found.notices)
        for shard in found.lost & self._crawls.keys():
            self._crawls[shard].lose()
        for shard, held in found.held.items():
            crawl, share = self._crawls.get(shard), found.shares.get(shard)
            if held.epoch <= self._closed.get(shard, 0):
                continue  # the round began before the shard was closed
            if crawl is not None and not crawl.gate.lost:
                crawl.renew(held, share, found)
            elif crawl is None and self._stop_at is None and not found.draining and shard not in self._tasks:
                self._open(ShardCrawl(self._around, Gate(held), share))
        if found.sums is not None:
            self._learn(found.sums)
        running = [crawl for crawl in self._crawls.values() if not crawl.stopping]
        leaving = len(self._crawls) - len(running)
        for crawl in running[: max(found.excess - leaving, 0)]:
            crawl.stop()
        if self._around.pass_number is not None and not found.left:
            self.stop()
        if found.draining and self._stop_at is None:
            event(log, logging.INFO, "worker.drained", worker=self.name)
            self.stop()

    def _notify(self, held: Held | None) -> None:
        """Send notifications while the lease for them lasts, or was taken again before anybody else."""
        for one in (*self._leaving.values(), self._notices):
            if one is not None and held is not None and held.epoch <= one.gate.held.epoch + 1:
                one.renew(held)
        if self._notices is not None and self._notices.gate.held is held:
            return
        self._end_notices(lost=True)
        if held is not None and self._stop_at is None and not self._leaving:
            self._notices = Notices(self._connections, self.settings, self._web.clock, held)

    def _end_notices(self, *, lost: bool) -> None:
        if self._notices is not None:
            task = asyncio.create_task(self._notices.end(lost=lost))
            self._leaving[task] = self._notices
            task.add_done_callback(self._leaving.pop)
            self._notices = None

    def _learn(self, sums: Mapping[int, Mapping[str, Any]]) -> None:
        """Let all engines learn from what shards have published."""
        self._around.lessons.clear()
        self._around.lessons.update({shard: Lessons.of(one) for shard, one in sums.items()})
        for crawl in self._crawls.values():
            crawl.learn()

    def _open(self, crawl: ShardCrawl) -> None:
        shard = crawl.gate.held.shard
        self._crawls[shard] = crawl
        self._tasks[shard] = asyncio.create_task(self._crawl(crawl))

    async def _crawl(self, crawl: ShardCrawl) -> None:
        """A shard from its first crawl to its last."""
        shard = crawl.gate.held.shard
        try:
            await crawl.run()
        except RecrawlError as problem:
            if not crawl.gate.lost:
                event(log, logging.ERROR, "shard.failed", shard=shard, error=str(problem))
                self._problem = self._problem or problem
                self.stop()
        except Exception as problem:
            event(log, logging.ERROR, "shard.failed", shard=shard, error=f"{type(problem).__name__}: {problem}")
            self._problem = self._problem or RecrawlError(f"shard {shard}: {type(problem).__name__}: {problem}")
            self.stop()
        finally:
            self._counted += Counter(crawl.counted())
            del self._crawls[shard], self._tasks[shard]
            self._keeper.wanted.acknowledge.pop(shard, None)
            self._closed[shard] = crawl.gate.held.epoch
            if not crawl.gate.lost:
                self._keeper.wanted.release[shard] = crawl.gate.held.epoch
            self._woken.set()

    async def _close(self) -> None:
        self.stop()
        if self._tasks:
            await asyncio.wait(self._tasks.values())
        if self._reload_tasks:
            await asyncio.wait(self._reload_tasks)
        if self._notices is not None:
            await self._notices.finish()
        if self._leaving:
            await asyncio.wait(set(self._leaving))
        await self._keeper.end()
        await self._connections.close()
        await self._web.close()


def _nothing_else(gate: Gate) -> dict[str, Any]:
    return {}
