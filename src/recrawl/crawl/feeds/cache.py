"""Feeds kept in the store between runs, and the crawl rates that follow from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recrawl.crawl.config.rules import Rules
from recrawl.crawl.feeds.polling import PREFIX, Feed, polled, unmodified
from recrawl.crawl.formats.content_kind import kind_of
from recrawl.crawl.formats.feed_items import read_feed
from recrawl.crawl.http.fetched import Fetched

if TYPE_CHECKING:
    from recrawl.engine import Engine

_APPLIED = 1.05  # an interval is given to the engine when it moved by more than this factor


class FeedCache:
    """Feeds by URL; ``shortest`` is the shortest polling interval in seconds, 0 polls no feed for its items."""

    def __init__(self, shortest: float) -> None:
        self._feeds: dict[str, Feed] = {}
        self._applied: dict[str, float | None] = {}
        self.shortest = shortest
        self._pending: set[str] = set()

    def restore(self, notes: Mapping[str, Any], engine: Engine) -> None:
        """Take up the notes of earlier runs; feeds that are no pages of the engine any more are dropped."""
        self._feeds = {name.removeprefix(PREFIX): Feed.of_note(note) for name, note in notes.items()}
        self._applied = {url: feed.interval for url, feed in self._feeds.items()}
        urls = list(self._feeds)
        known = engine.addresses.known(urls).tolist()
        for url in (url for url, page in zip(urls, known, strict=True) if page < 0):
            del self._feeds[url]
            self._pending.add(url)

    def fetched(self, url: str, fetched: Fetched, now: float) -> bool:
        """Take in a successful fetch; whether it was a feed that shares no item with the poll before."""
        before = self._feeds.get(url)
        if fetched.not_modified:
            if before is not None:
                self._keep(url, unmodified(before, now, self.shortest))
            return False
        items = read_feed(fetched.body) if kind_of(fetched) == "feed" else None
        if items is None:
            return False
        after, rolled = polled(before, items, now, self.shortest)
        self._keep(url, after)
        return rolled

    def _keep(self, url: str, feed: Feed) -> None:
        self._feeds[url] = feed
        self._pending.add(url)

    def interval(self, url: str) -> float:
        """The longest interval at which a page is to be polled; infinity if it is no feed."""
        feed = self._feeds.get(url)
        return math.inf if feed is None or feed.interval is None else feed.interval

    def length(self, url: str) -> int:
        """The most items that a feed had lately; 0 if a page is no feed."""
        feed = self._feeds.get(url)
        return 0 if feed is None else feed.length

    def apply(self, engine: Engine, rules: Rules, pages: Sequence[tuple[int, str]]) -> None:
        """Give the engine the intervals that changed."""
        if not self._feeds:
            return
        for page, url in pages:
            if url not in self._feeds:
                continue
            mine, before = self.interval(url), self._applied.get(url) or math.inf
            if mine != before and (math.inf in (mine, before) or max(mine, before) > _APPLIED * min(mine, before)):
                engine.set_floor([page], floor_of(mine, rules.of(url).max_interval))
                self._applied[url] = mine

    def pending_notes(self) -> dict[str, Any]:
        """Notes of what changed since the last call."""
        pending, self._pending = self._pending, set()
        return {PREFIX + url: self._feeds[url].as_note() if url in self._feeds else None for url in pending}


def floor_of(interval: float, max_interval: float | None) -> float:
    """The least crawl rate of a page, by its feed and by its rule."""
    shortest = min(interval, math.inf if max_interval is None else max_interval)
    return 0.0 if shortest == math.inf else 1.0 / shortest


def apply_notes(engine: Engine, rules: Rules, notes: Mapping[str, Any]) -> None:
    """Give an opened engine the intervals of the feeds in the store."""
    feeds = {name.removeprefix(PREFIX): note["interval"] for name, note in notes.items() if note["interval"]}
    urls = list(feeds)
    for url, page in zip(urls, engine.addresses.known(urls).tolist(), strict=True):
        if page >= 0:
            engine.set_floor([page], floor_of(feeds[url], rules.of(url).max_interval))
