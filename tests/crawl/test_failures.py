"""Every word of FAILURES, provoked."""

import asyncio
import gzip
import json
import socket
import ssl
import struct
from pathlib import Path
from random import Random

import pytest
from aiohttp import web

from crawl.servers import Names, fetching, sending, serving, speaking
from recrawl.crawl.http.fetched import FAILURES
from recrawl.crawl.http.fetcher import Limits

pytestmark = pytest.mark.slow

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
DOCS = Path(__file__).parents[2] / "docs/reference/failures.md"


def spoken(talk, **limits):
    """Fetch from a server that speaks bytes."""

    async def main():
        async with speaking(talk) as origin, fetching(limits=Limits(**{"total": 5.0, **limits})) as fetcher:
            async with asyncio.timeout(60.0):  # a fetch that no limit ends fails here
                return await fetcher.fetch(origin)

    return asyncio.run(main())


def answered(**response):
    """Fetch from a server that answers."""

    async def answer(request):
        return web.Response(**response)

    async def main():
        async with serving(answer) as origin, fetching(limits=Limits(body=100_000)) as fetcher:
            return await fetcher.fetch(origin)

    return asyncio.run(main())


def fetched(url, **options):
    async def main():
        async with fetching(**options) as fetcher:
            return await fetcher.fetch(url)

    return asyncio.run(main())


async def silence(writer):
    await asyncio.sleep(3600)


async def drip(writer):
    while True:
        writer.write(b"x")
        await asyncio.sleep(0.05)


async def drip_headers(writer):
    for n in range(10_000):
        writer.write(f"X-{n}: y\r\n".encode())
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    "url", ["", "a.example", "ftp://a.example/", "http://", "http://a b/", "http://a.example:99999/"]
)
def test_bad_url(url):
    result = fetched(url)
    assert (result.failure, result.status, result.url) == ("bad-url", 0, url)


def test_dns():
    assert fetched("http://nowhere.example/", resolver=Names()).failure == "dns"
    assert fetched("http://nowhere.example/", resolver=Names(nowhere_example=[[]])).failure == "dns"


def test_connect():
    async def main():
        async with speaking(sending(b"")) as origin:
            pass
        async with fetching() as fetcher:
            return await fetcher.fetch(origin)

    result = asyncio.run(main())
    assert (result.failure, result.status) == ("connect", 0)


def test_tls_with_a_server_that_speaks_none():
    async def main():
        async with speaking(sending(HEAD)) as origin, fetching() as fetcher:
            return await fetcher.fetch(origin.replace("http:", "https:"))

    assert asyncio.run(main()).failure == "tls"


def certificate():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(__file__).parent / "untrusted.pem")
    return context


def secure(context):
    async def answer(request):
        return web.Response(text="secret")

    async def main():
        async with serving(answer, ssl=certificate()) as origin, fetching(ssl_context=context) as fetcher:
            return await fetcher.fetch(origin)

    return asyncio.run(main())


def test_tls_with_a_certificate_that_nobody_signed():
    assert secure(None).failure == "tls"


def test_tls_with_a_certificate_that_is_trusted():
    context = ssl.create_default_context(cafile=Path(__file__).parent / "untrusted.pem")
    assert secure(context).text() == "secret"


@pytest.mark.parametrize(
    "talk",
    [
        sending(b"", then=silence),
        sending(HEAD + b"\r\n", then=drip),
        sending(HEAD, then=drip_headers),
        sending(HEAD + b"Content-Length: 9\r\n\r\nabc", then=silence),
    ],
    ids=["no answer", "body drop by drop", "headers drop by drop", "half a body"],
)
def test_timeout(talk):
    """The time of a whole fetch ends these, and not before: no other limit can, and no server ends by itself."""
    others = {"idle": 1e6, "connect": 1e6, "headers": 1 << 30, "header_count": 10**6}
    result = spoken(talk, total=0.5, **others)
    assert result.failure == "timeout"
    assert result.took > 0.4


def test_idle_ends_a_fetch_before_its_time():
    assert spoken(sending(HEAD + b"\r\n", then=silence), total=30.0, idle=0.3).failure == "timeout"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200",
        HEAD,
        HEAD + b"Content-Length: 9\r\n\r\nabc",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
    ],
    ids=["nothing", "half a line", "half a head", "half a body", "half a chunk"],
)
def test_reset(data):
    result = spoken(sending(data))
    assert (result.failure, result.body) == ("reset", b"")


@pytest.mark.parametrize(
    "talk",
    [
        sending(HEAD + b"Content-Length: 99999999999\r\n\r\n", then=silence),
        sending(HEAD + b"\r\n" + b"x" * 200_000),
        sending(HEAD + b"X: " + b"y" * 200_000 + b"\r\n\r\n"),
        sending(HEAD + b"X: y\r\n" * 300 + b"\r\n"),
        sending(HEAD + b"".join(b"X-%d: %s\r\n" % (n, b"y" * 2000) for n in range(60)) + b"\r\n"),
        sending(HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(bytes(10_000_000))),
    ],
    ids=["announced", "endless", "long header", "many headers", "long headers", "bomb"],
)
def test_too_large(talk):
    result = spoken(talk, body=100_000)
    assert (result.failure, result.body) == ("too-large", b"")


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"\x00\xff" * 100,
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 99 Low\r\n\r\n",
        b"HTTP/1.1 700 High\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        HEAD + b"Content-Length: -5\r\n\r\n",
        HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
        HEAD + b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
        HEAD + b"Content-Encoding: rot13\r\nContent-Length: 5\r\n\r\nhello",
        HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello" * 100)[:-9],
    ],
    ids=[
        "ssh", "noise", "no number", "99", "700", "no colon", "negative length", "two lengths", "bad chunk", "not gzip",
        "unknown coding", "half a gzip",
    ],
)  # fmt: skip
def test_bad_response(data):
    result = spoken(sending(data))
    assert (result.failure, result.body) == ("bad-response", b"")


@pytest.mark.parametrize(
    "location",
    [
        "/",
        "file:///etc/passwd",
        "ftp://a.example/",
        "gopher://a/",
        "http://",
        "javascript:alert(1)",
        "http://u:p@a.example/",
    ],
)
def test_redirects(location):
    result = answered(status=302, headers={"Location": location})
    assert result.failure == "redirects"
    assert len(result.redirects) == 1


def test_a_bad_chunk_after_good_ones_gives_no_page():
    async def then(writer):
        await asyncio.sleep(0.1)
        writer.write(b"zz\r\n")

    result = spoken(sending(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", then=then), total=1.0)
    assert result.failure in ("bad-response", "timeout")  # aiohttp ends the connection and tells nobody
    assert result.body == b""


def test_forbidden_address():
    assert fetched("http://127.0.0.1/", allow_private=False).failure == "forbidden-address"


@pytest.mark.parametrize(
    ("status", "failure", "gone"),
    [
        (400, "http-4xx", False),
        (401, "http-4xx", False),
        (403, "http-4xx", False),
        (404, "http-4xx", True),
        (410, "http-4xx", True),
        (451, "http-4xx", False),
        (429, "busy", False),
        (500, "http-5xx", False),
        (502, "http-5xx", False),
        (503, "busy", False),
    ],
)
def test_statuses(status, failure, gone):
    result = answered(status=status, text="sorry")
    assert (result.status, result.failure, result.gone, result.body) == (status, failure, gone, b"")


def test_a_page_that_is_gone_is_gone_though_its_body_never_ends():
    result = spoken(sending(b"HTTP/1.1 404 Not Found\r\n\r\n", then=drip), total=3600.0)
    assert (result.failure, result.gone) == ("http-4xx", True)


def test_a_reset_is_a_failure_also_where_the_connection_ends_the_body():
    async def then(writer):
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        await asyncio.sleep(0.05)
        writer.transport.abort()

    assert spoken(sending(HEAD + b"\r\n<p>half a p", then=then)).failure == "reset"
    assert spoken(sending(HEAD + b"\r\n<p>a page")).body == b"<p>a page"


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_a_body_may_be_cut_instead(coding):
    packed = gzip.compress(b"x" * 300_000, 0) if coding else b"x" * 300_000
    head = HEAD + (b"Content-Encoding: gzip\r\n" if coding else b"") + b"Content-Length: %d\r\n\r\n" % len(packed)

    async def main():
        limits = Limits(body=100_000, total=5.0, cut=True)
        async with speaking(sending(head + packed)) as origin, fetching(limits=limits) as fetcher:
            return await fetcher.fetch(origin)

    result = asyncio.run(main())
    assert result.failure is None
    assert 99_000 <= len(result.body) <= 100_000
    assert set(result.body) == {ord("x")}


def test_an_endless_body_is_not_taken_beyond_the_limit():
    sent = 0

    async def endless(reader, writer):
        nonlocal sent
        writer.write(HEAD + b"\r\n")
        for _ in range(1000):
            writer.write(bytes(100_000))
            await writer.drain()
            sent += 100_000

    assert spoken(endless, body=1_000_000).failure == "too-large"
    assert sent < 20_000_000  # what the system's buffers hold comes on top


PARTS = [
    b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 404 No\r\n", b"HTTP/1.1 302 Found\r\n", b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/2 200\r\n", b"HTTP/1.1 101 Switching Protocols\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\n", b"\r\n", b"\r\n\r\n", b"Content-Length: 5\r\n", b"Content-Length: 0\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n", b"Content-Encoding: gzip\r\n",
    b"Content-Encoding: br\r\n", b"Content-Encoding: zstd\r\n", b"Location: /\r\n", b"Location: \xff\xfe\r\n",
    b"Location: http://[\r\n", b"Connection: close\r\n", b"Upgrade: websocket\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n",
    b"hello", b"\x00\xff", b"Retry-After: -1\r\n", b"X: \xff\xe4\r\n", b" folded\r\n", b": no name\r\n",
    b"ETag: \xe4\r\n", gzip.compress(b"hello"),
]  # fmt: skip


def test_whatever_a_server_says_is_reported_and_not_raised():
    rng = Random(7)
    said = []

    async def talk(reader, writer):
        writer.write(said[-1])
        await writer.drain()

    async def main():
        words = set()
        async with speaking(talk) as origin, fetching(limits=Limits(total=1.0, body=10_000)) as fetcher:
            for _ in range(400):
                first = PARTS[: rng.choice([3, 10])] if rng.random() < 0.8 else PARTS
                said.append(rng.choice(first) + b"".join(rng.choices(PARTS[8:], k=rng.randint(0, 6))))
                result = await fetcher.fetch(origin, etag='"e"')
                words.add(result.failure)
                json.dumps(dict(result.headers)).encode("utf-8")
                assert result.failure is None or result.failure in FAILURES, said[-1]
                assert result.body == b"" or result.failure is None
        return words

    words = asyncio.run(main())
    assert {None, "bad-response"} <= words
    assert len(words) >= 4


def test_every_limit_is_documented():
    text = DOCS.with_name("fetching.md").read_text()
    for name in Limits.__slots__:
        assert f"| `{name}` |" in text


def test_every_word_is_documented_and_no_other():
    lines = DOCS.read_text().splitlines()
    words = {line.split("`")[1] for line in lines if line.startswith("| `") and line.count("|") == 3}
    assert set(FAILURES) <= words
