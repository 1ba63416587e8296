"""Which kind of content was fetched: by its type, and where that says little by its first bytes."""

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
    said = fetched.headers.get("content-type", "").partition(";")[0].strip().lower()
    if said == "application/json" or said.endswith("+json"):
        return "json"
    head = fetched.body[:2048].removeprefix(_BOM)
    if said in _FEEDS or ((said in _XML or said in _HTML) and _FEED_ROOT.match(head)):
        return "feed"
    if said in _HTML:
        return "html"
    if said == "text/plain":
        return "text"
    if not said:
        return _sniffed(head.lstrip())
    return "other"


def _sniffed(head: bytes) -> str:
    if head[:15].lower().startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return "html"
    return "json" if head.startswith((b"{", b"[")) else "other"
