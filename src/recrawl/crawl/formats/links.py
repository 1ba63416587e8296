"""Links of an HTML page, in time linear in its length: pages that it names, and feeds that it declares."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.urls import canonical
from recrawl.errors import ParameterError

MOST = 10_000  # links of one page
_LONGEST = 4096  # characters of a link
_PARSED = 16 << 10  # bytes of a tag that are looked at
_TAG = re.compile(rb"<(?:(a|area|link|base)(?=[\s/])|!--)", re.IGNORECASE)
_REST = re.compile(rb"""[^>=]*+(?:=\s*+(?:"[^"]*+"|'[^']*+')?+[^>=]*+)*+>?""")
_ATTRIBUTE = re.compile(rb"""[\s/]([^\s"'<>/=]{1,40}+)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'<>]++))?""")
_FEEDS = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"})


class Links(NamedTuple):
    """Canonical URLs, each once, in the order of the page."""

    pages: list[str]
    feeds: list[str]


def read_links(fetched: Fetched) -> Links:
    """The links of a fetched HTML page; those marked ``nofollow`` and those that are no URLs are left out.

    >>> page = Fetched("https://a.example/x/", "https://a.example/x/", 200, 0.0, 0.0, {}, b'<a href="y#top">y</a>')
    >>> read_links(page).pages
    ['https://a.example/x/y']
    """
    base, pages, feeds = fetched.final_url, dict[str, None](), dict[str, None]()
    for name, attributes in _tags(fetched.utf8()):
        href, rel = attributes.get("href", ""), attributes.get("rel", "").lower().split()
        if not href or len(href) > _LONGEST:
            continue
        if name == "base":
            base = _joined(fetched.final_url, href) or base
        elif (url := _joined(base, href)) is not None:
            if name == "link":
                feeds |= {url: None} if "alternate" in rel and _is_feed(attributes.get("type", "")) else {}
            elif "nofollow" not in rel:
                pages[url] = None
        if len(pages) + len(feeds) >= MOST:
            break
    return Links(list(pages), list(feeds))


def _is_feed(media_type: str) -> bool:
    return media_type.partition(";")[0].strip().lower() in _FEEDS


def _tags(data: bytes) -> Iterator[tuple[str, dict[str, str]]]:
    at = 0
    while found := _TAG.search(data, at):
        if found[1] is None:
            end = data.find(b"-->", found.end() - 2)
            at = end + 3 if end >= 0 else len(data)
            continue
        rest = _REST.match(data, found.end())
        at = rest.end() if rest else found.end()
        text = data[found.end() : min(at, found.end() + _PARSED)]
        yield found[1].decode().lower(), _attributes(text)


def _attributes(text: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in _ATTRIBUTE.findall(text):
        value = value[1:-1] if value[:1] in (b'"', b"'") else value
        found.setdefault(name.decode("ascii", "replace").lower(), unescape(value.decode("utf-8", "replace")).strip())
    return found


def _joined(base: str, href: str) -> str | None:
    try:
        url = urljoin(base, href)
        return canonical(url) if urlsplit(url).scheme in ("http", "https") else None
    except (ParameterError, ValueError):
        return None
