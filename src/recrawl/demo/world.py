"""The demo's world: sites, their pages and when each page changes, drawn from a seed. One second stands for an hour."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.simulate.trace import Trace
from recrawl.simulate.worlds.events import Events, offsets
from recrawl.simulate.worlds.processes import Constant, Process, Renewal, SelfExciting
from recrawl.simulate.worlds.rhythms import Together

Array = NDArray[np.float64]

DAY = 24.0  # seconds that stand for a day
_HORIZON = 900.0  # seconds for which changes are drawn at least, so that a longer run sees the same beginning
_FOLDER = 20  # pages of a folder


@dataclass(frozen=True)
class Site:
    """One host: how many pages it has, how they change, and what makes it hard to crawl.

    ``hours`` is the median time between two changes of a page, ``spread`` the standard deviation of its logarithm.
    ``latency`` is how long the server takes, ``failing`` the share of requests that end in an error outside outages,
    ``outages`` how many there are a minute, each ``outage`` long. ``validator`` is what conditional requests go by;
    a ``fickle`` one changes with every response. ``says`` is how it announces changes: by dates in its ``sitemap``, by
    a ``feed``, by ``pings``, or ``nothing``; one that ``stamps`` dates every page of its sitemap with the hour.
    """

    name: str
    n_pages: int
    hours: float
    process: Process = field(default_factory=Constant)
    spread: float = 1.0
    importance: float = 1.0
    latency: float = 0.0
    failing: float = 0.0
    outages: float = 0.0
    outage: float = 4.0
    crawl_delay: float | None = None
    validator: Literal["none", "etag", "last-modified", "fickle"] = "none"
    says: Literal["nothing", "sitemap", "stamps", "feed", "pings"] = "nothing"

    @property
    def host(self) -> str:
        """The name under which it is served, always of this machine (RFC 6761)."""
        return f"{self.name}.localhost"


SITES = (
    Site("news", 60, 3.0, SelfExciting(offspring=0.6, memory=1.0), importance=2.0, validator="fickle", says="feed"),
    Site("shop", 100, 6.0, Together(size=_FOLDER, shared=0.8, touch=0.6), importance=1.5, says="pings"),
    Site("docs", 120, 60.0, Together(size=_FOLDER, shared=0.9, touch=0.8), validator="etag", says="sitemap"),
    Site("blog", 60, 30.0, Renewal("lognormal", 1.5), validator="last-modified", says="stamps"),
    Site("wiki", 80, 20.0, validator="etag", says="sitemap"),
    Site("archive", 40, 1000.0, validator="last-modified", says="stamps"),
    Site("slow", 20, 10.0, latency=0.3),
    Site("flaky", 20, 10.0, failing=0.1, outages=1.0, crawl_delay=0.25),
)


@dataclass(frozen=True)
class Page:
    """A page of the world: its number is its row in the trace."""

    number: int
    site: Site
    path: str


@dataclass(frozen=True, eq=False)
class DemoWorld:
    """Sites, pages and the ground truth: a trace of every change from the start of the web on."""

    sites: tuple[Site, ...]
    pages: tuple[Page, ...]
    trace: Trace
    outages: dict[str, Array]  # by host: rows of from, to
    seed: int

    def version(self, page: int, now: float) -> int:
        """How often a page had changed by a time."""
        first, last = self.trace.offset[page : page + 2]
        return int(np.searchsorted(self.trace.changed_at[first:last], now, side="right"))

    def changed_at(self, page: int, version: int) -> float:
        """When a version came about; 0 for the first."""
        return float(self.trace.changed_at[self.trace.offset[page] + version - 1]) if version else 0.0

    def is_out(self, host: str, now: float) -> bool:
        """Whether a host is in an outage."""
        spans = self.outages[host]
        return bool(((spans[:, 0] <= now) & (now < spans[:, 1])).any())


def draw_world(seed: int, seconds: float, sites: tuple[Site, ...] = SITES) -> DemoWorld:
    """The world of a seed, with changes for at least so many seconds.

    >>> world = draw_world(1, 60.0)
    >>> len(world.pages), len(world.sites), world.pages[0].path
    (500, 8, '/markets/0')
    """
    if seed < 0:
        raise ParameterError(f"seed is {seed}: must be at least 0")
    horizon = max(_HORIZON, seconds)
    root = np.random.SeedSequence([seed, 8128])
    parts, importance, outages = [], [], {}
    for site, child in zip(sites, root.spawn(len(sites)), strict=True):
        rng = np.random.default_rng(child)
        rate = rng.lognormal(-np.log(site.hours), site.spread, site.n_pages)
        importance.append(site.importance * rng.lognormal(0.0, 1.0, site.n_pages))
        n_out = rng.poisson(site.outages * horizon / 60.0)
        begin = np.sort(rng.uniform(0.0, horizon, n_out))
        outages[site.host] = np.column_stack([begin, begin + site.outage])
        parts.append(site.process.draw(rate, 0.0, horizon, rng).events)
    pages = tuple(Page(k, site, path) for k, (site, path) in enumerate(_paths(sites)))
    return DemoWorld(sites, pages, _joined(parts, np.concatenate(importance), pages, horizon), outages, seed)


_FOLDERS = ("markets", "sport", "culture", "science", "travel", "food")


def _paths(sites: tuple[Site, ...]) -> list[tuple[Site, str]]:
    """Every page's path: pages of a folder are neighbours, so that groups that change together are folders."""
    return [
        (site, f"/{_FOLDERS[k // _FOLDER % len(_FOLDERS)]}/{k % _FOLDER}")
        for site in sites
        for k in range(site.n_pages)
    ]


def _joined(parts: list[Events], importance: Array, pages: tuple[Page, ...], horizon: float) -> Trace:
    count = np.concatenate([np.diff(events.offset) for events in parts])
    return Trace(
        0.0,
        horizon,
        offset=offsets(count),
        changed_at=np.concatenate([events.at for events in parts]),
        importance=importance,
        url=np.array([f"http://{page.site.host}{page.path}" for page in pages]),
        group=np.array([f"{page.site.host}/{page.path.split('/')[1]}" for page in pages]),
        name="demo",
        day=DAY,
    )
