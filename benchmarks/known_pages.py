"""A database of very many known pages, and the start of a crawler from it; used by bench_crawl.py.

``python benchmarks/known_pages.py make DATABASE N`` and ``… start DATABASE``, which prints a JSON line.
"""

from __future__ import annotations

import json
import sys
import time

BEGAN = time.perf_counter()
NOW = 1.8e9


def make(database: str, n: int) -> None:
    """Pages on 5,000 hosts, a fifth of them crawled once since they were added."""
    import numpy as np

    from recrawl.crawl.pages import save_pages
    from recrawl.engine import Engine
    from recrawl.store import SqliteStore

    rng = np.random.default_rng(0)
    engine = Engine(10.0, start=NOW, host_spacing=1.0, host_concurrency=1)
    urls = [f"https://site-{k % 5000}.example/section-{k % 37}/page-{k}" for k in range(n)]
    ids = engine.add(urls, NOW, importance=rng.lognormal(size=n))
    for some in np.array_split(ids[: n // 5], 20):
        engine.record(some, engine.now + 3600.0, changed=rng.random(len(some)) < 0.3)
    with SqliteStore(database) as store:
        save_pages(engine, store, ids)


def start(database: str) -> None:
    """Open, restore, make the crawler and pick, as ``recrawl run`` does."""
    import resource

    from recrawl.crawl.clock import SystemClock
    from recrawl.crawl.crawler import Crawler
    from recrawl.crawl.fetch import HttpFetcher
    from recrawl.crawl.pages import open_engine
    from recrawl.store import SqliteStore

    imported = time.perf_counter()
    store = SqliteStore(database)
    now = NOW + 1e6
    engine = open_engine(store, now, host_spacing=1.0, host_concurrency=1)
    restored = time.perf_counter()
    crawler = Crawler(engine, store, HttpFetcher("recrawl-bench/1"), clock=SystemClock())
    picked = engine.pick(now + 10.0, 1)
    used = resource.getrusage(resource.RUSAGE_SELF)
    assert len(picked) == 1
    figures = {
        "seconds": time.perf_counter() - BEGAN,
        "cpu": used.ru_utime + used.ru_stime,
        "import_seconds": imported - BEGAN,
        "restore_seconds": restored - imported,
        "peak_mb": used.ru_maxrss / 1024,
        "resident_mb": resident(),
    }
    crawler.close()
    store.close()
    print(json.dumps(figures))


def resident() -> float:
    """Megabytes resident now."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
    else:
        start(sys.argv[2])
