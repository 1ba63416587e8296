"""What a delivery says: which items of a feed are news, and whether it holds the whole content of its topic."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple
from urllib.parse import urljoin

import xxhash

from recrawl.crawl.formats.content_kind import kind_of
from recrawl.crawl.formats.feed_items import Item, read_feed
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.urls import canonical
from recrawl.engine.names.addresses import host_of
from recrawl.errors import ParameterError

MOST_TOPICS = 200  # whose items are remembered
MOST_ITEMS = 1000  # of each
_WHOLE = 0.9  # of the items that the feed had lately: hubs may leave out items that they have delivered before


class Said(NamedTuple):
    """A page that an item says has changed, at ``changed_at`` or up to ``resolution`` seconds later."""

    url: str
    changed_at: float | None = None
    resolution: float = 0.0


class ItemMemory:
    """The items that each topic delivered last, so that those that come again are no news."""

    def __init__(self) -> None:
        self._topics: OrderedDict[str, dict[int, int]] = OrderedDict()

    def news(self, topic: str, items: list[Item]) -> list[Said]:
        """The pages of the topic's own host whose items are new or differ; of a first delivery, of all items.

        Of the first delivery the items' dates count. Later, what differs has just changed: the publisher's clock may be
        wrong.
        """
        before, said = self._topics.get(topic), dict[str, Said]()
        for item in items:
            url = _page(topic, item.link)
            if url and (before is None or before.get(item.id) != _fingerprint(item)):
                said.setdefault(url, _said(url, item, dated=before is None))
        return list(said.values())

    def keep(self, topic: str, items: list[Item]) -> None:
        """What a delivery said is stored."""
        if not items:
            return
        known = self._topics.get(topic, {}) | {item.id: _fingerprint(item) for item in items}
        self._topics[topic] = dict(list(known.items())[-MOST_ITEMS:])
        self._topics.move_to_end(topic)
        if len(self._topics) > MOST_TOPICS:
            self._topics.popitem(last=False)


def _said(url: str, item: Item, *, dated: bool) -> Said:
    if item.updated is None or not dated:
        return Said(url)
    return Said(url, item.updated.at, item.updated.until - item.updated.at)


def _fingerprint(item: Item) -> int:
    at = "" if item.updated is None else f"{item.updated.at}"
    return xxhash.xxh3_64_intdigest(f"{at}\n{item.link}\n{item.text}".encode("utf-8", "replace"))


def _page(topic: str, link: str) -> str:
    """The page that an item is about, if it is on the topic's own host; otherwise an empty text."""
    try:
        url = canonical(urljoin(topic, link)) if link else ""
    except (ParameterError, ValueError):
        return ""
    return url if url and host_of(url) == host_of(topic) else ""


def feed_items(fetched: Fetched) -> list[Item]:
    """The items of a delivery; none if it is no feed."""
    return (read_feed(fetched.body) or []) if kind_of(fetched) == "feed" else []


def is_whole(fetched: Fetched, content_type: str | None, length: int) -> bool:
    """Whether a delivery holds the whole content of its topic, whose copy has a content type and so many items.

    Feeds may be delivered without items that were delivered before. Everything else is whole, unless it is of another
    kind than the copy: then it is a notice.
    """
    if not fetched.body.strip():
        return False
    before, now = (_media_type(one) for one in (content_type or "", fetched.headers.get("content-type", "")))
    if kind_of(fetched) == "feed":
        return 0 < _WHOLE * length <= len(feed_items(fetched))
    return bool(now) and before == now


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()
