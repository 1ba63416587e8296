"""Thirty days of a changing web in memory: a crawl keeps a vector index, and the log of the web's server judges it.

`python examples/index/thirty_days.py` needs about a minute. One second of the demo's web stands for an hour.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from keeper import IndexKeeper
from vectors import VectorIndex

from recrawl.crawl import Answer, Crawler, CrawlOptions, ManualClock, MemoryWeb, Rules, add_pages
from recrawl.demo import DAY, SITES, DemoWeb, DemoWorld, draw_world, visible_text
from recrawl.engine import Engine
from recrawl.store import MemoryStore

_START = 1e9
_REMOVED, _LATE = 0.15, 0.2  # shares of the pages that are removed on the way, and added at half-time


class Seen(NamedTuple):
    """One answer of the server: the version that it showed, None for a page that is not there."""

    url: str
    version: int | None


class Web:
    """The demo's web, of which some pages are removed on the way. ``log`` is what was fetched."""

    def __init__(self, world: DemoWorld, clock: ManualClock, days: float, rng: np.random.Generator) -> None:
        self.demo, self.log = DemoWeb(world, clock), list[Seen]()
        self.page = dict(zip(self.demo.urls, (page.number for page in world.pages), strict=True))
        chosen = rng.choice(self.demo.urls, int(_REMOVED * len(self.page)), replace=False)
        removed_at = rng.uniform(0.2, 0.8, len(chosen)) * days * DAY
        self._removed_at = dict(zip(chosen.tolist(), removed_at.tolist(), strict=True))

    def ask(self, url: str, now: float) -> Answer:
        """The answer of a URL."""
        if self.demo.now() >= self._removed_at.get(url, np.inf):
            self.log.append(Seen(url, None))
            return Answer("not found", 404)
        answer = self.demo.ask(url, now)
        if answer.status == 200:
            self.log.append(Seen(url, self.demo.log[-1].version))
        return answer


@dataclass(frozen=True)
class Result:
    """What was counted. ``wrong`` are pages of which the index does not hold what was fetched last."""

    days: float
    fetches: int  # by the server's log, as are changes: fetches that showed another version than the one before
    changes: int
    counts: dict[str, int]  # of the keeper
    n_embedded: int
    n_chunks: int
    n_pages: int
    wrong: list[str]

    @property
    def per_change(self) -> float:
        """Chunks embedded for each change that was fetched; those of first copies are not counted."""
        return (self.n_embedded - self.counts["embedded for added"]) / max(self.changes, 1)

    def lines(self) -> Iterator[str]:
        """A report."""
        count, each = self.counts, self.n_chunks / max(self.n_pages, 1)
        yield f"{self.days:g} days: {self.fetches} fetches, {self.changes} of them found a change"
        yield f"pages added {count['added']}, replaced {count['replaced']}, deleted {count['deleted']}"
        yield f"chunks embedded: {count['embedded for added']} of new pages, {self.per_change:.3f} for each change"
        yield f"with whole pages: {each:.3g} for each change, {self.fetches * each / self.changes:.3g} if at each fetch"
        yield f"{len(self.wrong)} pages of the index differ from what was fetched last"


async def follow(days: float, seed: int, part: int, budget: float) -> Result:
    """Crawl a part of the demo's pages (one of ``part``) for some days with so many requests an hour."""
    sites = tuple(replace(site, n_pages=max(site.n_pages // part, 4)) for site in SITES)
    world, clock = draw_world(seed, days * DAY, sites), ManualClock(_START)
    web, keeper, store = Web(world, clock, days, np.random.default_rng(seed)), IndexKeeper(VectorIndex()), MemoryStore()
    engine = Engine(budget, start=_START, day=DAY, host_spacing=0.02, host_concurrency=2)
    late = round(len(web.page) * (1 - _LATE))
    options = CrawlOptions(subscribers={"index": keeper}, texts=True)
    crawler = Crawler(engine, store, MemoryWeb(web.ask, clock), options, clock=clock)
    try:
        for some, end in ((slice(0, late), 0.5), (slice(late, None), 1.0)):
            urls, importance = list(web.page)[some], world.trace.importance[some]
            add_pages(engine, Rules(), urls, clock.now(), importance=importance)
            await store.save(rows=engine.rows())
            await clock.drive(crawler.run(until=_START + end * days * DAY))
    finally:
        crawler.close()
    return judged(days, web, keeper)


def judged(days: float, web: Web, keeper: IndexKeeper) -> Result:
    """The index beside the log of the server."""
    index, seen = keeper.index, dict[str, list[int | None]]()
    for one in web.log:
        seen.setdefault(one.url, []).append(one.version)
    index.check()
    wrong = [url for url in web.page if not _is_right(web, index, url, seen.get(url, [None])[-1])]
    changes = sum(b not in (a, None) for versions in seen.values() for a, b in pairwise(versions))
    counts = dict(keeper.counts)
    return Result(days, len(web.log), changes, counts, index.n_embedded, index.n_chunks, len(index), wrong)


def _is_right(web: Web, index: VectorIndex, url: str, version: int | None) -> bool:
    if version is None:
        return url not in index
    return url in index and _words(" ".join(index.chunks(url))) == _words(_text(web, url, version))


def _text(web: Web, url: str, version: int) -> str:
    """All that a reader sees of a version: the texts around the main part are those of the page's frame."""
    title, *rest = visible_text(web.demo.world.seed, web.page[url], version)
    return " ".join([title, "Home Contents", title, *rest, "Search"])


def _words(text: str) -> list[str]:
    return re.findall(r"\S+", text)


def main() -> None:
    """Follow the web, print the counts, and fail unless the index is right and cheap."""
    parser = argparse.ArgumentParser(description="Keep a vector index of a changing web for some days.")
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", type=int, default=1, help="crawl one of so many pages of the demo")
    parser.add_argument("--budget", type=float, default=15.0, help="requests an hour")
    parser.add_argument("--output", type=Path, help="write the counts to this file, as JSON")
    options = parser.parse_args()
    found = asyncio.run(follow(options.days, options.seed, options.part, options.budget))
    print("\n".join(found.lines()))
    if options.output is not None:
        given = {"seed": options.seed, "part": options.part, "budget": options.budget}
        options.output.write_text(json.dumps(given | asdict(found), indent=1) + "\n")
    if found.wrong or abs(found.per_change - 1.0) > 0.01:
        raise SystemExit("the index is not what was fetched, or embeds too much")


if __name__ == "__main__":
    main()
