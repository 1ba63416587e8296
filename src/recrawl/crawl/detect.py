"""Detectors: what of a page counts, as a digest that changes when it does."""

from __future__ import annotations

from typing import Protocol

import xxhash

from recrawl.crawl.fetched import Fetched
from recrawl.crawl.visible import visible_text
from recrawl.errors import unknown


class Detector(Protocol):
    """Turns what was fetched into a digest; pages with equal digests count as unchanged."""

    name: str
    version: str  # digests of different versions are not comparable

    def digest(self, fetched: Fetched) -> str:
        """The digest of what counts."""
        ...


class RawBytes:
    """Every byte counts."""

    name = "raw"
    version = "1"

    def digest(self, fetched: Fetched) -> str:
        """The digest of the body as it came."""
        return xxhash.xxh3_128_hexdigest(fetched.body)


class VisibleText:
    """The text a reader sees counts; other than HTML counts byte by byte."""

    name = "text"
    version = "1"

    def digest(self, fetched: Fetched) -> str:
        """The digest of the visible text."""
        if not _is_html(fetched):
            return xxhash.xxh3_128_hexdigest(fetched.body)
        return xxhash.xxh3_128_hexdigest(visible_text(fetched.text()).encode("utf-8", "replace"))


def _is_html(fetched: Fetched) -> bool:
    kind = fetched.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind:
        return kind in ("text/html", "application/xhtml+xml")
    head = fetched.body[:512].lstrip().lower()
    return head.startswith((b"<!doctype html", b"<html", b"<head", b"<body"))


_DETECTORS: dict[str, type[RawBytes] | type[VisibleText]] = {"raw": RawBytes, "text": VisibleText}


def detector(name: str) -> Detector:
    """The detector of a name: ``raw`` or ``text``.

    >>> detector("text").name
    'text'
    """
    if name not in _DETECTORS:
        raise unknown("detector", name, list(_DETECTORS))
    return _DETECTORS[name]()
