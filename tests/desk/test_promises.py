"""What the desk promises: hosts are held, calls share a write, no reply waits for a refit, no outcome counts twice."""

import asyncio
import re
import sys
from contextlib import contextmanager

import pytest

from recrawl.client import AsyncClient, Outcome
from recrawl.desk import Report
from recrawl.engine import Engine
from recrawl.engine.beliefs.beliefs import Beliefs
from recrawl.engine.clocks.clocks import FolderClocks
from recrawl.engine.names.addresses import host_of
from recrawl.engine.upkeep import Upkeep
from recrawl.engine.views.expected import expected_fresh
from recrawl.engine.views.ledger import ledger_of
from recrawl.store import MemoryStore
from tests.desk.desks import on_desk
from tests.serving.service import with_service

HOSTS = [f"h{k}.example" for k in range(3)]
URLS = [f"https://{host}/{k}" for host in HOSTS for k in range(20)]


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        ({"status": 429}, 30.0),
        ({"status": 503}, 30.0),
        ({"status": 429, "retry_after": 100.0}, 100.0),
        ({"status": 503, "retry_after": 100.0}, 100.0),
    ],
)
def test_a_host_that_is_busy_is_held(answer, seconds):
    async def test(world):
        (one,) = await world.desk.pick(1, hosts=HOSTS[:1])
        assert await world.desk.record([Report(one.lease, **answer)]) == ["recorded"]
        world.clock._now += seconds - 1.0
        assert await world.desk.pick(5, hosts=HOSTS[:1]) == [], "it asked to be left alone"
        found = await world.desk.pick(60)
        assert {host_of(page.url) for page in found} == set(HOSTS[1:]), "the others are not"
        world.clock._now += 2.0
        assert {host_of(page.url) for page in await world.desk.pick(60)} == set(HOSTS[:1])

    on_desk(test, URLS)


def test_the_concurrency_of_hosts_is_kept():
    async def test(world):
        for _ in range(3):
            found = await world.desk.pick(60, hosts=HOSTS[:2])
            assert sorted(host_of(page.url) for page in found) == [HOSTS[0]] * 4 + [HOSTS[1]] * 4
            assert await world.desk.pick(60, hosts=HOSTS[:2]) == [], "four pages of a host at a time"
            world.clock._now += 1.0
            await world.desk.record([Report(found[0].lease, status=200, digest="x")])
            await world.desk.release([found[1].lease])
            hosts = [host_of(page.url) for page in found[:2]]
            more = await world.desk.pick(60, hosts=HOSTS[:2])
            assert [host_of(page.url) for page in more] == hosts, "as many as have ended"
            await world.desk.release([page.lease for page in (*found[2:], *more)])

    on_desk(test, URLS, concurrency=4)


class Blocked(MemoryStore):
    """A store whose writes begin, and end when the test says so."""

    def __init__(self):
        super().__init__()
        self.began, self.may_end = 0, asyncio.Event()
        self.may_end.set()

    async def save(self, *args, **columns):
        self.began += 1
        await self.may_end.wait()
        return await super().save(*args, **columns)


def test_eight_records_share_one_write_and_wait_for_it():
    async def test(world):
        store, held = world.store, await world.desk.pick(8)
        store.may_end.clear()
        before = store.began
        calls = [asyncio.create_task(world.desk.record([Report(page.lease, status=200, digest="x")])) for page in held]
        repeated = asyncio.create_task(world.desk.record([Report(held[0].lease, status=200, digest="x")]))
        for _ in range(200):
            await asyncio.sleep(0)
        assert store.began == before + 1, "one transaction for all of them"
        assert not any(call.done() for call in (*calls, repeated)), "no reply before it ends"
        assert await world.listed() == []
        store.may_end.set()
        assert await asyncio.gather(*calls, repeated) == [["recorded"]] * 8 + [["repeated"]]
        assert store.began == before + 1
        assert sorted(o.url for o in await world.listed()) == sorted(page.url for page in held)

    on_desk(test, URLS, store=Blocked())


SLOW = re.compile(r"^recrawl\..*(\.(re)?fit(_(?!if_due)\w+)?$|Upkeep\.step|forecast|[Ll]edger|expected)")


@contextmanager
def calls_of():
    """The names of the Python functions that are called within the context.

    Not those of the task that notes the freshness of many pages in pieces: no call waits for it.
    """
    names = set()

    def called(frame, kind, _):
        task = asyncio.current_task()
        if kind == "call" and (task is None or not task.get_coro().__qualname__.endswith("._note_freshness")):
            names.add(f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}")

    sys.setprofile(called)
    try:
        yield names
    finally:
        sys.setprofile(None)


def test_no_reply_refits_or_forecasts(monkeypatch):
    """However much has become known: these are left to the loop of the crawl."""
    monkeypatch.setattr("recrawl.crawl.audit.freshness._PIECE", 10)  # sixty pages are many

    async def test(world):
        engine = world.crawler.engine
        engine.refits_in_pieces = True  # as the loop of a crawl does

        async def crawl(k):
            world.clock._now += 3600.0
            found = await world.desk.pick(60)
            await world.desk.record([Report(page.lease, status=200, digest=str(k)) for page in found])
            return engine.upkeep.due

        for k in range(4):
            await crawl(k)  # code is compiled meanwhile
        assert engine.upkeep.due, "a refit is due from now on"
        with calls_of() as names:
            assert all([await crawl(k) for k in range(4, 8)])
        assert "recrawl.desk.desk.Desk.record" in names
        assert not {name for name in names if SLOW.search(name)}
        assert engine.stats["refits"] == 0

    for slow in (Upkeep.step, Beliefs.fit, FolderClocks.fit, Engine.forecast, Engine.ledger, ledger_of, expected_fresh):
        assert SLOW.search(f"{slow.__module__}.{slow.__qualname__}"), "it is known by its name"
    on_desk(test, URLS)


class Forgetful:
    """A proxy before a service that loses the first answer to a record: it ends the connection instead."""

    def __init__(self, url):
        self._to, self.lost, self._tasks = url.removeprefix("http://").split(":"), 0, set()

    async def serve(self, reader, writer):
        """One connection."""
        there = await asyncio.open_connection(*self._to)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"content-length: *(\d+)", head, re.I)
                there[1].write(head + await reader.readexactly(int(length[1]) if length else 0))
                answer = await there[0].readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: *(\d+)", answer, re.I)
                answer += await there[0].readexactly(int(length[1]))
                if b"/v1/record" in head and not self.lost:
                    self.lost += 1
                    assert b'"recorded"' in answer, "it was recorded, and the client does not know"
                    return
                writer.write(answer)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()
            there[1].close()


@pytest.mark.slow
def test_an_outcome_whose_answer_was_lost_is_stored_once(tmp_path, monkeypatch):
    monkeypatch.setattr("recrawl.client.tries._FIRST_WAIT", 0.001)

    async def test(one):
        proxy = Forgetful(one.url)
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, AsyncClient(url, one.tokens["crawl"]) as client:
            (page,) = await client.pick(1)
            assert await client.record([Outcome(page.lease, status=200, body=b"hello")]) == ["repeated"]
        assert proxy.lost == 1
        stored = [outcome async for outcome in one.live.crawler.components.store.observations()]
        assert [outcome.url for outcome in stored] == [page.url]

    with_service(test, tmp_path)
