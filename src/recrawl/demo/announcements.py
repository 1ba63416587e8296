"""What the demo's sites say of their changes: dates in sitemaps, a feed, and pings."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from recrawl.demo.world import DemoWorld, Site

SHARE = 0.8  # of the changes are announced by a site that announces any
FEED_ITEMS = 30  # the newest that a feed holds
_SITEMAP = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_ATOM = 'xmlns="http://www.w3.org/2005/Atom"'


class Announcements:
    """The announced changes of a world, drawn from its seed; times are those of the world.

    A site that stamps dates every page with the hour, whether it changed or not.
    """

    def __init__(self, world: DemoWorld) -> None:
        trace = world.trace
        rng = np.random.default_rng([world.seed, 496])
        kept = rng.random(len(trace.changed_at)) < SHARE
        page = np.repeat(np.arange(len(trace)), trace.n_changes)
        order = np.lexsort((page[kept], trace.changed_at[kept]))
        self._world = world
        self._at, self._page = trace.changed_at[kept][order], page[kept][order]
        self._number = {site.name: number for number, site in enumerate(world.sites)}
        self._site = np.array([self._number[one.site.name] for one in world.pages])[self._page]

    def between(self, site: Site, after: float, until: float) -> list[tuple[int, float]]:
        """The announced changes of a site in (after, until]: pages, with the times of the changes, in their order."""
        rows = self._rows(site, after, until)
        return list(zip(self._page[rows].tolist(), self._at[rows].tolist(), strict=True))

    def tag(self, site: Site, kind: str, now: float) -> str:
        """What is another when the sitemap or feed of a site says something new."""
        if kind == "sitemap" and site.says == "stamps":
            return f'"{math.floor(now)}"'
        return f'"{len(self._rows(site, -math.inf, now)) if site.says == kind else 0}"'

    def dates(self, site: Site, now: float) -> dict[int, float]:
        """The date of each page of a site in its sitemap; none where it gives no dates."""
        pages = [page.number for page in self._world.pages if page.site is site]
        if site.says == "stamps":
            return dict.fromkeys(pages, float(math.floor(now)))
        if site.says != "sitemap":
            return {}
        return dict.fromkeys(pages, 0.0) | dict(self.between(site, -math.inf, now))

    def newest(self, site: Site, now: float) -> dict[int, float]:
        """The items of a site's feed: the pages that were announced last, the newest first."""
        latest = dict(self.between(site, -math.inf, now))
        return dict(sorted(latest.items(), key=lambda item: -item[1])[:FEED_ITEMS])

    def _rows(self, site: Site, after: float, until: float) -> NDArray[np.int64]:
        first, last = np.searchsorted(self._at, [after, until], side="right")
        return np.asarray(first + np.flatnonzero(self._site[first:last] == self._number[site.name]))


def sitemap(urls: list[str], dates: dict[str, float]) -> str:
    """A sitemap of URLs, with the dates of some, in seconds since 1970."""
    rows = "".join(
        f"<url><loc>{escape(url)}</loc>{f'<lastmod>{_written(dates[url])}</lastmod>' if url in dates else ''}</url>"
        for url in urls
    )
    return f'<?xml version="1.0"?><urlset {_SITEMAP}>{rows}</urlset>'


def feed(url: str, items: dict[str, float]) -> str:
    """An Atom feed: items by URL, with the time of their last change."""
    entries = "".join(
        f'<entry><id>{escape(link)}</id><title>{escape(link)}</title><link href="{escape(link)}"/>'
        f"<updated>{_written(at)}</updated></entry>"
        for link, at in items.items()
    )
    updated = _written(max(items.values(), default=0.0))
    head = f"<id>{escape(url)}</id><title>{escape(url)}</title><updated>{updated}</updated>"
    return f'<?xml version="1.0"?><feed {_ATOM}>{head}{entries}</feed>'


def _written(at: float) -> str:
    """An instant in the form of RFC 3339; a second of the demo is an hour, so that fractions count."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")
