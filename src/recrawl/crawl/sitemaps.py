"""Sitemaps read piece by piece: XML (also in a gzip file) and plain text, from whoever sends them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from typing import NamedTuple

from lxml import etree

LARGEST = 50 << 20  # bytes, unpacked: the protocol's own limit
ENTRIES = 50_000  # of one file: the protocol's own limit
_LONGEST = 4096  # characters of a URL
_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")


class Entry(NamedTuple):
    """One line of a sitemap: a page, or in an index another sitemap."""

    url: str
    lastmod: float | None  # seconds since the epoch
    is_index: bool


def read_sitemap(data: bytes) -> Iterator[Entry]:
    """The entries of a sitemap; what cannot be read ends it, what was read before is kept.

    >>> [entry.url for entry in read_sitemap(b"https://example.org/a\\nhttps://example.org/b\\n")]
    ['https://example.org/a', 'https://example.org/b']
    """
    data = _unpacked(data)
    entries = _xml(data) if data[:256].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") else _lines(data)
    for n, entry in enumerate(entries):
        if n >= ENTRIES:
            return
        yield entry


def _unpacked(data: bytes) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data[:LARGEST]
    try:
        return zlib.decompressobj(31).decompress(data, LARGEST)
    except zlib.error:
        return b""


def _lines(data: bytes) -> Iterator[Entry]:
    for line in BytesIO(data):
        text = line[: _LONGEST + 1].decode("utf-8", "replace").lstrip("\ufeff").strip()
        if text.startswith(("http://", "https://")) and len(text) <= _LONGEST:
            yield Entry(text, None, False)


def _xml(data: bytes) -> Iterator[Entry]:
    events = etree.iterparse(
        BytesIO(data),
        events=("end",),
        tag=("{*}url", "{*}sitemap"),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        for _, element in events:
            entry = _entry(element)
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
            if entry is not None:
                yield entry
    except etree.XMLSyntaxError:
        return


def _entry(element: etree._Element) -> Entry | None:
    url = _text(element, "loc")
    if not url.startswith(("http://", "https://")) or len(url) > _LONGEST:
        return None
    return Entry(url, instant(_text(element, "lastmod")), etree.QName(element).localname == "sitemap")


def _text(element: etree._Element, name: str) -> str:
    return (element.findtext(f"{{*}}{name}") or "").strip()


def instant(text: str) -> float | None:
    """Seconds since the epoch of a W3C date or time; what is left out is the earliest, without a zone it is UTC.

    >>> instant("1970-01-02"), instant("1970-01-01T01:00:10+01:00"), instant("1970"), instant("yesterday")
    (86400.0, 10.0, 0.0, None)
    """
    try:
        if found := _DATE.fullmatch(text):
            year, month, day = (int(part) if part else 1 for part in found.groups())
            at = datetime(year, month, day, tzinfo=UTC)
        else:
            at = datetime.fromisoformat(text)
            at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return (at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
    except (ValueError, OverflowError):
        return None
