"""Lists of pages: in some order or by a search, a part at a time, with what is known of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recrawl.errors import ParameterError
from recrawl.serve.crawls.view import CrawlView
from recrawl.serve.dashboard.pages.contents import Titles
from recrawl.serve.dashboard.snapshots import Snapshots

ORDERS = {"changed": "last changed", "checked": "last checked", "stale": "stalest, by importance", "added": "newest"}
PART = 50  # pages shown at a time
_COUNTED = 5000  # up to so many pages the list by changes has all of them
_MOST_FOUND = 500


@dataclass(frozen=True)
class Listed:
    """A part of a list: ``total`` pages in all (None: not counted), ``first`` is the number of the first row.

    ``waits``: the order is being computed.
    """

    rows: list[dict[str, Any]]
    total: int | None
    first: int
    more: bool
    waits: bool = False


class PageLists:
    """Lists the pages of a crawl."""

    def __init__(self, crawl: CrawlView, snapshots: Snapshots, titles: Titles) -> None:
        self._crawl, self._snapshots, self._titles = crawl, snapshots, titles

    async def listed(self, order: str, search: str, first: int) -> Listed:
        """The rows from a number on."""
        if order not in ORDERS:
            raise ParameterError(f"order is {order[:40]!r}: must be one of {', '.join(ORDERS)}")
        if search:
            urls = await self._crawl.searched(search.strip().lower(), _MOST_FOUND)
        else:
            ordered = await self._ordered(order)
            if ordered is None:
                return Listed([], None, first, more=False, waits=True)
            urls = ordered
        counted = search or self._crawl.tallies().pages <= _COUNTED or order != "changed"
        part = urls[first : first + PART]
        return Listed(await self.rows(part), len(urls) if counted else None, first, first + PART < len(urls))

    async def _ordered(self, order: str) -> list[str] | None:
        """URLs of pages in an order; None: it is being computed."""
        urls = await self._crawl.ordered(order)
        if urls is not None:
            return urls
        snapshot = self._snapshots.get()
        return None if snapshot is None else [one["url"] for one in snapshot.stalest]

    async def rows(self, urls: Sequence[str]) -> list[dict[str, Any]]:
        """What is known of pages, in their order; those that were removed meanwhile are left out."""
        copies = await self._crawl.copies(urls)
        titles = await self._titles.of([copies[url] for url in urls if url in copies])
        rows = await self._crawl.rows(urls, copies)
        return [{**row._asdict(), "title": titles.get(row.url, "")} for row in rows]
