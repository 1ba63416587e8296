"""Reading of a listing: the pages that it names, with their dates, whatever form it has. Nothing is raised."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urljoin

from recrawl.crawl.formats.content_kind import kind_of
from recrawl.crawl.formats.feed_items import read_feed
from recrawl.crawl.formats.links import read_links
from recrawl.crawl.formats.sitemaps import ENTRIES, Entry, SitemapParser, read_sitemap
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.urls import canonical
from recrawl.engine.names.addresses import host_of
from recrawl.errors import ParameterError

SITEMAP, FEED, INDEX_PAGE = "sitemap", "feed", "listing"
KINDS = (SITEMAP, FEED, INDEX_PAGE)
MOST_PARTS = 1000  # of one index
_SITEMAP_ROOT = re.compile(rb"\s*+(?:<[?!][^>]{0,500}+>\s*+)*+<(?:[\w.-]{1,40}:)?(?:urlset|sitemapindex)[\s>]")


class Listed(NamedTuple):
    """A page that a listing names; its date lies from ``at`` to ``latest``, None: it has no date."""

    url: str
    at: float | None = None
    latest: float | None = None


class Reading(NamedTuple):
    """What one answer lists: pages, and in an index of sitemaps its parts. Each URL once, with its latest date."""

    kind: str
    pages: list[Listed]
    parts: list[Listed]
    is_whole: bool = True  # False: an error ended the reading, and there may be more


def read_listing(fetched: Fetched, kind: str | None = None) -> Reading | None:
    """The listing that was fetched; None if it is none. ``kind`` is what it is said to be.

    A plain text is a sitemap only if it is said to be one. An index page lists its links to its own host.

    >>> text = b"https://a.example/1"
    >>> read_listing(Fetched("https://a.example/s.txt", "https://a.example/s.txt", 200, 0.0, 0.0, {}, text), "sitemap")
    Reading(kind='sitemap', pages=[Listed(url='https://a.example/1', at=None, latest=None)], parts=[], is_whole=True)
    """
    found = _kind(fetched, kind)
    if found == SITEMAP:
        return _sitemap(fetched)
    if found == FEED:
        items = read_feed(fetched.body)
        if items is None:
            return None
        dated = ((urljoin_safe(fetched.final_url, item.link), *(item.updated or (None, None))) for item in items)
        return Reading(FEED, _once(dated), [])
    if found == INDEX_PAGE:
        host = host_of(fetched.final_url)
        links = read_links(fetched).pages
        return Reading(INDEX_PAGE, _once((url, None, None) for url in links if host_of(url) == host), [])
    return None


def _kind(fetched: Fetched, kind: str | None) -> str | None:
    if is_sitemap(fetched.body[:2048]):
        return SITEMAP
    content = kind_of(fetched)
    if content == "feed":
        return FEED
    if kind == SITEMAP:
        return SITEMAP if content != "html" else None
    return INDEX_PAGE if content == "html" and kind != FEED else None


def _sitemap(fetched: Fetched) -> Reading | None:
    parser = SitemapParser()
    entries = list(read_sitemap(fetched.body, parser))
    return sitemap_of(entries, is_whole=parser.is_whole) if entries or is_sitemap(fetched.body[:2048]) else None


def is_sitemap(head: bytes) -> bool:
    """Whether a file that begins so is an XML sitemap or an index of sitemaps."""
    return _SITEMAP_ROOT.match(head.removeprefix(b"\xef\xbb\xbf")) is not None


def sitemap_of(entries: Sequence[Entry], *, is_whole: bool) -> Reading:
    """What the entries of a sitemap list."""
    pages = _once((one.url, one.lastmod, one.latest) for one in entries if not one.is_index)
    parts = _once((one.url, one.lastmod, one.latest) for one in entries if one.is_index)
    return Reading(SITEMAP, pages, parts[:MOST_PARTS], is_whole)


def urljoin_safe(base: str, link: str) -> str:
    """A link of a document as a URL; an empty text if it is none."""
    try:
        return urljoin(base, link) if link else ""
    except ValueError:
        return ""


def _once(dated: Iterable[tuple[str, float | None, float | None]]) -> list[Listed]:
    found: dict[str, Listed] = {}
    for one in _canonical(dated):
        before = found.get(one.url)
        if before is None or (one.at is not None and (before.at is None or one.at > before.at)):
            found[one.url] = one
        if len(found) >= ENTRIES:
            break
    return list(found.values())


def _canonical(dated: Iterable[tuple[str, float | None, float | None]]) -> Iterator[Listed]:
    for url, at, latest in dated:
        try:
            yield Listed(canonical(url), at, latest)
        except ParameterError:
            continue
