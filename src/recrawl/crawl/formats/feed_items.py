"""The items of a feed: RSS and Atom, from whoever sends them. Nothing is loaded; what declares entities is no feed."""

from __future__ import annotations

from typing import NamedTuple

import xxhash
from lxml import etree

from recrawl.crawl.formats.dates import Moment, moment
from recrawl.crawl.formats.xml_guard import pull_parser

MOST = 500  # items of one feed
_LONGEST = 100_000  # characters of a field
_DEEPEST = 100
_ELEMENTS = 200_000
_PIECE = 1 << 16
_ROOTS = ("rss", "feed", "RDF")
_IDS = ("guid", "id")
_TEXTS = ("title", "description", "summary", "content", "encoded")
_DATES = ("published", "pubDate", "date", "updated")  # when an item was published: the first that is there
_UPDATES = ("updated", "modified", "date", "pubDate", "published")  # when it last changed
_FIELDS = frozenset((*_IDS, *_TEXTS, *_DATES, *_UPDATES, "link"))
_LONGEST_LINK = 4096  # characters


class Item(NamedTuple):
    """One item of a feed. ``link`` is the page that it is about, as the feed writes it: it may be relative."""

    id: int  # 48 bits of what names it
    text: str
    published: float | None  # seconds since 1970
    link: str = ""
    updated: Moment | None = None  # the date of its last change, else of its publication


def read_feed(data: bytes) -> list[Item] | None:
    """The readable items of a feed, in order; None if the document is no feed.

    >>> [item.text for item in read_feed(b"<rss><channel><item><title>one</title></item></channel></rss>")]
    ['one']
    """
    reader = _Reader()
    parser = pull_parser(reader)
    data = data.lstrip(b" \t\r\n")
    if b"<!ENTITY" in data[:_PIECE] and b"<!ENTITY" in data.partition(b"]>")[0]:
        return None
    try:
        for start in range(0, len(data), _PIECE):
            parser.feed(data[start : start + _PIECE])
        parser.close()
    except (etree.XMLSyntaxError, _Enough):
        pass
    return reader.items if reader.is_feed else None


class _Enough(Exception):
    """No feed, or more of it than is read."""


class _Reader:
    """Takes in the parser's events and keeps the item that is being read."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.is_feed = False
        self._depth = self._count = self._item_depth = 0
        self._field: str | None = None
        self._texts: dict[str, str] = {}

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self._depth += 1
        self._count += 1
        name = tag.rpartition("}")[2]
        if self._depth == 1:
            self.is_feed = name in _ROOTS
        if not self.is_feed or self._depth > _DEEPEST or self._count > _ELEMENTS:
            raise _Enough
        if name in ("item", "entry") and not self._item_depth:
            self._item_depth, self._texts = self._depth, {}
            about = next((value for key, value in attributes.items() if key.endswith("about")), "")
            self._texts["about"] = about[:_LONGEST]
        elif self._item_depth and self._depth == self._item_depth + 1 and name in _FIELDS:
            self._field = name
            if name == "link":
                self._texts.setdefault("href", attributes.get("href", "")[:_LONGEST])
                if attributes.get("rel", "alternate") == "alternate":
                    self._texts.setdefault("page", attributes.get("href", "")[:_LONGEST])
            elif name == "guid" and attributes.get("isPermaLink", "true") == "true":
                self._texts["permanent"] = "yes"

    def data(self, text: str) -> None:
        """Text within an element, and within those inside it."""
        if self._field is not None:
            before = self._texts.get(self._field, "")
            self._texts[self._field] = before + text[: _LONGEST - len(before)]

    def end(self, tag: str) -> None:
        """An element ends."""
        if self._item_depth and self._depth == self._item_depth:
            self._item_depth = 0
            self._keep()
        if self._depth <= self._item_depth + 1:
            self._field = None
        self._depth -= 1

    def close(self) -> None:
        """The document ends."""

    def _keep(self) -> None:
        texts = {name: text.strip() for name, text in self._texts.items()}
        name = next((texts[key] for key in ("guid", "id", "about", "link", "href", "title") if texts.get(key)), "")
        text = "\n".join(texts[key] for key in _TEXTS if texts.get(key))
        date = next((texts[key] for key in _DATES if texts.get(key)), "")
        number = xxhash.xxh3_64_intdigest((name or text).encode("utf-8", "replace")) >> 16
        updated = next((texts[key] for key in _UPDATES if texts.get(key)), "")
        self.items.append(Item(number, text, published(date), _link(texts), moment(updated)))
        if len(self.items) >= MOST:
            raise _Enough


def _link(texts: dict[str, str]) -> str:
    """The page that an item is about: its link, else an id that is a URL."""
    guid = texts.get("guid", "") if texts.get("permanent") else ""
    named = (guid, texts.get("about", ""), texts.get("id", ""))
    urls = (one for one in named if one.startswith(("http://", "https://")))
    link = texts.get("page") or texts.get("link") or next(urls, "")
    return link if len(link) <= _LONGEST_LINK else ""


def published(text: str) -> float | None:
    """Seconds since 1970 of a date as feeds write it.

    >>> published("Thu, 01 Jan 1970 00:01:00 GMT"), published("1970-01-01T00:01:00Z"), published("soon")
    (60.0, 60.0, None)
    """
    found = moment(text)
    return None if found is None else found.at
