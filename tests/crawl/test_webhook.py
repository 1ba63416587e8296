"""The webhook: signed, in order, again and again until it is taken, whatever the receiver does."""

import asyncio
import json
import random
import socket
import ssl
import struct
from collections import defaultdict
from pathlib import Path

import pytest
from aiohttp import web

from crawl.servers import sending, serving, speaking
from recrawl.crawl.clock import SystemClock
from recrawl.crawl.deliver import subscribers as delivery
from recrawl.crawl.deliver.subscribers import Delivery, NotDelivered
from recrawl.crawl.deliver.webhook import LARGEST, SIGNATURE, TIMESTAMP, Webhook, sign, verify
from recrawl.errors import ParameterError
from recrawl.store import BlockingStore, Event, MemoryStore, Outcome, SqliteStore
from recrawl.store.testing.rows import example_rows

pytestmark = pytest.mark.slow

SECRET = "a secret of some length"
URLS = [f"https://a.example/{k}" for k in range(20)]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(delivery, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(delivery, "LONGEST_WAIT", 0.05)


class Receiver:
    """Keeps what it takes; for each post in turn it does what its script says, and takes everything afterwards."""

    def __init__(self, script=()):
        self.script, self.events, self.posts, self.missed = list(script), [], [], 0
        self._server = None

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/hook"
        return self

    async def __aexit__(self, *_):
        self._server.close()

    async def _connected(self, reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:] if line)
            body = await reader.readexactly(int(headers["Content-Length"]))
            await self._answer(headers, body, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, headers, body, writer):
        assert verify(SECRET, headers[TIMESTAMP], headers[SIGNATURE], body)
        self.posts.append(len(body))
        what = self.script.pop(0) if self.script else "take"
        if what in ("take", "die after", "half answer", "slow answer"):
            self._take(json.loads(body))
        if what == "die after":
            return
        if what == "reset":
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            return
        if what in ("slow", "slow answer"):
            await asyncio.sleep(2.0)
        answers = {
            "take": b"HTTP/1.1 204 No Content\r\n\r\n",
            "half answer": b"HTTP/1.1 200 O",
            "garbage": b"\x00\xff not HTTP\r\n\r\n",
            "elsewhere": b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n",
            "later": b"HTTP/1.1 503 Busy\r\nRetry-After: 86400\r\nContent-Length: 0\r\n\r\n",
            "endless": b"HTTP/1.1 500 Broken\r\n\r\n" + b"x" * 200_000,
        }
        status = f"HTTP/1.1 {what} No\r\nContent-Length: 0\r\n\r\n".encode() if what.isdigit() else b""
        writer.write(answers.get(what, status))
        await writer.drain()

    def _take(self, found):
        self.missed += found["missed"]
        self.events += found["events"]


def store_of(store, n, seed=0):
    """A store with n events, of pages that change in turn."""
    store = BlockingStore(store)
    store.save(rows=example_rows(URLS))
    rng = random.Random(seed)
    for k in range(n):
        outcome = Outcome(rng.choice(URLS), 1.7e9 + k, status=200, digest=f"d{k}", changed=True)
        store.save([outcome])
    return store


def delivered(receiver, store, *, seconds=300.0, timeout=30.0, reported=None):
    """Deliver the events of a store until all were accepted."""

    async def main():
        report = lambda name, **fields: reported is not None and reported.append((name, fields))  # noqa: E731
        async with receiver:
            hook = Webhook(receiver.url, SECRET, timeout=timeout)
            mine = Delivery("webhook", hook, store.store, SystemClock(), report, random.Random(1))
            await mine.resume()
            task = mine.begin()
            async with asyncio.timeout(seconds):
                while mine.subscriber.cursor < (await store.store.event_counts())["last"]:
                    await asyncio.sleep(0.005)
            task.cancel()
            await hook.close()

    asyncio.run(main())


def in_order(events):
    last = defaultdict(int)
    firsts = {}
    for event in events:
        firsts.setdefault(event["id"], event)
    for event in firsts.values():
        if event["number"] <= last[event["url"]]:
            return False
        last[event["url"]] = event["number"]
    return True


FAULTS = ["500", "503", "404", "401", "400", "429", "302", "elsewhere", "later", "reset", "slow", "garbage", "endless"]
DOUBLING = ["die after", "half answer", "slow answer"]


@pytest.mark.parametrize("fault", [*FAULTS, *DOUBLING])
def test_nothing_is_lost_and_the_order_is_kept(fault):
    slow = "slow" in fault  # it answers after the timeout, which must not end what a busy machine does slowly
    script = [fault, "take", fault] if slow else [fault, fault, "take", fault]
    receiver, store = Receiver(script), store_of(MemoryStore(), 150)
    delivered(receiver, store, timeout=1.5 if slow else 30.0)
    ids = [event["id"] for event in receiver.events]
    assert list(dict.fromkeys(ids)) == [event.id for event in store.events(0, 1000)]
    assert in_order(receiver.events)
    assert len(ids) == 150 or fault in DOUBLING
    contents = {(event["id"], json.dumps(event, sort_keys=True)) for event in receiver.events}
    assert len(contents) == 150, "an id has one content"


def test_any_mixture_of_faults(tmp_path):
    rng = random.Random(5)
    kinds = [fault for fault in [*FAULTS, *DOUBLING] if "slow" not in fault]
    receiver = Receiver(rng.choices([*kinds, "take", "take"], k=120))
    store, reported = store_of(SqliteStore(tmp_path / "a.db"), 500), []
    delivered(receiver, store, reported=reported)
    assert list(dict.fromkeys(event["id"] for event in receiver.events)) == [one.id for one in store.events(0, 1000)]
    assert in_order(receiver.events)
    assert receiver.missed == 0
    whys = {fields["why"] for name, fields in reported if name == "not delivered"}
    assert {"answered 500", "answered 503", "the connection ended before the answer"} <= whys
    fields = [str(fields) for _, fields in reported]
    assert not any("127.0.0.1" in text or SECRET in text for text in fields), "nothing secret is said"
    store.close()


def test_a_receiver_that_is_down_gets_everything_when_it_is_up():
    store, reported = store_of(MemoryStore(), 40), []
    receiver = Receiver()

    async def main():
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        hook = Webhook(f"http://127.0.0.1:{port}/", SECRET, timeout=30.0)
        report = lambda name, **fields: reported.append(fields)  # noqa: E731
        mine = Delivery("webhook", hook, store.store, SystemClock(), report)
        await mine.resume()
        task = mine.begin()
        while len(reported) < 5:
            await asyncio.sleep(0.01)
        assert mine.subscriber.cursor == 0
        assert (await store.store.subscribers())[0].failure == "no connection"
        server = await asyncio.start_server(receiver._connected, "127.0.0.1", port)
        while mine.subscriber.cursor < 40:
            await asyncio.sleep(0.01)
        server.close()
        task.cancel()
        await hook.close()

    asyncio.run(asyncio.wait_for(main(), 60.0))
    assert len(receiver.events) == 40
    assert store.subscribers()[0].failures == 0


def test_a_body_that_is_too_large_for_the_receiver_is_halved():
    receiver, store = Receiver(["413"] * 5), store_of(MemoryStore(), 90)
    delivered(receiver, store)
    assert [event["number"] for event in receiver.events] == list(range(1, 91))
    assert receiver.posts[5] < receiver.posts[0] / 20


def test_bodies_are_bounded():
    store = BlockingStore(MemoryStore())
    store.save(rows=example_rows(URLS))
    for k in range(30):
        store.save([Outcome(URLS[k % 20], 1.7e9 + k, status=200, digest=f"d{k}", changed=True, text="é" * 100_000)])
    receiver = Receiver()
    delivered(receiver, store, timeout=30.0)
    assert [event["number"] for event in receiver.events] == list(range(1, 31))
    assert max(receiver.posts) <= LARGEST + 1000
    assert all(event["new_text"] == "é" * 100_000 for event in receiver.events)


def test_a_redirect_is_not_followed_and_tls_is_verified():
    asked = []

    async def answer(request):
        asked.append(request.path)
        return web.Response(text="x")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(__file__).parent / "untrusted.pem")

    async def main():
        async with serving(answer, ssl=context) as origin:
            hook = Webhook(origin, SECRET, timeout=30.0)
            with pytest.raises(NotDelivered, match="no trusted encrypted connection"):
                await hook([Event(1, "a.1", URLS[0], "new", 1.7e9)], 0)
            await hook.close()
        moved = b"HTTP/1.1 308 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
        async with speaking(sending(moved)) as origin:
            hook = Webhook(origin, SECRET, timeout=30.0)
            with pytest.raises(NotDelivered, match="answered 308"):
                await hook([Event(1, "a.1", URLS[0], "new", 1.7e9)], 0)
            await hook.close()

    asyncio.run(main())
    assert asked == []


def test_an_answer_that_never_ends_is_not_read():
    async def then(writer):
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    async def main():
        async with speaking(sending(b"HTTP/1.1 200 OK\r\n\r\n", then=then)) as origin:
            hook = Webhook(origin, SECRET, timeout=30.0)
            assert await hook([Event(1, "a.1", URLS[0], "new", 1.7e9)], 0) == 1
            await hook.close()

    asyncio.run(main())


def test_signatures():
    body = b'{"missed": 0, "events": []}'
    signature = sign(SECRET, "1700000000", body)
    assert verify(SECRET, "1700000000", signature, body, now=1.7e9 + 60)
    assert not verify(SECRET, "1700000000", signature, body + b" ", now=1.7e9)
    assert not verify("another secret, as long", "1700000000", signature, body, now=1.7e9)
    assert not verify(SECRET, "1700000001", signature, body, now=1.7e9)
    assert not verify(SECRET, "1700000000", signature, body, now=1.7e9 + 3600), "an old one, sent again"
    assert not verify(SECRET, "x", sign(SECRET, "x", body), body)


@pytest.mark.parametrize(
    ("url", "secret", "words"),
    [
        ("ftp://a.example/", SECRET, "no http or https URL"),
        ("https://", SECRET, "no http or https URL"),
        ("https://a.example/", "", "has 0 characters"),
        ("https://a.example/", "short", "has 5 characters"),
    ],
)
def test_a_webhook_that_cannot_work_is_refused(url, secret, words):
    with pytest.raises(ParameterError, match=words) as refused:
        Webhook(url, secret)
    assert not secret or f"'{secret}'" not in str(refused.value)
