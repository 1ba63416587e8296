"""The hostile hosts: what each does, and what must come of it.

``reasons`` are what ``recrawl status`` may name the host with; none where the host is odd but its pages can be read.
"""

import gzip
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import talks as t
from .talks import HEAD, MB, PAGE, answer, coded, drip, flood, headers, moved, say

NOT_FOUND = say(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
TRAP = "127.0.0.2"  # where the crawler must never connect to


@dataclass(frozen=True)
class Case:
    """A host by name; ``scheme`` and ``certificate`` for TLS, ``listens`` how it takes connections."""

    name: str
    talk: Callable[..., Any]
    reasons: frozenset[str] = frozenset()
    robots: Callable[..., Any] = NOT_FOUND
    certificate: str | None = None
    scheme: str = "http"
    listens: str = "well"
    addresses: list[str] = field(default_factory=lambda: ["127.0.0.1"])

    @property
    def host(self):
        return f"{self.name}.test"


def case(name, talk=None, *reasons, **more):
    return Case(name, talk or say(PAGE), frozenset(reasons), **more)


def _deep():
    return answer(body=b"<div>" * 120_000)


def _huge():
    return answer(body=b"<p class=x>word <b>more</b></p>" * 15_000)


SLOW = [
    case("slow-drip-status", drip(b"HTTP/1.1", b"0"), "timeout", "bad-response"),
    case("slow-drip-headers", drip(HEAD, lambda k: b"X-%d: y\r\n" % k), "timeout"),
    case("slow-drip-body", drip(HEAD + b"\r\n"), "timeout"),
    case("slow-drip-chunks", drip(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"), "timeout"),
    case("silent", t.silent, "timeout"),
    case("half-a-body", drip(HEAD + b"Content-Length: 100\r\n\r\nhalf", b""), "timeout"),
    case("continue-slowly", drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "timeout"),
    case("slow-accept", t.silent, "robots.txt: timeout", listens="full"),
    case("refused", t.silent, "connect", "robots.txt: connect", listens="not"),
]

ENDLESS = [
    case("endless-body", flood(HEAD + b"\r\n", b"x" * 65536), "too-large"),
    case(
        "endless-chunks",
        flood(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n"),
        "too-large",
    ),
    case("endless-header-line", flood(HEAD + b"X: ", b"y" * 65536), "too-large"),
    case("endless-headers", flood(HEAD, b"X: y\r\n" * 1000), "too-large"),
    case("endless-status-line", flood(b"HTTP/1.1 200 ", b"O" * 65536), "too-large", "bad-response"),
    case(
        "endless-continue", flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100), "timeout", "bad-response", "too-large"
    ),
    case(
        "endless-trailers",
        flood(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n" * 1000),
        "too-large",
        "timeout",
        "bad-response",
    ),
    case("gone-without-end", flood(b"HTTP/1.1 404 Not Found\r\n\r\n", b"x" * 65536)),
]

PACKED = [
    case("gzip-bomb", coded("gzip", t.gzip_bomb), "too-large"),
    case("brotli-bomb", coded("br", t.brotli_bomb), "too-large"),
    case("zstd-bomb", coded("zstd", t.zstd_bomb), "too-large"),
    case("nested-gzip", coded("gzip, gzip, gzip", lambda: t.gzip_bomb(3)), "too-large"),
    case("many-codings", coded(", ".join(["gzip"] * 50), gzip.compress(b"x")), "bad-response"),
    case("truncated-gzip", coded("gzip", gzip.compress(b"<p>a page</p>" * 100)[:-9]), "bad-response"),
    case("not-gzip", coded("gzip", b"<p>a page</p>"), "bad-response"),
    case("unknown-coding", coded("rot13", b"<p>a page</p>"), "bad-response"),
]

REDIRECTS = [
    case("ten-thousand-redirects", moved(t.next_number), "redirects"),
    case("redirect-loop", moved(lambda path: "/a" if path == "/b" else "/b"), "redirects"),
    case("redirect-to-itself", moved(lambda path: path), "redirects"),
    case("redirect-growing", moved(lambda path: path + "/and-more" * 40), "redirects"),
    case("redirect-too-long", moved(lambda path: "/" + "x" * 20_000), "redirects"),
    case("redirect-private", moved(lambda path: "http://10.0.0.1/"), "forbidden-address"),
    case("redirect-metadata", moved(lambda path: "http://169.254.169.254/latest/meta-data/"), "forbidden-address"),
    case("redirect-loopback", moved(lambda path: f"http://{TRAP}:TRAP/"), "forbidden-address"),
    case("redirect-mapped", moved(lambda path: f"http://[::ffff:{TRAP}]:TRAP/"), "forbidden-address"),
    case("redirect-decimal", moved(lambda path: "http://2130706434:TRAP/"), "forbidden-address"),
    case("redirect-file", moved(lambda path: "file:///etc/passwd"), "redirects"),
    case("redirect-garbage", say(answer("Location: http://[", status="301 Moved", body=b"")), "redirects"),
]

MALFORMED = [
    case("http-0.9", say(b"<p>a page without a head</p>"), "bad-response"),
    case("bad-status-line", say(b"HTTP/1.1 two hundred\r\n\r\n"), "bad-response"),
    case("status-99", say(b"HTTP/1.1 99 Low\r\n\r\n"), "bad-response"),
    case("ssh", say(b"SSH-2.0-OpenSSH_9.6\r\n"), "bad-response"),
    case("noise", say(b"\x00\xff\x80" * 1000), "bad-response"),
    case("bad-header", say(b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\nx"), "bad-response"),
    case("header-without-name", say(b"HTTP/1.1 200 OK\r\n: x\r\n\r\nx"), "bad-response"),
    case("header-flood", headers(20_000, lambda k: b"X-%d: y\r\n" % k), "too-large"),
    case("cookie-flood", headers(5000, lambda k: b"Set-Cookie: c%d=%s\r\n" % (k, b"v" * 200)), "too-large"),
    case("few-long-cookies", headers(50, lambda k: b"Set-Cookie: c%d=%s\r\n" % (k, b"v" * 1000))),
    case("length-too-large", say(answer("Content-Length: 1000")), "reset"),
    case("length-too-small", say(answer("Content-Length: 5")), "bad-response"),
    case("length-negative", say(answer("Content-Length: -5")), "bad-response"),
    case("length-twice", say(answer("Content-Length: 5", "Content-Length: 13")), "bad-response"),
    case("length-huge", say(answer("Content-Length: 999999999999999999")), "too-large"),
    case(
        "length-and-chunks",
        say(answer("Content-Length: 5", "Transfer-Encoding: chunked", body=b"0\r\n\r\n")),
        "bad-response",
    ),
    case("chunk-garbage", say(answer("Transfer-Encoding: chunked", body=b"zz\r\nabc\r\n")), "bad-response"),
    case(
        "chunk-huge", say(answer("Transfer-Encoding: chunked", body=b"FFFFFFFFFFFFFFF\r\nabc")), "bad-response", "reset"
    ),
    case("chunk-negative", say(answer("Transfer-Encoding: chunked", body=b"-5\r\nabc\r\n")), "bad-response"),
    case("no-content-with-body", say(answer(status="204 No Content")), "bad-response"),
    case("not-modified-unasked", say(answer(status="304 Not Modified", body=b"")), "bad-response"),
    case("partial-unasked", say(answer("Content-Range: bytes 0-4/13", status="206 Partial Content")), "bad-response"),
    case("switching-protocols", say(answer("Upgrade: h2c", status="101 Switching Protocols")), "bad-response"),
    case("empty", say(b""), "reset"),
    case("reset", t.reset, "reset"),
    case("reset-at-every-byte", t.ResetAtEveryByte(), "reset"),
]

STATUSES = [
    case("busy-for-ever", say(answer("Retry-After: 99999999999999999999", status="503 Busy")), "busy"),
    case("busy-negative", say(answer("Retry-After: -100", status="503 Busy")), "busy"),
    case("busy-until-9999", say(answer("Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", status="503 Busy")), "busy"),
    case("busy-until-1970", say(answer("Retry-After: Thu, 01 Jan 1970 00:00:00 GMT", status="503 Busy")), "busy"),
    case("too-many-requests", say(answer("Retry-After: soon\xe9", status="429 Too Many")), "busy"),
    case("always-500", say(answer(status="500 Broken")), "http-5xx"),
    case("always-403", say(answer(status="403 Forbidden")), "http-4xx"),
]

TEXTS = [
    case("wrong-charset", say(answer(kind="text/html; charset=utf-8", body="<p>häßlich</p>".encode("latin-1")))),
    case("codec-that-unpacks", say(answer(kind="text/html; charset=zlib_codec", body=gzip.compress(bytes(MB))))),
    case("utf-7", say(answer(kind="text/html; charset=utf-7", body=b"<p>+ADw-script+AD4-</p>"))),
    case("utf-16-without-mark", say(answer(kind="text/html", body="<p>a page".encode("utf-16-le") + b"\xd8"))),
    case("null-bytes", say(answer(body=b"<p>a\x00page\x00</p>" + bytes(100_000)))),
    case("surrogates", say(answer(kind="text/html; charset=utf-8", body=b"<p>\xed\xa0\x80\xf4\x90\x80\x80</p>"))),
    case("deep-nesting", say(_deep)),
    case("huge-dom", say(_huge)),
    case("one-long-tag", say(answer(body=b"<p " + b"a=b " * 150_000))),
    case("open-comments", say(answer(body=b"<!--<" * 100_000))),
    case("entities", say(answer(body=b"&amp;&#x41;&bogus;" * 10_000))),
    case(
        "absurd-dates",
        say(answer("Last-Modified: Mon, 99 Foo 99999 99:99:99 GMT", "Expires: -1", "Date: x", "Age: -9")),
    ),
    case("absurd-caching", say(answer("Cache-Control: max-age=99999999999999999999999", 'ETag: "' + "e" * 5000 + '"'))),
]

ROBOTS = [
    case(
        "robots-10-mb", robots=say(lambda: answer(body=b"User-agent: *\nDisallow: /no\n" * 360_000, kind="text/plain"))
    ),
    case("robots-without-end", robots=flood(HEAD + b"\r\n", b"Disallow: /no\n" * 4000)),
    case("robots-one-line", robots=flood(HEAD + b"\r\n", b"x" * 65536)),
    case("robots-bomb", robots=coded("gzip", t.gzip_bomb)),
    case(
        "robots-many-rules",
        robots=say(
            lambda: answer(body=b"User-agent: *\n" + b"".join(b"Disallow: /d%d/*/x*y$\n" % k for k in range(18_000)))
        ),
    ),
    case("robots-many-stars", robots=say(answer(body=b"User-agent: *\nDisallow: /" + b"*a" * 200 + b"*b\n"))),
    case("robots-redirects", robots=moved(lambda path: path + "x")),
    case(
        "robots-to-private", say(PAGE), "robots.txt: forbidden-address", robots=moved(lambda path: "http://10.0.0.1/")
    ),
    case("robots-drip", say(PAGE), "robots.txt: timeout", robots=drip(HEAD + b"\r\n", b"#")),
    case("robots-silent", say(PAGE), "robots.txt: timeout", robots=t.silent),
    case("robots-busy", say(PAGE), "robots.txt: busy", robots=say(answer("Retry-After: -1", status="503 Busy"))),
    case("robots-500", say(PAGE), "robots.txt: http-5xx", robots=say(answer(status="500 Broken"))),
    case("robots-noise", robots=say(answer(body=bytes(range(256)) * 400))),
    case("robots-long-delay", robots=say(answer(body=b"User-agent: *\nCrawl-delay: 99999999999\n"))),
]

TLS = [
    case("tls-good", scheme="https", certificate="trusted.pem"),
    case("tls-expired", say(PAGE), "tls", "robots.txt: tls", scheme="https", certificate="expired.pem"),
    case("tls-other-host", say(PAGE), "tls", "robots.txt: tls", scheme="https", certificate="other_host.pem"),
    case("tls-self-signed", say(PAGE), "tls", "robots.txt: tls", scheme="https", certificate="../untrusted.pem"),
    case("tls-plain", say(PAGE), "tls", "robots.txt: tls", scheme="https", listens="hastily"),
    case("tls-silent", t.silent, "timeout", "robots.txt: timeout", scheme="https", robots=t.silent, listens="mute"),
]

NAMES = [
    case("name-that-moves", say(PAGE), "forbidden-address", addresses=["127.0.0.1", TRAP]),
    case("name-that-is-private", say(PAGE), "robots.txt: forbidden-address", addresses=[TRAP]),
    case("name-unknown", say(PAGE), "robots.txt: dns", addresses=[]),
]

CASES = [*SLOW, *ENDLESS, *PACKED, *REDIRECTS, *MALFORMED, *STATUSES, *TEXTS, *ROBOTS, *TLS, *NAMES]
