"""Discovery of hubs: Link headers first, then link elements of HTML and of feeds.

A document names its hubs by ``rel=hub`` and itself by ``rel=self``; both are needed. Nothing here raises for what a
server sends, and nothing is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from recrawl.crawl.formats.content_kind import kind_of
from recrawl.crawl.formats.xml_guard import DeclaresEntities, EntityGuard, pull_parser
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.urls import canonical
from recrawl.engine.names.addresses import host_of
from recrawl.errors import ParameterError
from recrawl.urls import MOST as LONGEST

MOST_HUBS = 5
_HEAD = 256 << 10  # bytes of a document in which links are looked for
_HEADER = 16 << 10  # characters of the Link header that are read
_ELEMENTS = 5000  # of a feed
_PIECE = 1 << 14
_HINT = re.compile(rb"""rel\s{0,9}=\s{0,9}["']?[^"'<>]{0,99}\bhub\b""", re.IGNORECASE)
_TARGET = re.compile(r"<([^<>]*)>")
_PARAMETER = re.compile(r"""\s*;\s*([\w!#$&+.^`|~*-]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*)))?""")


class Links(NamedTuple):
    """What a document says of itself: its own URL and the hubs that distribute it."""

    topic: str
    hubs: tuple[str, ...]


Pair = tuple[str, str]  # relation types, separated by spaces, and target


def discover(fetched: Fetched) -> Links | None:
    """The hubs and the topic of a fetched document; None where it does not name both.

    >>> page = Fetched("https://a.example/", "https://a.example/", 200, 0.0, 0.0,
    ...                {"link": '<https://hub.example/>; rel="hub", </>; rel=self'})
    >>> discover(page)
    Links(topic='https://a.example/', hubs=('https://hub.example/',))
    """
    if fetched.failure is not None or fetched.not_modified:
        return None
    found = _links(header_links(fetched.headers.get("link", "")), fetched.final_url)
    if found is not None:
        return found
    head = fetched.body[:_HEAD]
    if not _HINT.search(head):
        return None
    kind = kind_of(fetched)
    if kind == "feed":
        return _links(_feed_links(head), fetched.final_url)
    if kind == "html":
        base, pairs = _html_links(head)
        return _links(pairs, urljoin(fetched.final_url, base) if _is_web(base) else fetched.final_url)
    return None


def speaks_for(page: str, final_url: str, links: Links, is_page: Callable[[str], bool]) -> bool:
    """Whether a page may name its topic: it is the page itself, or no other page and on the same host.

    Otherwise a page could have a hub of its own choice deliver the content of another.
    """
    topic = canonical(links.topic)
    if topic in (page, final_url):
        return True
    return host_of(topic) in (host_of(page), host_of(final_url)) and not is_page(topic)


def header_links(text: str) -> Iterator[Pair]:
    """The links of Link headers (RFC 8288), joined by commas; what cannot be read is left out.

    >>> list(header_links('<a>; rel="x y"; title="a, <b>", <c>;rel=z'))
    [('x y', 'a'), ('z', 'c')]
    """
    text, at = text[:_HEADER], 0
    while (target := _TARGET.search(text, at)) is not None:
        at, rel = target.end(), None
        while (parameter := _PARAMETER.match(text, at)) is not None:
            at = parameter.end()
            if parameter[1].lower() == "rel" and rel is None:
                rel = parameter[2] if parameter[2] is not None else parameter[3]
        if rel:
            yield rel, target[1]


def _links(pairs: Iterable[Pair], base: str) -> Links | None:
    """The first topic and the hubs, in order, of some links."""
    topic, hubs = "", dict[str, None]()
    for rel, target in pairs:
        kinds = rel.lower().split()
        goal = _absolute(base, target)
        if goal is None:
            continue
        if "self" in kinds and not topic:
            topic = goal
        if "hub" in kinds and (hub := _canonical(goal)) is not None and len(hubs) < MOST_HUBS:
            hubs[hub] = None
    return Links(topic, tuple(hubs)) if topic and hubs else None


def _absolute(base: str, target: str) -> str | None:
    """The URL of a link as its author wrote it, made absolute: hubs compare topics letter by letter."""
    try:
        goal = urljoin(base, target.strip()).partition("#")[0]
    except ValueError:
        return None
    usable = len(goal) <= LONGEST and goal.isprintable() and " " not in goal and _canonical(goal) is not None
    return goal if usable else None


def _canonical(url: str) -> str | None:
    try:
        return canonical(url)
    except ParameterError:
        return None


def _is_web(base: str) -> bool:
    try:
        return urlsplit(base).scheme in ("", "http", "https") and bool(base)
    except ValueError:
        return False


def _html_links(head: bytes) -> tuple[str, list[Pair]]:
    """The base and the links in the head of an HTML document."""
    tree = LexborHTMLParser(head)
    if tree.head is None:
        return "", []
    base = next((one.attributes.get("href") or "" for one in tree.head.css("base")), "")
    links = [(one.attributes.get("rel") or "", one.attributes.get("href") or "") for one in tree.head.css("link")]
    return base, links


def _feed_links(head: bytes) -> list[Pair]:
    """The links of a feed itself, not of its items."""
    reader, guard, head = _FeedLinks(), EntityGuard(), head.lstrip(b" \t\r\n")
    parser = pull_parser(reader)
    try:
        guard.check(head)
        for start in range(0, len(head), _PIECE):
            parser.feed(head[start : start + _PIECE])
        parser.close()
    except DeclaresEntities:
        return []
    except (etree.XMLSyntaxError, _Enough):
        pass
    return reader.links


class _Enough(Exception):
    """More than is read."""


class _FeedLinks:
    """Takes in the parser's events and keeps the links outside items."""

    def __init__(self) -> None:
        self.links: list[Pair] = []
        self._open: list[str] = []
        self._count = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self._count += 1
        name = tag.rpartition("}")[2]
        self._open.append(name)
        if self._count > _ELEMENTS:
            raise _Enough
        if name == "link" and attributes.get("rel") and self._open[:-1] in (["feed"], ["rss", "channel"]):
            self.links.append((attributes["rel"], attributes.get("href", "")))

    def end(self, tag: str) -> None:
        """An element ends."""
        self._open.pop()

    def data(self, text: str) -> None:
        """Text, which is not needed."""

    def close(self) -> None:
        """The document ends."""
