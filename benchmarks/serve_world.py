"""What the service is measured on: a database, settings, and what crawls find, the same for every way to crawl."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from zlib import crc32

import numpy as np

from recrawl.crawl.config.rules import Rules
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.pages import add_pages, open_engine, save_pages
from recrawl.crawl.signals.tokens import PREFIX, new_token
from recrawl.store import SqliteStore

BATCH, HOSTS, CLIENTS = 100, 1000, 4
OPTIONS = {"budget": "1000000/s", "host_concurrency": 1000, "keep": 0, "min_change_probability": "0%"}
_CHANGED = 3  # one crawl in so many finds a change

# a copy of each page, as a crawl before the first of a `World` would have found it
_COPIES = (
    "INSERT INTO copy (page, fetched_at, changed_at, status, digest, recent, n_flaps) "
    "SELECT id, fetched_at, fetched_at, 200, 'given:0 of ' || url, '', 0 FROM page"
)


class World:
    """What the crawls of a page find: a digest that changes between a third of them, whoever crawls."""

    def __init__(self) -> None:
        self._crawls: Counter[str] = Counter()
        self._versions: Counter[str] = Counter()

    def digest(self, url: str) -> str:
        """What the next crawl of a page finds."""
        self._crawls[url] += 1
        self._versions[url] += crc32(f"{url} {self._crawls[url]}".encode()) % _CHANGED == 0
        return f"{self._versions[url]} of {url}"


def settings_of(path: Path) -> Settings:
    """Hosts have rules as in every crawl; nothing but engine and store limits the rate."""
    return Settings(database=str(path), delay=0, **OPTIONS)


def write_config(path: Path) -> None:
    """The same as a file."""
    named = {"delay": "0 s", **OPTIONS}
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in named.items()))


def urls_of(some: range) -> list[str]:
    """Pages of many hosts."""
    return [f"https://h{k % HOSTS}.example/{k}" for k in some]


async def build(path: Path, n: int) -> str:
    """A database of n new pages; a token."""
    text, token = new_token("bench", ["admin"], time.time())
    async with SqliteStore(path) as store:
        engine = await open_engine(store, time.time(), budget=1e6)
        await save_pages(engine, store, add_pages(engine, Rules(), urls_of(range(n)), time.time()))
        await store.save(notes={f"{PREFIX}bench": token.as_note()})
    return text


async def build_known(path: Path, n: int) -> str:
    """The same with a copy of each page, fetched within the last day."""
    token, now, rng = await build(path, 0), time.time(), np.random.default_rng(0)
    async with SqliteStore(path) as store:
        engine = await open_engine(store, now - 86400.0, budget=1e6)
        for first in range(0, n, 20_000):
            urls = urls_of(range(first, min(first + 20_000, n)))
            ids = engine.add(urls, now, fetched_at=now - 86400.0 * rng.random(len(urls)))
            await store.save(rows=engine.rows(ids))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(_COPIES)
    return token
