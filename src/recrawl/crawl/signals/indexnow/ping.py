"""Pings: what an IndexNow request says, or why it is refused.

Nothing here raises for what a client sends: a request that cannot be taken is a `Refusal` with the status to answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from recrawl.crawl.urls import canonical
from recrawl.errors import ParameterError

MOST_URLS = 10_000
LARGEST = 16 << 20  # bytes of a request's body
_KEY = re.compile(r"[A-Za-z0-9-]{8,128}", re.ASCII)
_KEY_FILE = 1024  # bytes of a key file that are looked at


class Ping(NamedTuple):
    """A request in its form: pages of one site that changed, and where its key can be found."""

    site: str  # host, and port where it is not the scheme's
    key: str
    location: str  # the URL of the key file
    urls: tuple[str, ...]  # canonical


class Refusal(NamedTuple):
    """A request that is not taken: the status to answer, and one line that says why."""

    status: int
    reason: str


def read_query(query: Mapping[str, str]) -> Ping | Refusal:
    """The ping of a GET request: one URL.

    >>> read_query({"url": "https://a.example/x", "key": "0123456789"})
    Ping(site='a.example', key='0123456789', location='https://a.example/0123456789.txt', urls=('https://a.example/x',))
    """
    url, key = query.get("url", ""), query.get("key", "")
    if not url or not key:
        return Refusal(400, "url and key are needed")
    return _ping(None, key, query.get("keyLocation") or None, [url])


def read_body(body: bytes) -> Ping | Refusal:
    """The ping of a POST request: a JSON object with host, key, urlList and, where it is elsewhere, keyLocation."""
    try:
        said: Any = json.loads(body)
    except (ValueError, RecursionError):
        return Refusal(400, "the body is no JSON")
    if not isinstance(said, dict):
        return Refusal(400, "the body is no JSON object")
    host, key, location, urls = (said.get(name) for name in ("host", "key", "keyLocation", "urlList"))
    if not isinstance(host, str) or not isinstance(key, str) or not host or not key:
        return Refusal(400, "host and key are needed")
    if location is not None and not isinstance(location, str):
        return Refusal(400, "keyLocation is no text")
    if not isinstance(urls, list) or not urls or not all(isinstance(url, str) for url in urls):
        return Refusal(400, "urlList is no list of URLs")
    if len(urls) > MOST_URLS:
        return Refusal(400, f"urlList has {len(urls)} URLs: at most {MOST_URLS} are allowed")
    return _ping(host, key, location or None, urls)


def _ping(host: str | None, key: str, location: str | None, urls: list[str]) -> Ping | Refusal:
    if not _KEY.fullmatch(key):
        return Refusal(422, "a key has 8 to 128 letters, digits and dashes")
    try:
        found = tuple(dict.fromkeys(canonical(url) for url in urls))
        parts = urlsplit(found[0])
        site = parts.netloc
        at = canonical(location or f"{parts.scheme}://{site}/{key}.txt")
        named = None if host is None else urlsplit(canonical(f"{parts.scheme}://{host.strip()}/")).netloc
    except ParameterError as problem:
        return Refusal(400, str(problem))
    if named not in (None, site, parts.hostname) or any(site_of(url) != site for url in found):
        return Refusal(422, "all URLs must be of the host that is named")
    if site_of(at) != site:
        return Refusal(422, "keyLocation must be on the same host")
    if not all(speaks_for(at, url) for url in found):
        return Refusal(422, "a key file speaks for its own folder alone")
    return Ping(site, key, at, found)


def site_of(url: str) -> str:
    """The host of a canonical URL, with its port where it is not the scheme's."""
    return url.split("/", 3)[2]


def speaks_for(location: str, url: str) -> bool:
    """Whether a key file is in a folder at or above that of a URL of the same site.

    >>> [speaks_for("https://a.example/docs/k.txt", f"https://a.example/{path}") for path in ("docs/x", "docs", "")]
    [True, False, False]
    """
    folder = urlsplit(location).path.rpartition("/")[0] + "/"
    return urlsplit(url).path.startswith(folder)


def holds_key(body: bytes, key: str) -> bool:
    """Whether a key file holds a key, and nothing else."""
    return body[:_KEY_FILE].decode("utf-8-sig", "replace").strip() == key
