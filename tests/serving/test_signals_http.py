"""POST /v1/signals: every answer, by real requests on loopback."""

import asyncio
import json
import logging
import socket
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace

import pytest

from recrawl.crawl.signals.limits import Limit
from recrawl.crawl.signals.tokens import hash_of
from recrawl.errors import ParameterError, StoreError
from recrawl.serve.problems import MEDIA_TYPE
from recrawl.serve.receive.pings import by_http
from recrawl.serve.server import bound_socket
from recrawl.store import MemoryStore, SqliteStore

from .serving import URLS, with_interface

pytestmark = pytest.mark.slow

COUNTS = {"accepted": 0, "repeated": 0, "outdated": 0, "unknown": 0}


def test_the_pings_of_the_demo_come_by_http():
    async def test(one):
        crawler = SimpleNamespace(components=one)
        async with by_http(crawler, ["shop", "news"]) as send:
            await send("shop", [(URLS[0], one.clock.now()), (URLS[1], one.clock.now())])
        counts = {str(source): counts["accepted"] for source, counts in one.inbox.counts.items()}
        assert counts == {"webhook:shop": 2}

    with_interface(test)


def test_signals_are_counted_by_what_became_of_them():
    async def test(one):
        status, _, found = await one.post([*URLS[:3], URLS[0], "https://never.example/"])
        assert (status, found) == (200, {**COUNTS, "accepted": 3, "repeated": 1, "unknown": 1})
        assert len(await one.store.signals()) == 3
        now = one.clock.now()
        rows = [
            {"url": URLS[4], "changed_at": now - 10.0},
            {"url": URLS[5], "changed_at": "2001-01-31T12:00:00Z"},
            {"url": URLS[0].upper().replace("HTTPS://A.EXAMPLE", "HTTPS://A.example")},
            URLS[6],
        ]
        status, _, found = await one.post({"signals": rows})
        assert (status, found) == (200, {**COUNTS, "accepted": 2, "repeated": 1, "outdated": 1})
        assert (await one.post([]))[::2] == (200, COUNTS)
        assert (await one.store.notes("sources")) == {"sources": ["webhook:cms"]}

    with_interface(test)


def test_a_prefix_stands_for_the_pages_below_it(tmp_path):
    async def test(one):
        status, _, found = await one.post(
            {"signals": [{"prefix": "https://B.example/x/1"}, {"prefix": "https://c.example"}]}
        )
        assert (status, found) == (200, {**COUNTS, "accepted": 11, "unknown": 1})
        assert {signal.url for signal in await one.store.signals()} == {
            u for u in URLS if u.startswith("https://b.example/x/1")
        }
        await one.store.close()

    with_interface(test, SqliteStore(tmp_path / "a.db"))


def test_prefixes_are_bounded(monkeypatch):
    monkeypatch.setattr("recrawl.serve.receive.signals.MOST_SIGNALS", 40)

    async def test(one):
        rows = [{"url": URLS[0]}, {"prefix": "https://a.example/"}, {"prefix": "https://b.example/"}]
        status, _, found = await one.post({"signals": rows})
        assert (status, found["field"], found["row"]) == (422, "prefix", 2)
        assert await one.store.signals() == []

    with_interface(test)


BAD = [
    (b"{", None, None, "not JSON"),
    (b"\xff\xfe", None, None, "not JSON"),
    (b"[" * 100_000, None, None, "not JSON"),
    ({"signals": [], "more": 1}, None, None, "one member"),
    ({"urls": []}, None, None, "one member"),
    ("text", "signals", None, "list"),
    ({"signals": {"url": URLS[0]}}, "signals", None, "list"),
    ([URLS[0], 5], None, 1, "URL"),
    ([URLS[0], None], None, 1, "URL"),
    ([{"changed_at": 5}], None, 0, "either url or prefix"),
    ([{"url": URLS[0], "prefix": URLS[0]}], None, 0, "either url or prefix"),
    ([{"url": URLS[0], "when": 5}], "when", 0, "not one of"),
    ([URLS[0], "ftp://a.example/"], "url", 1, "http"),
    ([URLS[0], ""], "url", 1, "http"),
    ([{"url": 7}], "url", 0, "text"),
    ([{"prefix": "https://"}], "prefix", 0, "host"),
    ([{"url": URLS[0], "changed_at": "soon"}], "changed_at", 0, "2026-01-31"),
    ([{"url": URLS[0], "changed_at": True}], "changed_at", 0, "2026-01-31"),
    ([{"url": URLS[0], "changed_at": -5}], "changed_at", 0, "2026-01-31"),
    ([{"url": URLS[0], "changed_at": 1.7e12}], "changed_at", 0, "2026-01-31"),
    (b'["https://a.example/0", {"url": "https://a.example/1", "changed_at": NaN}]', "changed_at", 1, "2026-01-31"),
]


def test_what_cannot_be_used_is_named_by_field_and_row():
    async def test(one):
        for body, field, row, words in BAD:
            status, headers, found = await one.post(body)
            assert (status, found["status"], headers["content-type"]) == (422, 422, MEDIA_TYPE), body
            assert (found.get("field"), found.get("row")) == (field, row), found
            assert words in found["detail"]
            assert found["title"]
        assert await one.store.signals() == [], "nothing half done"

    with_interface(test)


def test_tokens_are_needed_and_have_scopes():
    async def test(one):
        for given in ("", "wrong", one.token[:-1], one.token + "x", "x" * 10_000, hash_of(one.token)):
            status, headers, found = await one.post([URLS[0]], token=given)
            assert (status, found["status"], headers["www-authenticate"]) == (401, 401, "Bearer")
        status, *_ = await one.post([URLS[0]], authorization=None)
        assert status == 401
        status, *_ = await one.post([URLS[0]], authorization=f"Basic {one.token}")
        assert status == 401
        status, headers, _ = await one.post([URLS[0]], token=one.other)
        assert status == 403
        assert "insufficient_scope" in headers["www-authenticate"]
        status, *_ = await one.post(b"x" * 2_000_000, token="wrong")
        assert status == 401, "who has no token may not send much"
        assert (await one.post([URLS[0]], authorization=f"bearer   {one.token}"))[0] == 200
        one.tokens.set("cms", None)
        assert (await one.post([URLS[1]]))[0] == 401, "a token that was removed"
        assert len(await one.store.signals()) == 1

    with_interface(test)


def test_large_requests_are_refused():
    async def test(one):
        assert (await one.post([URLS[0]] * 10_000))[::2] == (200, {**COUNTS, "accepted": 1, "repeated": 9999})
        assert (await one.post([URLS[0]] * 10_001))[0] == 422
        assert (await one.post(json.dumps([URLS[0]] + ["https://a.example/" + "x" * 3000] * 400).encode()))[0] == 413

        async def pieces():
            for _ in range(40):
                yield b" " * 50_000

        headers = {"authorization": f"Bearer {one.token}"}
        async with one.client.post(one.url + "/v1/signals", data=pieces(), headers=headers) as answer:
            assert answer.status == 413, "without a content-length"
        one.limit(Limit(per_second=1.0))
        status, _, found = await one.post([URLS[0]] * 101)
        assert status == 413
        assert "more than this token may send at once" in found["detail"]

    with_interface(test)


def test_limits_say_when_to_try_again():
    async def test(one):
        one.limit(Limit(per_second=0.5, per_day=1e6))
        assert (await one.post([URLS[0]] * 60 + URLS[1:41]))[0] == 200
        status, headers, found = await one.post(URLS[41:46])
        assert (status, found["status"]) == (429, 429)
        assert 1 <= int(headers["retry-after"]) <= 10
        assert len(await one.store.signals()) == 41, "none of them was taken"

    with_interface(test)


def test_foreign_hosts_and_origins_are_refused():
    async def test(one):
        port = one.url.rpartition(":")[2]
        for host in ("evil.example", "evil.example:8321", "127.0.0.1.evil.example", "xcrawl.example", "[", "a b"):
            assert (await one.post([URLS[0]], host=host))[0] == 421, host
        for host in (
            "127.0.0.1",
            f"127.0.0.1:{port}",
            f"localhost:{port}",
            "[::1]:80",
            "crawl.example",
            "Crawl.example:443",
        ):
            assert (await one.post([URLS[0]], host=host))[0] == 200, host
        for origin in ("https://evil.example", "null", "http://127.0.0.1:1", ""):
            assert (await one.post([URLS[1]], origin=origin))[0] == 403, origin
        for origin in (one.url, "https://crawl.example"):
            assert (await one.post([URLS[0]], origin=origin))[0] == 200, origin
        assert len(await one.store.signals()) == 1

    with_interface(test, public_url="https://crawl.example/hooks")


def test_other_paths_and_methods_are_problems_too():
    async def test(one):
        async with one.client.get(one.url + "/v1/signals") as answer:
            assert (answer.status, answer.headers["allow"]) == (405, "POST")
            assert answer.headers["content-type"] == MEDIA_TYPE
        for path in ("/", "/docs", "/openapi.json", "/v1", "/v1/signals/more"):
            status, headers, found = await one.post([], path=path)
            assert (status, headers["content-type"], found["status"]) == (404, MEDIA_TYPE, 404), path

    with_interface(test)


def test_a_database_that_cannot_be_written_is_said(caplog):
    class Broken(MemoryStore):
        broken = False

        async def save(self, *args, **more):
            if self.broken:
                raise StoreError("the disk is full")
            await super().save(*args, **more)

    async def test(one):
        one.store.broken = True
        status, _, found = await one.post([URLS[0]])
        assert (status, found["status"]) == (503, 503)
        one.store.broken = False
        assert (await one.post([URLS[0]]))[::2] == (200, {**COUNTS, "accepted": 1})

    with caplog.at_level(logging.INFO, "recrawl"):
        with_interface(test, Broken())
    assert [record.message for record in caplog.records] == ["serve.started", "serve.not_stored"]


def test_a_mistake_is_a_problem_and_secrets_are_in_no_log(caplog, monkeypatch):
    async def test(one):
        monkeypatch.setattr(one.inbox, "take", None)
        assert (await one.post([URLS[0] + "?key=hidden"]))[0] == 500
        reader, writer = await asyncio.open_connection("127.0.0.1", int(one.url.rpartition(":")[2]))
        writer.write(b"GET / nonsense\r\n\r\n")
        assert b" 400 " in await reader.readline()
        writer.close()
        return one.token

    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, "recrawl"):
        token = with_interface(test)
    ours = [record for record in caplog.records if record.name.startswith(("recrawl", "uvicorn"))]
    assert [record.message for record in ours] == ["serve.started", "serve.failed"]
    text = caplog.text + str([vars(record) for record in caplog.records])
    assert token not in text
    assert "hidden" not in text


def test_an_address_in_use_is_one_clear_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ParameterError, match=f"listen 127.0.0.1:{port}: .*in use"):
            bound_socket(f"127.0.0.1:{port}")
    with pytest.raises(ParameterError, match="is no IP address"):
        bound_socket("crawl.example:80")
    with pytest.raises(ParameterError, match=r"such as 127\.0\.0\.1:8321"):
        bound_socket("8321")


def test_requests_that_came_are_answered_when_the_server_ends():
    async def test(one):
        posts = [asyncio.ensure_future(one.post([url])) for url in URLS]
        while not one.inbox.counts:
            await asyncio.sleep(0.001)
        await one.server.close()
        found = await asyncio.gather(*posts, return_exceptions=True)
        return [answer for answer in found if not isinstance(answer, BaseException)], await one.store.signals()

    answered, stored = with_interface(test, gather=0.05)
    assert answered
    assert all(status == 200 for status, *_ in answered)
    assert len(stored) >= len(answered)


@asynccontextmanager
async def connected(one):
    reader, writer = await asyncio.open_connection("127.0.0.1", int(one.url.rpartition(":")[2]))
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def test_connections_are_bounded_and_silent_ones_are_closed(monkeypatch):
    monkeypatch.setattr("recrawl.serve.connection.MOST", 3)
    monkeypatch.setattr("recrawl.serve.connection.SILENCE", 0.2)

    async def test(one):
        async with connected(one) as (silent, _), connected(one) as (slow, head), connected(one) as (again, writer):
            head.write(b"POST /v1/signals HTTP/1.1\r\nhost: 127.0.0.1\r\n")
            writer.write(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            assert b" 404 " in await again.readline()
            async with connected(one) as (further, _):
                with suppress(ConnectionError):
                    assert await further.read() == b"", "one more than there may be"
            for reader in (silent, slow):
                assert await reader.read() == b""
            assert b"Not Found" in await again.read(), "also one that has served a request"
        assert (await one.post([URLS[0]]))[0] == 200

    with_interface(test)


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("recrawl.serve.guard.PATIENCE", 0.1)

    async def test(one):
        head = f"POST /v1/signals HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {one.token}\r\n"
        async with connected(one) as (reader, writer):
            writer.write(f"{head}content-length: 100\r\n\r\n[".encode())
            assert b" 408 " in await reader.readline()

    with_interface(test)
