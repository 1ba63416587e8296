"""Limits: full disks, hostile input, streams that do not read, two processes, and the command."""

import asyncio
import sqlite3

import grpc
import grpc.aio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.cli.commands import call
from recrawl.contrib.urlfrontier import FrontierClient, Modes
from recrawl.contrib.urlfrontier.api.streams import ITEMS, Batcher, Stream
from recrawl.contrib.urlfrontier.api.wire import CALLS, FAIL, OK, SERVICE, URLItem
from recrawl.contrib.urlfrontier.items import read_item
from recrawl.contrib.urlfrontier.queue_file import QueueFile
from recrawl.contrib.urlfrontier.running import queue_path
from recrawl.contrib.urlfrontier.testing.bench import discovered, known
from recrawl.errors import ParameterError, StoreError, StoreInUseError
from tests.contrib.urlfrontier.services import served


async def put(client, *items):
    return [ack.status async for ack in client.PutURLs(iter(items))]


@pytest.mark.parametrize("mode", ["strict", "managed"])
def test_a_full_disk_fails_items_and_leaves_the_rest_as_it_was(mode, tmp_path):
    async def test(world, client):
        file = world.service.crawls.frontier.file
        assert await put(client, discovered("http://a.example/first", "c")) == [OK]
        (pages,) = file.db.execute("PRAGMA page_count").fetchone()
        file.db.execute(f"PRAGMA max_page_count = {pages + 2}")
        big = {"large": ["x" * 9000]}
        states = await put(client, *(discovered(f"http://b.example/{k}", "c", metadata=big) for k in range(9)))
        assert FAIL in states
        stored = file.db.execute("SELECT count(*) FROM url").fetchone()[0]
        assert stored == 1 + states.count(OK) == (await client.CountURLs(crawlID="c")).value
        file.db.execute("PRAGMA query_only = ON")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await client.SetDelay(delay_requestable=1)
        assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
        file.db.execute("PRAGMA query_only = OFF")
        file.db.execute("PRAGMA max_page_count = 100000")
        again = await put(client, *(discovered(f"http://b.example/{k}", "c", metadata=big) for k in range(9)))
        assert again.count(OK) == states.count(FAIL), "those that failed are sent again"
        assert len([one async for one in client.GetURLs(crawlID="c", max_urls_per_queue=1)]) == 2

    served(test, tmp_path, Modes.of(mode))


def test_the_server_reads_no_more_than_a_window_of_a_stream_that_is_not_answered():
    class Nowhere:
        """Crawls that do not answer, and a client that sends without end."""

        def __init__(self):
            self.read, self.answer = 0, asyncio.Event()

        async def put(self, puts):
            await self.answer.wait()
            return [OK] * len(puts)

        async def items(self):
            for k in range(5 * ITEMS.window):
                self.read = k + 1
                yield discovered(f"http://a.example/{k}", "c")

        async def write(self, ack):
            self.acks = getattr(self, "acks", 0) + 1

    async def run():
        nowhere = Nowhere()
        stream = asyncio.create_task(Stream(Batcher(ITEMS, nowhere.put), nowhere).run(nowhere.items()))
        for _ in range(3 * ITEMS.window):
            await asyncio.sleep(0)
        assert nowhere.read == ITEMS.window
        nowhere.answer.set()
        await stream
        assert nowhere.acks == nowhere.read == 5 * ITEMS.window

    asyncio.run(run())


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=80), st.text(max_size=40), st.text(max_size=40), st.integers(0, 2**64 - 1))
def test_no_item_raises(raw, url, key, date):
    item = known("http://" + url if date % 2 else url, key, 0, key)
    item.known.refetchable_from_date = date
    _, found = read_item(item)
    assert found is None or (0 < len(found.key) <= 255 and found.date < 2**63)
    try:
        hostile = URLItem.FromString(raw)
    except Exception:  # the library refuses it before we see it
        return
    read_item(hostile)


def test_bytes_that_are_no_message_are_refused_and_the_service_goes_on(tmp_path):
    async def test(world, client):
        async with grpc.aio.insecure_channel(world.address) as channel:
            for name, kind in CALLS.items():
                if kind.streams == (False, False):
                    plain = channel.unary_unary(f"/{SERVICE}/{name}")
                    with pytest.raises(grpc.aio.AioRpcError):
                        await plain(b"\xff\xff\xff\xff")
            large = channel.unary_unary(f"/{SERVICE}/GetStats")
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await large(b"\x0a" + b"x" * (5 << 20))
            assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        odd = ["http://" + "ü" * 300, "://", "http://[", "http:// x", "\x00", "javascript:alert(1)", "http://a\n.b/"]
        assert set(await put(client, *(discovered(url, "c", id=str(k)) for k, url in enumerate(odd)))) <= {OK, 1}
        assert await put(client, known("http://late.example/", "c", 2**64 - 1)) == [OK]
        (item,) = [one async for one in client.ListURLs(crawlID="c", key="late.example")]
        assert item.known.refetchable_from_date == 2**63 - 1
        assert [one async for one in client.ListURLs(start=2**32 - 1, size=2**32 - 1)] == []
        assert (await client.PurgeURLs(crawlID="c", days=2**32 - 1)).value == 0

    served(test, tmp_path)


def test_one_process_has_the_file(tmp_path):
    path = tmp_path / "q"
    first = QueueFile(path)
    with pytest.raises(StoreInUseError, match="in use by process"):
        QueueFile(path)
    first.close()
    second = QueueFile(path)
    second.db.execute("PRAGMA user_version = 7")
    second.close()
    with pytest.raises(StoreError, match="version 7"):
        QueueFile(path)
    (tmp_path / "text").write_text("not a database, but long enough to be read as one\n" * 40)
    with pytest.raises(StoreError, match="not a database"):
        QueueFile(tmp_path / "text")
    with pytest.raises(StoreError, match="no such folder"):
        QueueFile(tmp_path / "absent" / "q")
    with pytest.raises(sqlite3.ProgrammingError):
        first.settings()


def test_deleted_urls_leave_the_file_after_a_restart_too(tmp_path):
    async def test(world, client):
        await put(client, *(discovered(f"http://a.example/{k}", "c") for k in range(1200)))
        frontier = world.service.crawls.frontier
        assert frontier.delete(frontier.some("c", "")) == 1200, "as a process would that ends before its rows are gone"
        await world.open()
        await world.service.crawls.swept()
        assert world.service.crawls.frontier.file.db.execute("SELECT count(*) FROM url").fetchone() == (0,)

    served(test, tmp_path)


def test_modes_and_where_the_file_is():
    modes = Modes.of("managed", strict=["", "old"])
    assert [modes.is_managed(name) for name in ("DEFAULT", "old", "new")] == [False, False, True]
    assert not Modes.of(strict=["a"]).any_managed
    with pytest.raises(ParameterError, match="both strict and managed"):
        Modes.of(strict=["DEFAULT"], managed=[""])
    assert str(queue_path("news.db")) == "news.db.urlfrontier"
    assert str(queue_path("postgresql://me@host/x")) == "queues.urlfrontier"


def test_the_command_checks_a_service_and_says_in_one_line_what_it_cannot_use(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words, line in {
        ("--mode", "lenient"): "mode is 'lenient': must be strict or managed",
        ("--port", "70000"): "--port is 70000: must lie between 0 and 65535",
        ("--managed", "a", "--strict", "a"): "crawl 'a' is both strict and managed: name it once",
        ("--check", "127.0.0.1:1"): "nobody answers at 127.0.0.1:1: Connection refused",
        ("--check", "here"): "'here' is no address: write HOST:PORT",
    }.items():
        assert call(["urlfrontier", *words]) == 2
        assert capsys.readouterr().err == f"recrawl: {line}\n"


def test_a_client_says_which_calls_there_are():
    async def run():
        async with FrontierClient("127.0.0.1:1") as client:
            with pytest.raises(AttributeError, match="no call GetNothing"):
                client.GetNothing()

    asyncio.run(run())
