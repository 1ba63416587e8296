"""Detectors without options: what of a page counts, by one view of it each."""

from __future__ import annotations

import re
from typing import Any

import xxhash

from recrawl.crawl.detect.main_text import main_text
from recrawl.crawl.detect.select import (
    TooComplex,
    canonical_json,
    check_pointer,
    check_selector,
    parsed,
    pointed,
    selected_text,
)
from recrawl.crawl.detect.visible import visible_text
from recrawl.crawl.detect.volatile import without_volatile
from recrawl.crawl.formats.content_kind import kind_of
from recrawl.crawl.formats.feed_items import read_feed
from recrawl.crawl.http.fetched import Fetched

NOTHING = "nothing"  # instead of a digest: the selected part is missing
_BLANKS = b" \t\r\n\f\v"
_NOISE = (
    "request_id|requestid|trace_id|traceid|nonce|csrf|csrf_?token|session_?id|generated_?at|server_?time|timestamp|now"
)
_JSON_NOISE = re.compile(
    rf"{_NOISE}|took|elapsed|elapsed_ms|duration_ms", re.IGNORECASE
)  # names at the top of a document, or of an object "meta" there
_JSON_ENVELOPES = ("meta", "_meta", "metadata")


class RawBytes:
    """Every byte counts."""

    name = "raw"
    version = "1"

    def content(self, fetched: Fetched) -> bytes | None:
        """The body as it came."""
        return fetched.body

    def digest(self, fetched: Fetched) -> str:
        """The digest of the body as it came."""
        return digest_of(fetched.body)


class VisibleText:
    """The text a reader sees counts; other than HTML counts byte by byte."""

    name = "text"
    version = "1"

    def content(self, fetched: Fetched) -> bytes | None:
        """The visible text."""
        if kind_of(fetched) != "html":
            return fetched.body
        return visible_text(fetched.text()).encode("utf-8", "replace")

    def digest(self, fetched: Fetched) -> str:
        """The digest of the visible text."""
        return digest_of(self.content(fetched))


class MainText:
    """The main text counts, without blanks and volatile parts; JSON by values, feeds by items, otherwise bytes."""

    name = "main"
    version = "1"

    def content(self, fetched: Fetched) -> bytes | None:
        """The main text, in lines; of JSON one form, of a feed a line for each item."""
        return self._content(fetched, blocks=True)

    def _content(self, fetched: Fetched, *, blocks: bool) -> bytes:
        kind = kind_of(fetched)
        if kind == "html":
            return without_volatile(main_text(fetched.utf8(), blocks=blocks))
        if kind == "text":
            return without_volatile(fetched.utf8())
        found = _json(fetched) if kind == "json" else _feed(fetched) if kind == "feed" else None
        return fetched.body if found is None else found

    def digest(self, fetched: Fetched) -> str:
        """The digest of the main text without its blanks."""
        return digest_of(plain_of(self._content(fetched, blocks=False), self.name))


class Selected:
    """The text of the elements that a CSS selector matches counts; of other than HTML, and where no tree is made of a
    page since that could take long, what counts by default.
    """

    name = "css"
    version = "1"

    def __init__(self, select: str) -> None:
        check_selector(select)
        self._select, self._rest = select, MainText()

    def content(self, fetched: Fetched) -> bytes | None:
        """The text of the elements, a line for each; None where there are none."""
        if kind_of(fetched) != "html":
            return self._rest.content(fetched)
        try:
            return selected_text(fetched.text(), self._select)
        except TooComplex:
            return self._rest.content(fetched)

    def digest(self, fetched: Fetched) -> str:
        """The digest of that text."""
        return digest_of(self.content(fetched))


class Pointed:
    """What a JSON pointer (RFC 6901) leads to counts; of what is no JSON, what counts by default."""

    name = "json"
    version = "1"

    def __init__(self, select: str) -> None:
        check_pointer(select)
        self._select, self._rest = select, MainText()

    def content(self, fetched: Fetched) -> bytes | None:
        """The value in one form; None where the pointer leads nowhere."""
        try:
            there, value = pointed(parsed(fetched.text()), self._select)
            return canonical_json(value) if there else None
        except ValueError:
            return self._rest.content(fetched)

    def digest(self, fetched: Fetched) -> str:
        """The digest of that value."""
        return digest_of(self.content(fetched))


Plain = RawBytes | VisibleText | MainText | Selected | Pointed


def digest_of(content: bytes | None) -> str:
    """The digest of content."""
    return NOTHING if content is None else xxhash.xxh3_128_hexdigest(content)


def plain_of(content: bytes | None, name: str) -> bytes | None:
    """Content as it goes into the digest of a detector."""
    return content.translate(None, _BLANKS) if name == "main" and content is not None else content


def _json(fetched: Fetched) -> bytes | None:
    try:
        document = parsed(fetched.text())
        return canonical_json(_without_noise(document))
    except ValueError:
        return None


def _without_noise(document: Any) -> Any:
    if not isinstance(document, dict):
        return document
    rest = {name: value for name, value in document.items() if not _JSON_NOISE.fullmatch(name)}
    for name in _JSON_ENVELOPES:
        if isinstance(rest.get(name), dict):
            rest[name] = {key: value for key, value in rest[name].items() if not _JSON_NOISE.fullmatch(key)}
    return rest


def _feed(fetched: Fetched) -> bytes | None:
    items = read_feed(fetched.body)
    if items is None:
        return None
    texts = [(item.id, plain_of(main_text(item.text.encode("utf-8", "replace")), "main")) for item in items]
    lines = sorted(f"{number:012x} {digest_of(text)}".encode() for number, text in texts)
    return b"\n".join(lines)
