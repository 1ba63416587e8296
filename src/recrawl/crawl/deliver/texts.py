"""The text of a page that goes with its events."""

from __future__ import annotations

from recrawl.crawl.detect.visible import visible_text
from recrawl.crawl.http.fetched import Fetched

LONGEST = 256 << 10  # bytes of a text; longer ones are left out
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_PLAIN = ("text/", "application/json", "application/xml", "application/ld+json", "application/rss", "application/atom")


def text_of(fetched: Fetched) -> str | None:
    """The visible text of HTML, a line for each block; other text as received.

    None for other content types and for texts over LONGEST.
    """
    kind = fetched.headers.get("content-type", "").partition(";")[0].strip().lower()
    head = fetched.body[:512].lstrip().lower()
    if kind in _HTML or (not kind and head.startswith((b"<!doctype html", b"<html"))):
        text = visible_text(fetched.text(), lines=True)
    elif kind.startswith(_PLAIN):
        text = fetched.text()
    else:
        return None
    text = text.encode("utf-8", "replace").decode()
    return text if len(text.encode()) <= LONGEST else None
