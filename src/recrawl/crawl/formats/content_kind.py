"""Kind of content: by its media type, and where that is unclear by its first bytes."""

from __future__ import annotations

import re

from recrawl.crawl.http.fetched import Fetched

_HTML = ("text/html", "application/xhtml+xml")
_FEEDS = ("application/rss+xml", "application/atom+xml", "application/rdf+xml")
_XML = ("text/xml", "application/xml", "")
_FEED_ROOT = re.compile(rb"\s*+(?:<[?!][^>]{0,500}+>\s*+)*+<(?:rss|feed|rdf:RDF)[\s>]")
_BOM = b"\xef\xbb\xbf"


def kind_of(fetched: Fetched) -> str:
    """``html``, ``json``, ``feed``, ``text`` or ``other``."""
    media_type = fetched.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "application/json" or media_type.endswith("+json"):
        return "json"
    head = fetched.body[:2048].removeprefix(_BOM)
    if media_type in _FEEDS or ((media_type in _XML or media_type in _HTML) and _FEED_ROOT.match(head)):
        return "feed"
    if media_type in _HTML:
        return "html"
    if media_type == "text/plain":
        return "text"
    if not media_type:
        return _sniffed(head.lstrip())
    return "other"


def _sniffed(head: bytes) -> str:
    if head[:15].lower().startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return "html"
    return "json" if head.startswith((b"{", b"[")) else "other"
