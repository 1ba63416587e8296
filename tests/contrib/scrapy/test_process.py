"""The process of the desk: its calls, its errors, and its end."""

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys

import pytest

from contrib.scrapy.worlds import opened, stored
from recrawl.contrib.scrapy import ProcessSource, desk_process, process
from recrawl.contrib.scrapy.messages import BUFFER, packed
from recrawl.crawl.config.settings import Settings
from recrawl.desk import Report
from recrawl.errors import ParameterError, RecrawlError, StoreError

URLS = [f"https://a.example/{k}" for k in range(3)]
HOST = {"delay": "0 s", "host_concurrency": 3}

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="needs socketpair and pass_fds")]


def test_calls_errors_and_the_end_of_the_process(tmp_path):
    """Leases outlive a process that is killed; what was recorded before is there; further calls say one line."""
    database = str(tmp_path / "pages.db")

    async def use():
        source = await ProcessSource.open(Settings(database=database, budget="100000/s", listings=False, **HOST))
        assert await source.add(URLS) == 3
        picked = await source.pick(3, 60.0)
        assert {one.url for one in picked} == set(URLS)
        first, second, third = (one.lease for one in picked)
        with pytest.raises(ParameterError, match="row 0, status: is 999"):
            await source.record([Report(first, 999)])
        assert await source.record([Report(first, 200, body=b"<p>text</p>" * 9000)]) == ["recorded"]
        assert await source.release([second, "other"]) == ["released", "unknown"]
        assert [await source.holds(lease) for lease in (first, second, third)] == [False, False, True]
        source._process.kill()
        await asyncio.wait([source._reading])
        with pytest.raises(RecrawlError, match="the process of the desk was ended"):
            await source.pick(1, 60.0)
        with pytest.raises(RecrawlError, match="was ended"):
            await source.close()
        assert source._process.returncode is not None

    asyncio.run(use())
    outcomes, leases = stored(database)
    assert [one.status for one in outcomes] == [200]
    assert len(leases) == 1, "that of the third page"


@pytest.mark.full
def test_a_database_that_cannot_be_opened_is_an_error_of_the_caller(tmp_path):
    (tmp_path / "pages.db").write_bytes(b"no database" * 100)

    async def use():
        await ProcessSource.open(Settings(database=str(tmp_path / "pages.db"), budget="1/s"))

    with pytest.raises(RecrawlError, match=r"pages\.db"):
        asyncio.run(use())


@pytest.mark.parametrize("killed", [False, True])
def test_what_goes_wrong_at_the_end_is_told_to_the_caller(monkeypatch, killed):
    """The process of the desk answers the last call with the problem; if its Scrapy is gone, it just ends."""

    class Full:
        n_pages, closed = 7, 0

        async def close(self):
            self.closed += 1
            raise StoreError("pages.db: database or disk is full")

    async def opened(settings):
        return full

    full = Full()
    monkeypatch.setattr(desk_process, "_open", opened)
    monkeypatch.setattr(desk_process.compiling, "say_by", lambda say: None)
    monkeypatch.setattr(desk_process.compiling, "announce", lambda: None)
    monkeypatch.setattr(logging.getLogger("recrawl"), "handlers", [])

    async def use():
        mine, theirs = socket.socketpair()
        serving = asyncio.ensure_future(desk_process.serve(theirs))
        done = subprocess.Popen([sys.executable, "-c", ""])
        source = ProcessSource(done, *await asyncio.open_unix_connection(sock=mine, limit=BUFFER))
        _, begun = source._expected()
        source._writer.write(packed(Settings(database="pages.db", budget="1/s")))
        assert await begun == 7
        if killed:
            await source._end()
        else:
            with pytest.raises(StoreError, match=r"^pages\.db: database or disk is full$"):
                await source.close()
        await serving

    asyncio.run(use())
    assert full.closed == 1


def test_an_opening_that_is_cancelled_ends_the_process_at_once(tmp_path, monkeypatch):
    """A spider that is closed does not wait until kernels are compiled or a database is free."""
    begun = []
    popen = process.subprocess.Popen
    monkeypatch.setattr(process.subprocess, "Popen", lambda *args, **how: begun.append(popen(*args, **how)) or begun[0])

    async def use():
        opening = asyncio.ensure_future(ProcessSource.open(Settings(database=str(tmp_path / "pages.db"), budget="1/s")))
        while not begun or len(asyncio.all_tasks()) < 3:  # this one, the opening, and what reads its answers
            await asyncio.sleep(0.001)
        opening.cancel()
        await asyncio.wait([opening])
        assert opening.cancelled()

    asyncio.run(use())
    assert begun[0].returncode == -signal.SIGKILL


def test_the_process_ends_with_the_one_that_started_it(tmp_path):
    """Its connection ends without a call of close, as after kill -9: it writes what it has and leaves the database."""
    database = str(tmp_path / "pages.db")

    async def use():
        source = await ProcessSource.open(Settings(database=database, budget="100/s", listings=False))
        await source.add(URLS[:1])
        (one,) = await source.pick(1, 60.0)
        recording = asyncio.ensure_future(source.record([Report(one.lease, 200, digest="a")]))
        await asyncio.sleep(0)
        source._writer.close()
        with pytest.raises(RecrawlError):
            await recording
        await source._end()
        assert source._process.returncode == 0

    asyncio.run(use())
    assert asyncio.run(opened(database).close()) is None
    assert len(stored(database)[0]) == 1
