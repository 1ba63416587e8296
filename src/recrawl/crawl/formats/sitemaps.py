"""Sitemaps read piece by piece: XML (also in a gzip file) and plain text, from whoever sends them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from itertools import islice
from typing import NamedTuple

from lxml import etree

LARGEST = 50 << 20  # bytes, unpacked: the protocol's own limit
ENTRIES = 50_000  # of one file: the protocol's own limit
_LONGEST = 4096  # characters of a URL
_DEEPEST = 20  # elements within each other
_MOST = 40 * ENTRIES  # elements of a file, and lines
_PIECE = 1 << 16  # bytes parsed at a time
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")


class Entry(NamedTuple):
    """One line of a sitemap: a page, or in an index another sitemap."""

    url: str
    lastmod: float | None  # seconds since the epoch
    is_index: bool


def read_sitemap(data: bytes) -> Iterator[Entry]:
    """The entries of a sitemap; reading stops at the first error, after the entries before it.

    >>> [entry.url for entry in read_sitemap(b"https://example.org/a\\nhttps://example.org/b\\n")]
    ['https://example.org/a', 'https://example.org/b']
    """
    data = _unpacked(data)
    is_xml = data.startswith(_UTF_16) or data[:256].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    yield from islice(_xml(data.lstrip()) if is_xml else _lines(data), ENTRIES)


def _unpacked(data: bytes) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data[:LARGEST]
    try:
        return zlib.decompressobj(31).decompress(data, LARGEST)
    except zlib.error:
        return b""


def _lines(data: bytes) -> Iterator[Entry]:
    for line in islice(BytesIO(data), _MOST):
        text = line[: _LONGEST + 1].decode("utf-8", "replace").lstrip("\ufeff").strip()
        if text.startswith(("http://", "https://")) and len(text) <= _LONGEST:
            yield Entry(text, None, False)


def _xml(data: bytes) -> Iterator[Entry]:
    """The entries of an XML sitemap; no tree is built, no entity is resolved, nothing is loaded."""
    reader = _Reader()
    parser = etree.XMLParser(
        target=reader, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_pis=True
    )
    try:
        for start in range(0, len(data), _PIECE):
            parser.feed(data[start : start + _PIECE])
            yield from reader.taken()
    except (etree.XMLSyntaxError, _NoSitemap):
        yield from reader.taken()


class _NoSitemap(Exception):
    """Elements nested or in numbers as no sitemap has them."""


class _Reader:
    """Takes in the parser's events and keeps the entry that is being read."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._count = self._depth = 0
        self._entry_depth = 0  # of the entry that is open, 0 when none is
        self._field: str | None = None
        self._texts: dict[str, str] = {}

    def taken(self) -> list[Entry]:
        """The entries read since the last call."""
        entries, self._entries = self._entries, []
        return entries

    def start(self, tag: str, attributes: object) -> None:
        """An element begins."""
        self._depth += 1
        self._count += 1
        if self._depth > _DEEPEST or self._count > _MOST:
            raise _NoSitemap
        name = tag.rpartition("}")[2]
        if name in ("url", "sitemap") and not self._entry_depth:
            self._entry_depth, self._texts = self._depth, {}
        elif name in ("loc", "lastmod") and self._depth == self._entry_depth + 1:
            self._field = name

    def data(self, text: str) -> None:
        """Text within an element."""
        if self._field is not None:
            before = self._texts.get(self._field, "")
            self._texts[self._field] = before + text[: _LONGEST + 1 - len(before)]

    def end(self, tag: str) -> None:
        """An element ends."""
        if self._depth == self._entry_depth:
            self._entry_depth = 0
            self._keep(is_index=tag.rpartition("}")[2] == "sitemap")
        self._field = None
        self._depth -= 1

    def close(self) -> None:
        """The document ends."""

    def _keep(self, *, is_index: bool) -> None:
        url = self._texts.get("loc", "").strip()
        if url.startswith(("http://", "https://")) and len(url) <= _LONGEST:
            self._entries.append(Entry(url, instant(self._texts.get("lastmod", "").strip()), is_index))


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
