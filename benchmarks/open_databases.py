"""Databases of many pages for `bench_open.py`: pages crawled, never crawled, or half of each.

    python benchmarks/open_databases.py pages.db 100000 mixed

An engine of 10,000 pages crawls for 30 days; its rows are repeated under other URLs until there are enough pages.
Pages lie on one host per 200 pages, in ten folders each.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from recrawl import Engine
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.run.opening.pages import add_pages
from recrawl.store import BlockingStore, SqliteStore
from recrawl.store.columns import is_column

KINDS = {"crawled": 1.0, "never crawled": 0.0, "mixed": 0.5}  # share of pages that were crawled
DAY = 86400.0
_FEW, _BATCH = 10_000, 20_000


def url_of(number: int, n_hosts: int) -> str:
    """The URL of a page."""
    return f"https://host{number % n_hosts}.example.org/some/folder{number // n_hosts % 10}/page-{number}.html"


def few_rows(n: int, share: float, now: float) -> dict[str, Any]:
    """Rows of an engine whose pages were crawled three times in the last 30 days, or never."""
    rng = np.random.default_rng(0)
    engine = Engine(n / (10 * DAY), start=now - 30 * DAY, host_spacing=1.0, host_concurrency=1)
    ids = add_pages(engine, Rules(), [url_of(k, max(n // 200, 1)) for k in range(n)], now - 30 * DAY)
    some = ids[rng.random(n) < share]
    for at in np.linspace(now - 30 * DAY, now, 30, endpoint=False):
        part = rng.choice(some, len(some) // 10, replace=False)
        kind = rng.random(len(part))
        changed = rng.random(len(part)) < 0.3
        engine.record(part, float(at), changed=changed, failed=kind < 0.02, gone=kind > 0.995)
    return engine.rows()


def make(path: Path, n: int, kind: str) -> None:
    """A database of n pages of a kind."""
    rows = few_rows(min(n, _FEW), KINDS[kind], time.time())
    few, columns = len(rows["url"]), [name for name in rows if is_column(name, rows)]
    with BlockingStore(SqliteStore(path)) as store:
        for first in range(0, n, _BATCH):
            numbers = np.arange(first, min(first + _BATCH, n))
            part = {name: np.asarray(rows[name])[numbers % few] for name in columns if name != "url"}
            urls = [url_of(k, max(n // 200, 1)) for k in numbers.tolist()]
            store.save(rows={**rows, **part, "url": urls, "hosts": {}})


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
