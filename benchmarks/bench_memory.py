"""Bytes per page in memory, by array: an engine with default settings, pages with 57-character URLs on 1,000 hosts.

Half of the pages have copies when they are added; then some are crawled. Arrays count by what takes memory: 4 KB that
were never written take none. "beside URL" is all but the URL's own bytes; "resident" is what the process has grown by,
after memory that is free was given back; "peak" is the most that the whole process took, interpreter and kernels
included.

    python benchmarks/bench_memory.py                 1e6 pages, 1% of them crawled; results/memory.json
    python benchmarks/bench_memory.py --pages 10000000 --crawled 1.0
    python benchmarks/bench_memory.py --smallest      1e4 pages; nothing is written
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
DAY, PART = 86400.0, 500_000
PAGE = 4096  # bytes that the system gives at a time


def rss() -> float:
    """Bytes in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def arrays_of(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All arrays of a state, by the names that lead to them."""
    if isinstance(tree, np.ndarray):
        base = tree
        while isinstance(base.base, np.ndarray) and base.base.nbytes >= base.nbytes:
            base = base.base  # with the room for more pages
        yield name, base
    elif isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from arrays_of(value, f"{name}.{key}" if name else str(key))


def taken(array: Any) -> float:
    """The share of an array that takes memory."""
    if array.nbytes < 1 << 20 or not array.flags.c_contiguous:
        return 1.0
    raw = array.reshape(-1).view(np.uint8)
    blocks = raw[: len(raw) // PAGE * PAGE].reshape(-1, PAGE).view(np.uint64)
    parts = range(0, len(blocks), 1 << 15)
    return float(sum(int(blocks[first : first + (1 << 15)].any(axis=1).sum()) for first in parts)) / len(blocks)


def by_field(name: str, array: Any) -> Iterator[tuple[str, float]]:
    """Bytes of an array that take memory, by field if it has some."""
    share = taken(array)
    if array.dtype.names is None or array.nbytes < 1 << 20:
        yield name, share * array.nbytes
    else:
        for field in array.dtype.names:
            yield f"{name}.{field}", share * array.dtype[field].itemsize * array.size


def peak() -> int:
    """The most bytes that this process has taken."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measured(n: int, crawled: float) -> dict[str, Any]:
    """A table of bytes per page, after so many crawls per page."""
    from recrawl import Engine
    from recrawl._system.memory import give_back

    few = Engine(1.0)  # what is loaded once
    few.add([f"https://a.example/{k}" for k in range(100)], 0.0, fetched_at=0.0)
    few.record(few.pick(DAY, 5), DAY, changed=np.ones(5, np.bool_))
    gc.collect()
    rng, before, now = np.random.default_rng(1), rss(), 1.7e9
    engine, length = Engine(n / (7 * DAY), start=now), 0
    for first in range(0, n, PART):
        some = range(first, min(first + PART, n))
        urls = [f"https://host{k % 1000:03}.example.org/section{k % 7}/article-{k:07d}.html" for k in some]
        fetched = np.where(rng.random(len(urls)) < 0.5, now - rng.uniform(0, 7 * DAY, len(urls)), -np.inf)
        engine.add(urls, now, fetched_at=fetched, importance=rng.lognormal(0.0, 1.0, len(urls)))
        length = len(urls[0])
        del urls
    for _ in range(max(int(crawled * n / 500), 1)):
        now += 500 / engine.budget
        ids = engine.pick(now, 500)
        engine.record(ids, now, changed=rng.random(len(ids)) < 0.3)
    gc.collect()
    give_back()
    used = (rss() - before) / n
    sizes: dict[str, float] = {}
    for name, array in arrays_of(engine.live_state()):
        for field, size in by_field(name, array):
            sizes[field] = sizes.get(field, 0.0) + size / n
    table = {name: round(size, 2) for name, size in sorted(sizes.items(), key=lambda one: -one[1]) if size >= 0.05}
    return {
        "pages": n,
        "crawls_per_page": crawled,
        "url_bytes": length,
        "arrays_beside_url": round(sum(sizes.values()) - length, 1),
        "resident_beside_url": round(used - length, 1),
        "resident_mb": round(rss() / 1e6),
        "peak_mb": round(peak() / 1e6),
        "by_array": table,
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--crawled", type=float, default=0.01, help="crawls per page; default: 0.01")
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    given = parser.parse_args()
    found = measured(10_000 if given.smallest else given.pages, given.crawled)
    print(json.dumps(found, indent=1))
    if not given.smallest:
        path = HERE / "results" / "memory.json"
        rows = json.loads(path.read_text()) if path.exists() else []
        case = given.pages, given.crawled
        rows = [row for row in rows if (row["pages"], row.get("crawls_per_page", 0.01)) != case] + [found]
        order = sorted(rows, key=lambda row: (row["pages"], row.get("crawls_per_page", 0.01)))
        path.write_text(json.dumps(order, indent=1) + "\n")


if __name__ == "__main__":
    main()
