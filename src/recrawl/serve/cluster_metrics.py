"""Metrics of a cluster: its workers, shards, shares and pages, as the service saw them last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from recrawl import __version__
from recrawl.serve.crawls.shards import ClusterCrawl
from recrawl.serve.metrics import Figure, Values, family


class _Figure(NamedTuple):
    """One metric of a cluster."""

    name: str
    help: str
    read: Callable[[ClusterCrawl], float | Values | None]
    labels: tuple[str, ...] = ()


def _held(crawl: ClusterCrawl) -> int:
    return sum(one["worker"] is not None for one in crawl.workers()["shards"])


def _worker_shards(crawl: ClusterCrawl) -> Values:
    return [((one["name"],), one["shards"]) for one in crawl.workers()["workers"] if one["live"]]


_SHARED = (
    _Figure("info", "always 1; the label is the version", lambda c: [((__version__,), 1)], ("version",)),
    _Figure("pages", "pages", lambda c: c.tallies().pages),
    _Figure("pages_failing", "pages whose last crawl failed", lambda c: c.tallies().failing),
    _Figure("pages_gone", "pages that are gone", lambda c: c.tallies().gone),
    _Figure("budget_rate", "requests per second that the budget allows while open", lambda c: c.budget().rate),
)
CLUSTER_FIGURES = (
    _Figure("cluster_shards", "shards", lambda c: len(c.workers()["shards"])),
    _Figure("cluster_shards_held", "shards that a worker has", _held),
    _Figure("cluster_workers", "workers that run", lambda c: sum(one["live"] for one in c.workers()["workers"])),
    _Figure("cluster_worker_shards", "shards of a worker that runs", _worker_shards, ("worker",)),
    _Figure("cluster_controller", "1 while a worker divides the budget", lambda c: bool(c.workers()["controller"])),
    _Figure("cluster_shares_rate", "requests per second that shards may make", lambda c: c.workers()["rate"]),
    _Figure("cluster_shares_reserved", "the same with what is reserved", lambda c: c.workers()["reserved"]),
    _Figure(
        "cluster_plan_age_seconds",
        "age of the oldest plan of a shard",
        lambda c: max((one["published_ago"] or 0.0 for one in c.workers()["shards"]), default=None),
    ),
)
_EVENTS = Figure("events", "events of all runs", lambda _: None, True)


class ClusterCollector(Collector):
    """The figures of a cluster, as prometheus-client collects them."""

    def __init__(self, crawl: ClusterCrawl) -> None:
        self._crawl = crawl
        self._events: int | None = None

    async def refresh(self) -> None:
        """Ask the shards for their events."""
        self._events = sum(await self._crawl.reader.last_events())

    def describe(self) -> list[Metric]:
        """Nothing: names are known when they are collected."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All figures."""
        for one in (*_SHARED, *CLUSTER_FIGURES):
            value = one.read(self._crawl)
            found = float(value) if isinstance(value, bool) else value
            yield family(Figure(one.name, one.help, lambda _: None, labels=one.labels), found)
        yield family(_EVENTS, self._events)
