"""Sitemaps read piece by piece: XML (also in a gzip file) and plain text, from whoever sends them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from lxml import etree

from recrawl.crawl.formats.dates import instant, moment
from recrawl.crawl.formats.xml_guard import DeclaresEntities, EntityGuard, pull_parser

__all__ = ["ENTRIES", "LARGEST", "Entry", "SitemapParser", "instant", "read_sitemap"]

LARGEST = 50 << 20  # bytes, unpacked: the protocol's own limit
ENTRIES = 50_000  # of one file: the protocol's own limit
_LONGEST = 4096  # characters of a URL
_DEEPEST = 20  # elements within each other
_MOST = 40 * ENTRIES  # elements of a file, and lines
_PIECE = 1 << 16  # bytes parsed at a time
_HEAD = 256  # bytes that show which form a file has
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_GZIP = b"\x1f\x8b"
_DATES = {"lastmod": 1, "publication_date": 2}  # elements with a date, and how deep they lie in an entry


class Entry(NamedTuple):
    """One line of a sitemap: a page, or in an index another sitemap. Times are seconds since the epoch.

    ``lastmod`` is the earliest time that the date means and ``latest`` the last one: a date alone means any time of
    that day. Pages of a news sitemap without ``lastmod`` have their date of publication.
    """

    url: str
    lastmod: float | None
    is_index: bool
    latest: float | None = None


def read_sitemap(data: bytes | Iterable[bytes], parser: SitemapParser | None = None) -> Iterator[Entry]:
    """The entries of a sitemap, given as a whole or in pieces; reading stops at the first error, after those before it.

    >>> [entry.url for entry in read_sitemap(b"https://example.org/a\\nhttps://example.org/b\\n")]
    ['https://example.org/a', 'https://example.org/b']
    """
    parser = parser or SitemapParser()
    for piece in _pieces(data) if isinstance(data, bytes) else data:
        yield from parser.feed(piece)
        if parser.ended:
            return
    yield from parser.close()


def _pieces(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _PIECE):
        yield data[start : start + _PIECE]


class _Form(Protocol):
    """A form of sitemap, read piece by piece; `_NoSitemap` ends it."""

    def feed(self, piece: bytes) -> list[Entry]: ...
    def close(self) -> list[Entry]: ...


class _NoSitemap(Exception):
    """What no sitemap has, after these entries."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        super().__init__()
        self.entries = list(entries)


class SitemapParser:
    """Takes a sitemap in pieces and gives its entries; never raises.

    ``ended``: nothing more is read. ``is_whole``: after the end, whether all of the file was read without an error.
    """

    def __init__(self) -> None:
        self.ended = False
        self.is_whole = True
        self._head = b""
        self._unzip: Any = None  # unpacks a gzip file
        self._form: _Form | None = None
        self._n_bytes = self._n_entries = 0

    def feed(self, piece: bytes) -> list[Entry]:
        """The entries that end in the next piece."""
        found: list[Entry] = []
        if self._form is None and self._unzip is None:
            self._head += piece
            if len(self._head) < _HEAD:
                return found
            piece, self._head = self._head, b""
            self._unzip = zlib.decompressobj(31) if piece.startswith(_GZIP) else None
        try:
            for part in self._plain(piece):
                found += self._parse(part)
        except _NoSitemap as end:
            found += self._counted(end.entries)
            self.ended, self.is_whole = True, False
        return found

    def close(self) -> list[Entry]:
        """The entries that end with the file."""
        found: list[Entry] = []
        if self._form is None and self._unzip is None and self._head:
            found = self.feed(b"\n" * (_HEAD - len(self._head)) if not self._head.startswith(_GZIP) else bytes(_HEAD))
        try:
            if not self.ended and self._form is not None:
                found += self._counted(self._form.close())
        except _NoSitemap as end:
            found += self._counted(end.entries)
            self.is_whole = False
        if self._unzip is not None and not self._unzip.eof:
            self.is_whole = False
        self.ended = True
        return found

    def _plain(self, piece: bytes) -> Iterator[bytes]:
        """The unpacked bytes of a piece, at most LARGEST of a file."""
        if self._unzip is None:
            yield self._limited(piece)
            return
        try:
            while piece and not self._unzip.eof:
                part = self._unzip.decompress(piece, _PIECE)
                piece = self._unzip.unconsumed_tail
                if not part and not piece:
                    return
                yield self._limited(part)
        except zlib.error:
            raise _NoSitemap from None

    def _limited(self, part: bytes) -> bytes:
        if self.ended or self._n_bytes >= LARGEST:
            raise _NoSitemap
        part = part[: LARGEST - self._n_bytes]
        self._n_bytes += len(part)
        return part

    def _parse(self, part: bytes) -> list[Entry]:
        if self._form is None:
            is_xml = part.startswith(_UTF_16) or part[:_HEAD].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
            self._form = _Xml() if is_xml else _Lines()
            part = part.lstrip() if is_xml else part
        return self._counted(self._form.feed(part))

    def _counted(self, entries: list[Entry]) -> list[Entry]:
        entries = entries[: ENTRIES - self._n_entries]
        self._n_entries += len(entries)
        self.ended = self.ended or self._n_entries >= ENTRIES
        return entries


class _Lines:
    """A list of URLs, one per line."""

    def __init__(self) -> None:
        self._rest = b""
        self._n = 0

    def feed(self, piece: bytes) -> list[Entry]:
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = rest[: _LONGEST * 4]  # no URL is longer
        return self._entries(lines)

    def close(self) -> list[Entry]:
        return self._entries([self._rest])

    def _entries(self, lines: list[bytes]) -> list[Entry]:
        self._n += len(lines)
        found = []
        for line in lines:
            text = line[: _LONGEST + 1].decode("utf-8", "replace").lstrip("\ufeff").strip()
            if text.startswith(("http://", "https://")) and len(text) <= _LONGEST:
                found.append(Entry(text, None, False))
        if self._n > _MOST:
            raise _NoSitemap(found)
        return found


class _Xml:
    """An XML sitemap; no tree is built, nothing is loaded, and a document that declares entities is refused."""

    def __init__(self) -> None:
        self._reader, self._guard = _Reader(), EntityGuard()
        self._parser = pull_parser(self._reader)

    def feed(self, piece: bytes) -> list[Entry]:
        try:
            self._guard.check(piece)
            self._parser.feed(piece)
        except (etree.XMLSyntaxError, DeclaresEntities, _NoSitemap):
            raise _NoSitemap(self._reader.taken()) from None
        return self._reader.taken()

    def close(self) -> list[Entry]:
        try:
            self._parser.close()
        except (etree.XMLSyntaxError, _NoSitemap):
            raise _NoSitemap(self._reader.taken()) from None
        return self._reader.taken()


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
        elif self._entry_depth and self._depth == self._entry_depth + (1 if name == "loc" else _DATES.get(name, 0)):
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
            dates = (moment(self._texts[name]) for name in _DATES if name in self._texts)
            date = next((one for one in dates if one is not None), None)
            self._entries.append(Entry(url, None, is_index) if date is None else Entry(url, date[0], is_index, date[1]))
