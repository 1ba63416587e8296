"""What is known of feeds, kept in the store between runs, and what follows from it for the engine."""

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

_APPLIED = 1.05  # an interval is told to the engine when it moved by more than this factor


class FeedsKept:
    """Feeds by URL; ``shortest`` is the least interval in seconds to which one is hurried, 0 never hurries any."""

    def __init__(self, notes: Mapping[str, Any], shortest: float) -> None:
        self._feeds = {name.removeprefix(PREFIX): Feed.of_note(note) for name, note in notes.items()}
        self._applied = {url: feed.interval for url, feed in self._feeds.items()}
        self._shortest = shortest
        self._news: set[str] = set()

    def fetched(self, url: str, fetched: Fetched, now: float) -> bool:
        """Take in a fetch that succeeded; whether it was a feed in which nothing is left of the poll before."""
        before = self._feeds.get(url)
        if fetched.not_modified:
            if before is not None:
                self._keep(url, unmodified(before, now, self._shortest))
            return False
        items = read_feed(fetched.body) if kind_of(fetched) == "feed" else None
        if items is None:
            return False
        after, rolled = polled(before, items, now, self._shortest)
        self._keep(url, after)
        return rolled

    def _keep(self, url: str, feed: Feed) -> None:
        self._feeds[url] = feed
        self._news.add(url)

    def interval(self, url: str) -> float:
        """The longest interval at which a page is to be polled; infinity for what is no feed."""
        feed = self._feeds.get(url)
        return math.inf if feed is None or feed.interval is None else feed.interval

    def apply(self, engine: Engine, rules: Rules, pages: Sequence[tuple[int, str]]) -> None:
        """Let intervals that moved hold for pages."""
        for page, url in pages:
            if url not in self._feeds:
                continue
            mine, before = self.interval(url), self._applied.get(url) or math.inf
            if mine != before and (math.inf in (mine, before) or max(mine, before) > _APPLIED * min(mine, before)):
                engine.set_floor([page], floor_of(mine, rules.of(url).max_interval))
                self._applied[url] = mine

    def forget(self, urls: Sequence[str]) -> None:
        """Pages that are no more."""
        for url in urls:
            if self._feeds.pop(url, None) is not None:
                self._news.add(url)

    def strangers(self, engine: Engine) -> list[str]:
        """Feeds that are no pages of the engine any more."""
        urls = list(self._feeds)
        return [url for url, page in zip(urls, engine.addresses.known(urls).tolist(), strict=True) if page < 0]

    def news(self) -> dict[str, Any]:
        """Notes of what changed since the last time asked."""
        news, self._news = self._news, set()
        return {PREFIX + url: self._feeds[url].as_note() if url in self._feeds else None for url in news}


def floor_of(interval: float, max_interval: float | None) -> float:
    """The least crawl rate of a page, by its feed and by its rule."""
    shortest = min(interval, math.inf if max_interval is None else max_interval)
    return 0.0 if shortest == math.inf else 1.0 / shortest


def apply_notes(engine: Engine, rules: Rules, notes: Mapping[str, Any]) -> None:
    """Let the intervals of feeds that are kept hold, when an engine is opened."""
    feeds = {name.removeprefix(PREFIX): note["interval"] for name, note in notes.items() if note["interval"]}
    urls = list(feeds)
    for url, page in zip(urls, engine.addresses.known(urls).tolist(), strict=True):
        if page >= 0:
            engine.set_floor([page], floor_of(feeds[url], rules.of(url).max_interval))
