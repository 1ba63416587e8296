"""The rehearsal of a desk: in a thread, silent, and nothing of it stays."""

import asyncio
import logging
import threading

import pytest

from recrawl.crawl.config.settings import Settings
from recrawl.desk import open_desk, rehearsal
from recrawl.desk.rehearsal import rehearse
from recrawl.errors import StoreInUseError


def test_the_event_loop_goes_on_and_nothing_is_logged(caplog):
    caplog.set_level(logging.DEBUG, "recrawl")
    turns = 0

    async def work():
        nonlocal turns
        task = asyncio.ensure_future(rehearse())
        while not task.done():
            turns += 1
            await asyncio.sleep(0.001)
        await task

    asyncio.run(work())
    assert turns > 1
    assert caplog.records == []


def test_what_it_raises_is_raised_and_a_caller_that_leaves_is_not_held(monkeypatch):
    go = threading.Event()

    async def broken():
        go.wait(300.0)
        raise ValueError("broken")

    monkeypatch.setattr(rehearsal, "_use", broken)

    async def leave():
        task = asyncio.ensure_future(rehearse())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(leave())
    go.set()
    with pytest.raises(ValueError, match="broken"):
        asyncio.run(rehearse())


def test_a_crawl_is_prepared_when_its_database_is_open_and_left_where_that_fails(tmp_path):
    settings, seen = Settings(database=str(tmp_path / "recrawl.db")), []

    async def in_use():
        with pytest.raises(StoreInUseError):
            await open_desk(settings)
        seen.append("in use")

    async def fails():
        raise ValueError("broken")

    async def run():
        live, _ = await open_desk(settings, prepare=in_use)
        await live.close()
        for _ in range(2):
            with pytest.raises(ValueError, match="broken"):
                await open_desk(settings, prepare=fails)

    asyncio.run(run())
    assert seen == ["in use"]
