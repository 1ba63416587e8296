"""Pages: added, changed, removed and listed. Changes are commands of the crawl, as other processes queue them."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.crawl.run.commands import add_command, pause_command, remove_command, set_command
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.run.opening.pages import is_paused
from recrawl.crawl.urls import canonical
from recrawl.engine import Engine
from recrawl.errors import ParameterError, RowError

MOST_PAGES = 10_000  # of one call
MOST_LISTED = 1000


@dataclass(frozen=True, slots=True)
class NewPage:
    """A page to add."""

    url: str
    importance: float = 1.0


@dataclass(frozen=True, slots=True)
class PageChange:
    """What is to be different about a page; None: it stays as it is."""

    url: str
    importance: float | None = None
    paused: bool | None = None


@dataclass(frozen=True, slots=True)
class PageFacts:
    """A page as it is listed; times in seconds since 1970, the change rate per day."""

    url: str
    importance: float
    fetched_at: float | None  # None: there is no copy yet
    change_rate: float
    fresh: float  # the probability that the copy is fresh
    paused: bool


class PageList:
    """The pages of a crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler, self._engine = crawler, crawler.engine

    async def add(self, pages: Sequence[NewPage]) -> int:
        """Add pages; how many are new."""
        urls = canonical_pages(pages)
        n = len({url for url, known in zip(urls, self._engine.addresses.known(urls), strict=True) if known < 0})
        if urls:
            await self._crawler.apply([add_command(urls, [page.importance for page in pages])])
        return n

    async def update(self, changes: Sequence[PageChange]) -> int:
        """Change pages; how many of them there are."""
        urls, commands = update_commands(changes)
        known = self._engine.addresses.known(urls)
        for row in np.flatnonzero(known < 0).tolist():
            raise RowError(row, "url", f"{urls[row]} is not among the pages")
        if commands:
            await self._crawler.apply(commands)
        return len(set(urls))

    async def remove(self, urls: Sequence[str]) -> int:
        """Remove pages; how many of them there were."""
        names = list(dict.fromkeys(canonical_urls(urls)))
        n = int((self._engine.addresses.known(names) >= 0).sum())
        if names:
            await self._crawler.apply([remove_command(names)])
        return n

    async def requested(self, urls: Sequence[str]) -> tuple[int, int]:
        """Count requests of readers; how many, and how many were for URLs that are no pages."""
        known = self._engine.addresses.known(canonical_urls(urls))
        ids = known[known >= 0]
        if len(ids):
            self._engine.request(ids, self._crawler.now())
            await self._crawler.components.store.save(rows=self._engine.rows(np.unique(ids)))
        return len(ids), len(known) - len(ids)

    def read(self, cursor: str | None, n: int) -> tuple[list[PageFacts], str | None]:
        """Pages after a cursor, and the next cursor."""
        if not 1 <= n <= MOST_LISTED:
            raise ParameterError(f"n is {n}: must lie between 1 and {MOST_LISTED}")
        engine, now = self._engine, self._crawler.now()
        ids = engine.ids()
        first = 0 if cursor is None else int(np.searchsorted(ids, self._after(cursor), side="right"))
        some = ids[first : first + n]
        if len(some) == 0:
            return [], None
        facts = facts_of(engine, some, now)
        return facts, _cursor(int(some[-1]), facts[-1].url) if first + n < len(ids) else None

    def _after(self, cursor: str) -> int:
        """The page behind a cursor; ids are others after a restart, URLs are not."""
        try:
            number, _, url = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
            page = int(number)
        except (ValueError, binascii.Error):
            raise ParameterError("cursor: is not one that a list of pages gave") from None
        known = int(self._engine.addresses.known([url])[0])
        return page if known < 0 else known


def facts_of(engine: Engine, ids: NDArray[np.int64], now: float) -> list[PageFacts]:
    """Pages as they are listed."""
    believed, fetched = engine.pages(ids), np.where(engine.has_copy(ids), engine.rows(ids)["fetched_at"], np.nan)
    rate, fresh = believed.change_rate * engine.settings.day, engine.fresh(ids, now)
    columns = zip(
        engine.url(ids),
        believed.importance.tolist(),
        [None if math.isnan(at) else at for at in fetched.tolist()],
        rate.tolist(),
        fresh.tolist(),
        is_paused(engine, ids).tolist(),
        strict=True,
    )
    return [PageFacts(*row) for row in columns]


def update_commands(changes: Sequence[PageChange]) -> tuple[list[str], list[dict[str, Any]]]:
    """The URLs of changes in canonical form, and the commands that make the changes."""
    urls = canonical_urls([change.url for change in changes])
    for row, change in enumerate(changes):
        if change.importance is not None:
            _check_importance(row, change.importance)
    given = list(zip(urls, changes, strict=True))
    commands = []
    for importance in dict.fromkeys(change.importance for _, change in given if change.importance is not None):
        same = [url for url, change in given if change.importance == importance]
        commands.append(set_command(same, importance))
    for paused in (True, False):
        same = [url for url, change in given if change.paused is paused]
        if same:
            commands.append(pause_command(same, paused=paused))
    return urls, commands


def canonical_pages(pages: Sequence[NewPage]) -> list[str]:
    """The URLs of pages to add, or ParameterError that names the first that cannot be added."""
    urls = canonical_urls([page.url for page in pages])
    for row, page in enumerate(pages):
        _check_importance(row, page.importance)
    return urls


def _cursor(page: int, url: str) -> str:
    return base64.urlsafe_b64encode(f"{page} {url}".encode()).decode()


def canonical_urls(given: Sequence[str]) -> list[str]:
    """URLs in canonical form, or ParameterError that names the first that is none."""
    if len(given) > MOST_PAGES:
        raise ParameterError(f"there are {len(given)} pages: at most {MOST_PAGES} are taken at once")
    found = []
    for row, url in enumerate(given):
        try:
            found.append(canonical(url))
        except ParameterError as problem:
            raise RowError(row, "url", str(problem)) from None
    return found


def _check_importance(row: int, importance: float) -> None:
    if not 0 <= importance < math.inf:
        raise RowError(row, "importance", f"is {importance}: must be finite and at least 0")
