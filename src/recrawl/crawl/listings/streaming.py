"""Streaming of listings: a sitemap is parsed while it is read, so that its body is never in memory as a whole."""

from __future__ import annotations

from recrawl.crawl.formats.sitemaps import LARGEST, Entry, SitemapParser
from recrawl.crawl.http.encoding import TooLarge
from recrawl.crawl.listings.reading import SITEMAP, Reading, is_sitemap, sitemap_of

HEAD = 64 << 10  # bytes of a sitemap that are kept, for what its beginning says
_SEEN = 2048  # bytes by which a sitemap is known
_MARKS = b"\xef\xbb\xbf \t\r\n"


class ListingBody:
    """Takes the body of a listing in pieces, in memory as a whole only if it is no sitemap.

    ``limit`` is the largest body of other listings; beyond it, and beyond 50 MB of a sitemap, TooLarge is raised.
    """

    def __init__(self, kind: str, limit: int) -> None:
        self.limit = max(limit, LARGEST)
        self._kind, self._whole_limit = kind, limit
        self.size = 0  # bytes that came
        self._kept = bytearray()
        self._parser: SitemapParser | None = None
        self._entries: list[Entry] = []

    def feed(self, piece: bytes) -> None:
        """The next piece."""
        self.size += len(piece)
        if self._parser is not None:
            self._kept += piece[: max(HEAD - len(self._kept), 0)]
            self._parse(self._parser, piece)
            return
        before = len(self._kept)
        self._kept += piece
        if before < _SEEN <= len(self._kept) and self._is_sitemap():
            self._parser = SitemapParser()
            self._parse(self._parser, bytes(self._kept))
            del self._kept[HEAD:]
        elif len(self._kept) > self._whole_limit:
            raise TooLarge

    def _parse(self, parser: SitemapParser, piece: bytes) -> None:
        if not parser.ended:
            self._entries += parser.feed(piece)

    def _is_sitemap(self) -> bool:
        """Whether the beginning is that of a sitemap; text and packed files only if the listing is said to be one."""
        head = bytes(self._kept[:_SEEN])
        return is_sitemap(head) or (self._kind == SITEMAP and not head.lstrip(_MARKS).startswith(b"<"))

    @property
    def body(self) -> bytes:
        """The body; of a sitemap that was parsed while it came only the beginning."""
        return bytes(self._kept)

    def reading(self) -> Reading | None:
        """What the sitemap lists; None: it was not parsed, and the body is whole."""
        if self._parser is None:
            return None
        if not self._parser.ended:
            self._entries += self._parser.close()
        return sitemap_of(self._entries, is_whole=self._parser.is_whole)
