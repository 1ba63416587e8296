"""Rehearsal of a service: what it does and is asked, once, so that no request waits until kernels are compiled."""

from __future__ import annotations

import asyncio
from tempfile import TemporaryDirectory

from recrawl._system.threads import in_thread
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.warming import warm_up_beside
from recrawl.desk import NewPage, open_desk
from recrawl.desk.rehearsal import rehearse
from recrawl.logs import silent
from recrawl.serve.crawls.database import DatabaseQuestions

_URLS = [f"https://h{k % 5}.example/{k}" for k in range(30)]


async def rehearse_service() -> None:
    """Load or compile the kernels of an engine, of a desk and of figures about all pages, in threads."""
    await warm_up_beside()
    await rehearse()
    await in_thread(_ask, "recrawl-rehearsal")


def _ask() -> None:
    """Ask a small database of new pages what the dashboard asks."""
    with TemporaryDirectory() as folder, silent():
        settings = Settings(database=f"{folder}/recrawl.db", budget="100/s")
        now = asyncio.run(_add_pages(settings))
        questions = DatabaseQuestions(lambda: settings)
        questions.snapshot(now)
        questions.status(now, "200/s")


async def _add_pages(settings: Settings) -> float:
    """Make the database; the time of it."""
    live, desk = await open_desk(settings)
    try:
        await desk.add([NewPage(url) for url in _URLS])
        desk.pages()
        live.crawler.engine.explain(0, live.clock.now())
        return live.clock.now()
    finally:
        await live.close()
