"""Inputs for fuzzing, from a seed: pages of the corpus broken in many ways, robots.txt, bodies in any charset."""

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recrawl.crawl.detect.detector import Detection, detector_for
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.signals.websub.subscriptions import Subscriptions

CORPUS = Path(__file__).parent / "crawl" / "corpus"
DETECTIONS = [
    Detection("raw"),
    Detection("text"),
    Detection("main"),
    Detection("css", "main p, .price, [class*=ad] > li:first-child"),
    Detection("json", "/items/0/price"),
    Detection("main", ignore=(r"[0-9]+ (?:views|left)", r"(?i)price:? *\S+"), similarity=4),
    Detection("raw", ignore=(r"token=\w+",), similarity=3),
]
TYPES = [
    "text/html", "text/html; charset=utf-8", "text/html; charset=shift_jis",
    "text/html;charset=\"gb18030\"", "", "text/plain",
    "application/json", "application/xml", "application/rss+xml", "text/xml; charset=utf-16", "application/atom+xml",
    "application/xhtml+xml", "image/png", "text/html; charset=utf-7", "text/html; charset=zip",
    ";;;", "TEXT/HTML; CHARSET=KOI8-R",
]  # fmt: skip
PIECES = [
    b"<", b">", b"</", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<?xml", b"&", b"&amp;",
    b"&#x110000;", b"&#0;", b"\x00", b"\xff\xfe",
    b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"<script>", b"</script",
    b"<div hidden>", b"<nav>", b"</nav>", b"<main>",
    b"</main>", b"<p class='ad", b"<p style=\"display:none\">", b"<aside", b"<table>", b"</table>",
    b"<template>", b"<svg/>", b"{", b"}",
    b"[" * 50, b"\"", b"\\u", b"\\ud800", b"1e999", b"-0", b"NaN", b"<item>", b"</item>", b"<guid>",
    b"<entry>", b"<rss>", b"<feed>",
    b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"&a;", b"vor 3 Stunden", "منذ 3 ساعات".encode(),
    "3小时前".encode(), b"99 views", b"\n" * 5,
    b"<title>", b"<body>", b"<h1>", b" role=main>", b"<b><p>" * 20, b"<div>" * 60, b"a" * 300,
]  # fmt: skip
LINES = [
    b"User-agent: *", b"User-agent: recrawl", b"user agent: recrawl/1.0 x", b"Disallow: /",
    b"Disallow:", b"Allow: /a*$", b"Disallow: *",
    b"Allow: /%C3%A9", b"Disallow: /\xff", b"Crawl-delay: 1", b"Crawl-delay: -1",
    b"Crawl-delay: nan", b"crawl-delay: 1e400",
    b"Crawl-delay: \xd9\xa3", b"Sitemap: https://a.example/s.xml", b"Sitemap:",
    b"Request-rate: 1/5", b"Request-rate: 1/0 0000-2500",
    b"Visit-time: 0600-0845", b"Visit-time: 9999-0000", b"Host: a.example", b"# note", b":",
    b"Disallow: /" + b"*" * 40 + b"$", b"\x00", b"Disallow: /(",
    b"Disallow: /[a", b"Clean-param: a /b", b"Noindex: /x", b"\xef\xbb\xbfUser-agent: *",
    b"User-agent:", b"Allow: //", b"Disallow: /?*=",
]  # fmt: skip


LISTINGS = [
    b"<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>"
    + b"".join(b"<url><loc>https://a.example/%d</loc><lastmod>2026-01-%02d</lastmod></url>" % (k, k) for k in range(12))
    + b"</urlset>",
    b"<sitemapindex><sitemap><loc>https://a.example/s1.xml.gz</loc><lastmod>2026-01-01T00:00:00+01:00</lastmod>"
    b"</sitemap><sitemap><loc>https://b.example/s2.xml</loc></sitemap></sitemapindex>",
    b"<urlset xmlns:news='n'><url><loc>https://a.example/n</loc><news:news><news:publication_date>2026-01-01T00:00Z"
    b"</news:publication_date></news:news></url></urlset>",
    b"https://a.example/1\nhttps://a.example/2\r\nhttps://a.example/\xc3\xa9\n",
    b"<rss version='2.0'><channel><title>t</title>"
    + b"".join(b"<item><link>https://a.example/%d</link><guid>%d</guid></item>" % (k, k) for k in range(6))
    + b"</channel></rss>",
    b"<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>tag:1</id><link href='/1'/>"
    b"<updated>2026-01-01T00:00:00Z</updated></entry></feed>",
    b"<html><base href='/b/'><a href='1'>1</a><a href=\"https://a.example/2?x=1&amp;y=2\" rel=nofollow>2</a>"
    b"<link rel=alternate type=application/atom+xml href=/feed></html>",
    gzip.compress(b"<urlset><url><loc>https://a.example/z</loc></url></urlset>", mtime=0),
    "<urlset><url><loc>https://a.example/\u00e9</loc></url></urlset>".encode("utf-16"),
]


def pages() -> list[bytes]:
    """The bodies of the corpus."""
    return [path.read_bytes() for path in sorted(CORPUS.iterdir()) if path.name.count(".") == 2]


def broken(rng: random.Random, bodies: list[bytes]) -> bytes:
    """A page broken in a few places."""
    body = bytearray(rng.choice(bodies))
    for _ in range(rng.randint(1, 8)):
        at, way = rng.randrange(len(body) + 1), rng.randrange(7)
        if way == 0:
            body[at:at] = rng.choice(PIECES)
        elif way == 1:
            del body[at : at + rng.randint(1, 40)]
        elif way == 2:
            other = rng.choice(bodies)
            begin = rng.randrange(len(other))
            body[at:at] = other[begin : begin + rng.randint(1, 200)]
        elif way == 3:
            body[at : at + 4] = rng.randbytes(rng.randint(1, 8))
        elif way == 4 and at < len(body):
            body[at] ^= 1 << rng.randrange(8)
        elif way == 5:
            end = min(at + rng.randint(1, 60), len(body))
            body[at:at] = body[at:end] * rng.randint(1, 10)
        else:
            del body[at:]
    return bytes(body)


def fetched(rng: random.Random, body: bytes) -> Fetched:
    """The same as an answer, with a type that need not be right."""
    kind = {"content-type": rng.choice(TYPES)}
    return Fetched(
        "https://a.example/x", "https://a.example/x", 200, 0.0, 0.1, kind if rng.random() < 0.9 else {}, body
    )


def robots_texts(rng: random.Random) -> Iterator[bytes]:
    """robots.txt without end."""
    while True:
        lines = [rng.choice(LINES) for _ in range(rng.randint(0, 12))]
        body = bytearray(rng.choice([b"\n", b"\r\n", b"\r"]).join(lines))
        for _ in range(rng.randint(0, 3)):
            at = rng.randrange(len(body) + 1)
            body[at : at + rng.randint(0, 3)] = rng.randbytes(rng.randint(0, 4))
        yield bytes(body)


def all_detectors():
    """Every detector that is fuzzed."""
    return [detector_for(detection) for detection in DETECTIONS]


# --- what hubs and pings send -----------------------------------------------------------------------------------------

_LINKS = [
    "<https://hub.example/>; rel=hub",
    "<https://a.example/>; rel=self",
    '<x>; rel="hub self"',
    "<",
    ">",
    ";",
    ",",
]
_LINKS += [
    'rel="',
    "rel=hub",
    "<http://[::1>; rel=hub",
    "<\x00>; rel=self",
    '"\\"',
    "<>" * 30,
    ";a" * 200,
    "é",
    "<//h>; rel=hub",
]
_TEXTS = [
    "",
    "subscribe",
    "unsubscribe",
    "denied",
    "https://a.example/",
    "https://ä.example/%ff?",
    "9" * 400,
    "-1",
    "\x00",
]
_TEXTS += [
    "0123456789",
    "a" * 5000,
    "ftp://a",
    "http://[",
    "https://a.example:99999/",
    "//",
    "\ud800",
    "²",
    "a.example",
]
_SIGNATURES = ["", "sha1=", "sha256=" + "0" * 64, "sha512=é", "md5=x", "=" * 300, "sha384=" + "G" * 96, "\x00"]


def link_header(rng: random.Random) -> str:
    """A Link header that need not be one."""
    return ", ".join(rng.choice(_LINKS) for _ in range(rng.randint(0, 6)))


def hub_query(rng: random.Random) -> dict[str, str]:
    """The query of a callback or of a ping."""
    names = ["mode", "topic", "challenge", "lease_seconds", "reason"]
    query = {f"hub.{name}": rng.choice(_TEXTS) for name in names if rng.random() < 0.8}
    return query | {name: rng.choice(_TEXTS) for name in ("url", "key", "keyLocation") if rng.random() < 0.8}


def ping_body(rng: random.Random) -> bytes:
    """The body of a ping, broken in one of two."""
    value: Any = {name: rng.choice(_TEXTS) for name in ("host", "key", "keyLocation") if rng.random() < 0.8}
    value["urlList"] = rng.choice(
        [[rng.choice(_TEXTS) for _ in range(rng.randint(0, 5))], rng.choice(_TEXTS), None, {}]
    )
    data = json.dumps(value).encode()
    return broken(rng, [data]) if rng.random() < 0.5 else data


def signature(rng: random.Random) -> str:
    """A signature that is wrong."""
    return rng.choice(_SIGNATURES)


def subscriptions(rng: random.Random) -> Subscriptions:
    """An empty table."""
    return Subscriptions("https://me.example", rng)


def callback_name(rng: random.Random, table: Subscriptions) -> str:
    """The name of a callback that exists, in one of two if there is any."""
    names = [one.name for one in table]
    return rng.choice(names) if names and rng.random() < 0.5 else rng.choice(_TEXTS)
