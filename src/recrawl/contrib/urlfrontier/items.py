"""Items: what clients put, checked, and the names of crawls and queues."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

DEFAULT_CRAWL = "DEFAULT"
LONGEST_NAME = 255  # characters of a key or a crawl ID
LONGEST_URL = 8192  # characters
LAST_DATE = 2**63 - 1  # what the file can hold
_NAMES = ("url", "key", "crawlID")  # fields that are stored by themselves
_HOST = re.compile(r"[^:/?&]+")
_UNUSABLE = re.compile(r"[\x00-\x20\x7f]")
_USUAL = re.compile(r"https?://([^:/?&\x00-\x20\x7f]{1,255})[^\x00-\x20\x7f]*")  # URLs with their hosts, as most are
_put = tuple.__new__  # of `Put`; its own constructor takes three times as long


class Put(NamedTuple):
    """A URL that a client put in; ``date`` is None if it was discovered."""

    crawl: str
    key: str
    url: str
    date: int | None
    metadata: bytes  # as a message with nothing else


def crawl_name(given: str) -> str:
    """The name of a crawl; none is the default crawl."""
    return given or DEFAULT_CRAWL


def key_of(url: str) -> str:
    """The key of the queue of a URL without one: its host, or nothing if there is none.

    >>> key_of("http://gac.icann.org?language_id=9")
    'gac.icann.org'
    """
    _, found, rest = url.partition("://")
    host = _HOST.match(rest) if found else None
    return "" if host is None else host.group()


def read_info(info: Any, date: int | None) -> Put | None:
    """A URL with the date that was given for it; None if it cannot be used. Of ``info`` only the metadata are left."""
    url, crawl, key = info.url, info.crawlID or DEFAULT_CRAWL, info.key
    usual = _USUAL.fullmatch(url)
    if usual is None and (not url or _UNUSABLE.search(url)):
        return None
    key = key or (key_of(url) if usual is None else usual[1])
    if not key or len(key) > LONGEST_NAME or len(crawl) > LONGEST_NAME or len(url) > LONGEST_URL:
        return None
    metadata = b""
    if info.metadata:
        for name in _NAMES:
            info.ClearField(name)
        metadata = info.SerializeToString()
    return _put(Put, (crawl, key, url, None if date is None else min(date, LAST_DATE), metadata))


def read_item(item: Any) -> tuple[str, Put | None]:
    """What an item of a stream is acknowledged by, its own ID or its URL; and the item, None if it cannot be used."""
    kind, name = item.WhichOneof("item"), item.ID
    if kind is None:
        return name, None
    one = item.known if kind == "known" else item.discovered
    info = one.info
    name = name or info.url
    return name, read_info(info, one.refetchable_from_date if kind == "known" else None)
