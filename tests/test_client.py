"""The client of a service: every call, retries, and the example that uses it."""

import asyncio
import subprocess
import sys
from contextlib import aclosing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from recrawl.client import AsyncClient, Client, Outcome
from recrawl.client.events import EventLines
from recrawl.errors import ParameterError, ServiceError
from tests.serving.service import URLS, with_service

EXAMPLE = Path(__file__).parent.parent / "examples" / "own_crawler.py"


@pytest.mark.slow
def test_every_call_plain_and_awaited(tmp_path):
    def plain(url, token):
        with Client(url, token) as client:
            assert client.add(["https://new.example/"]) == 1
            assert client.add({"https://new.example/": 2.0, "https://other.example": 3.0}) == 1
            pages = client.pick(3, lease=60.0, hosts=["new.example", "other.example"])
            assert {page.url for page in pages} == {"https://new.example/", "https://other.example/"}
            outcomes = [Outcome(pages[0].lease, status=200, body=b"\xff<p>hi</p>", etag='"1"')]
            assert client.record(outcomes) == ["recorded"]
            assert client.record(outcomes) == ["repeated"]
            assert client.release([pages[1].lease]) == ["released"]
            client.update("https://new.example/", importance=7.0, paused=True)
            found = {page.url: page for page in client.pages()}
            assert found["https://new.example/"].importance == 7.0
            assert found["https://new.example/"].paused
            assert client.signal([URLS[0]])["accepted"] + client.signal([URLS[0]])["outdated"] >= 0
            assert client.requested([URLS[0]]) == {"counted": 1, "unknown": 0}
            assert "text" in client.why(URLS[0])
            assert client.forecast("2/s")["budget"] == "2/s"
            assert client.set_budget("7/s")["rate"] == client.budget()["rate"] == 7.0
            assert [host["host"] for host in client.hosts(1)] == [host["host"] for host in client.hosts()][:1]
            assert "sources" in client.sources()
            event = next(client.events("start"))
            assert (event.kind, event.url) == ("new", pages[0].url)
            assert client.remove(["https://new.example/"]) == 1
            with pytest.raises(ServiceError, match="422: n") as refused:
                client.pick(0)
            assert refused.value.status == 422

    async def test(one):
        await asyncio.to_thread(plain, one.url, one.tokens["admin"])
        async with AsyncClient(one.url, one.tokens["admin"]) as client:
            picked = await asyncio.gather(*(client.pick(4) for _ in range(4)))
            leases = [page.lease for pages in picked for page in pages]
            assert len(leases) == len(set(leases)) > 0
            assert set(await client.release(leases)) == {"released"}
            assert len([page async for page in client.pages()]) == (await client.status())["pages"]
            assert (await client.set_budget("8/s"))["rate"] == (await client.budget())["rate"] == 8.0
            assert "sources" in await client.sources()
            async with aclosing(client.events("start")) as events:
                event = await anext(events)
            assert event.kind == "new"
            assert event.url.split("/")[2] in {host["host"] for host in await client.hosts()}

    with_service(test, tmp_path)


class Unsure(BaseHTTPRequestHandler):
    """Loses answers: connections end, or it is too busy, before the third request is answered."""

    seen = 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        Unsure.seen += 1
        if Unsure.seen == 1:
            self.close_connection = True
            return
        self.send_response(503 if Unsure.seen == 2 else 200)
        self.send_header("content-length", "0" if Unsure.seen == 2 else "25")
        self.end_headers()
        if Unsure.seen > 2:
            assert b"lease-1" in body
            self.wfile.write(b'{"results": ["recorded"]}')

    def log_message(self, *_):
        """Say nothing."""


class Cut(BaseHTTPRequestHandler):
    """A stream of two events: it is refused, cut off before the first, and within the second."""

    protocol_version = "HTTP/1.1"
    streams = (
        None,
        "id: c0\nretry: 2000\n\n",
        'id: c1\nevent: new\ndata: {"kind": "new", "url": "a"}\n\n:\n\nid: c2\ndata: {"kind": ',
        'id: c2\nevent: gone\ndata: {"kind": "gone",\ndata: "url": "b"}\n\n',
    )
    asked: ClassVar[list] = []

    def do_GET(self):
        text = self.streams[min(len(self.asked), 3)]
        self.asked.append(self.path)
        self.send_response(200 if text else 503)
        self.send_header(*(("transfer-encoding", "chunked") if text else ("content-length", "0")))
        self.end_headers()
        for k in range(0, len(text or ""), 7):
            part = text[k : k + 7].encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.close_connection = True

    def log_message(self, *_):
        """Say nothing."""


def two_events(kind, url):
    """The first events of a client of either kind."""

    async def read():
        async with AsyncClient(url, "x") as client, aclosing(client.events()) as events:
            return [await anext(events), await anext(events)]

    if kind == "awaited":
        return asyncio.run(read())
    with Client(url, "x") as client:
        return list(islice(client.events(), 2))


@pytest.mark.parametrize("kind", ["plain", "awaited"])
def test_a_stream_that_is_cut_off_goes_on_where_it_was(monkeypatch, kind):
    for name in ("tries._FIRST_WAIT", "plain.PAUSE", "asynchronous.PAUSE"):
        monkeypatch.setattr(f"recrawl.client.{name}", 0.001)
    monkeypatch.setattr(Cut, "asked", [])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Cut)
    Thread(target=server.serve_forever, daemon=True).start()
    found = two_events(kind, f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    server.server_close()
    assert [(one.cursor, one.kind, one.url) for one in found] == [("c1", "new", "a"), ("c2", "gone", "b")]
    assert Cut.asked == ["/v1/events", "/v1/events", "/v1/events?cursor=c0", "/v1/events?cursor=c1"]


def test_an_event_that_cannot_be_read_is_an_error():
    lines = EventLines(None)
    assert lines.take(b"data: {") is None
    with pytest.raises(ServiceError, match="cannot be read"):
        lines.take(b"\r\n")


def awaited(name, url, *given, **options):
    """A call of the client to be awaited."""

    async def call():
        async with AsyncClient(url, "x", **options) as client:
            return await getattr(client, name)(*given)

    return asyncio.run(call())


def plain(name, url, *given, **options):
    """A call of the plain client."""
    with Client(url, "x", **options) as client:
        return getattr(client, name)(*given)


@pytest.mark.parametrize("call", [plain, awaited])
def test_a_call_is_sent_again_until_it_is_answered(monkeypatch, call):
    monkeypatch.setattr("recrawl.client.tries._FIRST_WAIT", 0.001)
    monkeypatch.setattr(Unsure, "seen", 0)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Unsure)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    assert call("record", url + "/", [Outcome("lease-1", status=200)]) == ["recorded"]
    assert Unsure.seen == 3
    monkeypatch.setattr(Unsure, "seen", 0)
    with pytest.raises(ServiceError):
        call("requested", url, ["https://a.example/"])
    assert Unsure.seen == 1
    server.shutdown()
    server.server_close()
    with pytest.raises(ServiceError, match=r"127\.0\.0\.1"):
        call("status", url, patience=0.0)
    with pytest.raises(ParameterError, match="not the URL of a service"):
        call("status", "crawl.example")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\n{"a"\r\n4;x=y\r\n: 1}\r\n0\r\n\r\n', None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]", "not a JSON object"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{}", "IncompleteRead"),
        (b"HTTP/1.1 200 OK\r\n\r\n{}", "without a length"),
        (b"SMTP ready\r\n\r\n", "BadStatusLine"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"a" * 100_000 + b"\r\n\r\n", "LimitOverrun"),
    ],
)
def test_answers_of_any_form(answer, why):
    """The client to be awaited reads answers itself: each is a result or one ServiceError."""

    async def test():
        async def serve(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with (
            server,
            AsyncClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "x", patience=0) as one,
        ):
            if why is None:
                assert await one.status() == {"a": 1}
            else:
                with pytest.raises(ServiceError, match=why):
                    await one.status()

    asyncio.run(test())


@pytest.mark.slow
def test_the_example_crawls(tmp_path):
    class Site(BaseHTTPRequestHandler):
        def do_GET(self):
            status = 404 if self.path == "/3" else 304 if self.headers.get("if-none-match") else 200
            self.send_response(status)
            self.send_header("etag", '"1"')
            self.send_header("content-length", "5" if status == 200 else "0")
            self.end_headers()
            if status == 200:
                self.wfile.write(b"hello")

        def log_message(self, *_):
            """Say nothing."""

    site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    Thread(target=site.serve_forever, daemon=True).start()
    urls = [f"http://127.0.0.1:{site.server_port}/{k}" for k in range(4)]

    async def test(one):
        command = [sys.executable, str(EXAMPLE), one.url, one.tokens["crawl"], "1"]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        found = [outcome async for outcome in one.live.store.observations()]
        assert {(o.url, o.status) for o in found} <= {(url, 404 if url.endswith("3") else 200) for url in urls}
        assert found

    with_service(test, tmp_path, urls)
    site.shutdown()
    site.server_close()


def test_the_example_is_short():
    lines = [line for line in EXAMPLE.read_text().splitlines() if line.strip() and not line.strip().startswith('"""')]
    assert len(lines) <= 20
