"""``GET /metrics``: figures of a running crawl in the text format of Prometheus.

Every figure is one that the crawl keeps anyway: a scrape computes no forecast and no ledger and reads no page. There
is no label per URL; figures of hosts are given for the ``MOST_HOSTS`` hosts with the most crawls of this run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, cast

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from recrawl import __version__
from recrawl.crawl.run.opening.components import Components
from recrawl.crawl.signals.tokens import Tokens
from recrawl.serve.guard import authorize

MOST_HOSTS = 20
_PATIENCE = 1.0  # seconds that a scrape waits for the store
Values = Iterable[tuple[tuple[str, ...], float]]


class Figure(NamedTuple):
    """One metric: ``read`` gives its values by their labels."""

    name: str  # without recrawl_ and _total
    help: str
    read: Callable[[Components], float | Values | None]
    counts: bool = False  # goes up only, since the run began
    labels: tuple[str, ...] = ()


def _counter(name: str, text: str, field: str) -> Figure:
    return Figure(name, text, lambda c: getattr(c.counters, field), counts=True)


def _stat(name: str, text: str, field: str, *, counts: bool = False) -> Figure:
    return Figure(name, text, lambda c: c.engine.stats[field], counts)


def _outcomes(c: Components) -> Values:
    names = ("changed", "unchanged", "new", "failed", "gone")
    return [((name,), getattr(c.counters, name)) for name in names]


def _signals(c: Components) -> Values:
    found: dict[tuple[str, ...], float] = {}
    for name, counts in c.inbox.tally.by_source.items():
        for result, n in counts.items():
            key = (name.partition(":")[0], result)
            found[key] = found.get(key, 0) + n
    return sorted(found.items())


def _hosts(field: str) -> Callable[[Components], Values]:
    return lambda c: [((host,), getattr(one, field)) for host, one in c.counters.largest_hosts(MOST_HOSTS)]


def _host_delays(c: Components) -> Values:
    return [((host,), c.limiter.delay(host)) for host, _ in c.counters.largest_hosts(MOST_HOSTS)]


def _subscribers(field: str) -> Callable[[Components], Values]:
    return lambda c: [((one.name,), getattr(one, field)) for one in c.deliveries.subscribers()]


_CRAWLS = (
    Figure("info", "always 1; the label is the version", lambda c: [((__version__,), 1)], labels=("version",)),
    _counter("crawls_started", "crawls that were started", "started"),
    Figure("crawls", "crawls that ended, by outcome", _outcomes, counts=True, labels=("outcome",)),
    _counter("crawls_set_aside", "picked pages that had to wait for their hosts", "set_aside"),
    _counter("requests", "HTTP requests of crawls: pages, redirects, robots.txt", "requests"),
    _counter("received_bytes", "bytes of bodies", "n_bytes"),
    _counter("not_modified", "answers 304", "not_modified"),
    _counter("flapping", "returns to content that a page had before", "flapping"),
    _counter("rolled_off", "feeds that share no item with the poll before", "rolled_off"),
    _counter("pushed_copies", "copies that came without a request", "pushed"),
    _counter("hub_deliveries", "signed deliveries of hubs", "deliveries"),
    _counter("hub_deliveries_ignored", "deliveries of hubs without a valid signature", "deliveries_ignored"),
    _counter(
        "signal_requests_turned_away", "requests with signals that were answered 429: the crawl was busy", "turned_away"
    ),
    _counter("listing_polls", "polls of sitemaps, feeds and index pages", "polls"),
    _counter("pages_discovered", "new pages that listings and links named", "discovered"),
    _counter("errors", "errors in a fetcher or detector", "errors"),
    Figure("crawls_running", "crawls that run", lambda c: len(c.pool)),
    Figure("crawl_slots_free", "further crawls that may run", lambda c: c.pool.free),
)
_ENGINE = (
    _stat("pages", "pages", "pages"),
    _stat("pages_failing", "pages whose last crawl failed", "failing"),
    _stat("pages_gone", "pages that are gone", "away"),
    _stat("pages_unlikely", "pages that wait because they have hardly changed", "unlikely"),
    _stat("pages_leased", "pages that are picked and not recorded yet", "leased"),
    _stat("decisions", "pages that were picked", "decisions", counts=True),
    _stat("leases_expired", "picks that were never recorded", "leases_expired", counts=True),
    _stat("reader_requests", "requests of readers", "requests", counts=True),
    _stat("refits", "refits of the tables of rates", "refits", counts=True),
    Figure("threshold", "crawl value at the margin, smoothed over picks", lambda c: c.recorder.threshold),
    Figure("freshness_expected", "expected share of fresh copies at the last note", lambda c: c.freshness.last("now")),
    Figure(
        "freshness_so_far",
        "share of past time with fresh copies, as crawls found",
        lambda c: c.freshness.last("so_far"),
    ),
)
_BUDGET = (
    Figure("budget_rate", "requests per second that the budget allows while open", lambda c: c.budget.rate),
    Figure(
        "budget_used",
        "requests that were counted against the budget: those of crawls, polls and key files",
        lambda c: c.budget.used,
        counts=True,
    ),
    Figure(
        "budget_lapsed",
        "requests that the budget allowed and nothing asked for",
        lambda c: c.budget.lapsed,
        counts=True,
    ),
    Figure("budget_waiting", "running crawls that wait for a further request", lambda c: c.budget.n_waiting),
)
_SIGNALS = (
    Figure("signals", "signals of all runs, by kind of source and result", _signals, True, ("source", "result")),
    Figure("signals_pending", "pending signals", lambda c: c.inbox.n_pending),
)
_STORE = (
    _counter("outcomes_committed", "outcomes that are in the store", "acknowledged"),
    Figure("outcomes_pending", "outcomes that wait for the store", lambda c: c.recorder.n_pending),
    Figure(
        "store_lag_seconds",
        "age of the oldest outcome that is not in the store",
        lambda c: c.recorder.lag(c.clock.now()),
    ),
    Figure("subscriber_failures", "failed deliveries in a row", _subscribers("failures"), labels=("subscriber",)),
    Figure("subscriber_delivered", "delivered events of all runs", _subscribers("taken"), True, ("subscriber",)),
    Figure("subscriber_dropped", "events dropped before delivery", _subscribers("dropped"), True, ("subscriber",)),
)
_HOSTS = (
    Figure("hosts_held", "hosts that are not asked because of what they answered", lambda c: c.limiter.n_held()),
    Figure("host_crawls", "crawls of a host in this run", _hosts("crawls"), True, ("host",)),
    Figure("host_failures", "failed crawls of a host in this run", _hosts("failures"), True, ("host",)),
    Figure("host_requests", "requests to a host in this run", _hosts("requests"), True, ("host",)),
    Figure("host_seconds", "seconds of a crawl, smoothed", _hosts("took"), labels=("host",)),
    Figure("host_delay_seconds", "seconds between two requests to a host", _host_delays, labels=("host",)),
)
FIGURES = (*_CRAWLS, *_ENGINE, *_BUDGET, *_SIGNALS, *_STORE, *_HOSTS)
_EVENTS = {
    "events": ("events of all runs", "last", True),
    "events_kept": ("events that are kept", "rows", False),
    "events_bytes": ("bytes of the events that are kept", "size", False),
}  # what the store is asked for: text, its name there, whether it only goes up


class Metrics(Protocol):
    """Metrics that are brought up to date before they are collected."""

    async def refresh(self) -> None:
        """Ask what is not known in memory."""

    def describe(self) -> list[Metric]:
        """Nothing: names are known when they are collected."""

    def collect(self) -> Iterator[Metric]:
        """All figures."""


class CrawlCollector(Collector):
    """The figures of a crawl, as prometheus-client collects them."""

    def __init__(self, components: Components) -> None:
        self._components = components
        self.events: Mapping[str, int] = {}  # what the store said last

    async def refresh(self) -> None:
        """Ask the store for its events."""
        self.events = await self._components.store.event_counts()

    def describe(self) -> list[Metric]:
        """Nothing: names are known when they are collected."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All figures."""
        for figure in FIGURES:
            yield family(figure, figure.read(self._components))
        for name, (text, key, counts) in _EVENTS.items():
            yield family(Figure(name, text, lambda _: None, counts), self.events.get(key))
        yield family(_BEHIND, self._behind())

    def _behind(self) -> Values:
        last = self.events.get("last")
        if last is None:
            return []
        return [((one.name,), max(last - one.cursor, 0)) for one in self._components.deliveries.subscribers()]


_BEHIND = Figure("subscriber_behind", "events not delivered yet", lambda _: None, labels=("subscriber",))


def family(figure: Figure, found: float | Values | None) -> Metric:
    kind = CounterMetricFamily if figure.counts else GaugeMetricFamily
    family = kind(f"recrawl_{figure.name}", figure.help, labels=figure.labels)
    values: Values = [] if found is None else [((), float(found))] if isinstance(found, int | float) else found
    for labels, value in values:
        family.add_metric(list(labels), float(value))
    return family


def metric_routes(figures: Metrics, tokens: Tokens) -> APIRouter:
    """The route for metrics; its registry is its own."""
    router = APIRouter()
    registry = CollectorRegistry()
    registry.register(cast(Collector, figures))
    ProcessCollector(registry=registry)

    @router.get("/metrics")
    async def metrics(request: Request) -> Response:
        authorize(request, tokens, "read")
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await figures.refresh()
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return router


def metric_names() -> list[str]:
    """The names of all metrics of the crawl as they are scraped."""
    figures: list[Any] = [
        *FIGURES,
        *(Figure(name, text, lambda _: None, up) for name, (text, _, up) in _EVENTS.items()),
    ]
    return [f"recrawl_{one.name}{'_total' if one.counts else ''}" for one in [*figures, _BEHIND]]
