"""Saving outcomes to SQLite, beside SQLite itself: the same statements with the same values, nothing else.

Batches of 500 outcomes are saved as a crawler saves them, of pages that have a copy: rows of the engine, outcomes,
copies, events of those that changed. All statements with their values are recorded, and then made again on a copy of
the database with the same settings, prepared in advance: what remains is SQLite. Every batch is durable.

    python benchmarks/bench_save.py               1e6 pages, some minutes; results/save.json
    python benchmarks/bench_save.py --smallest    1e3 pages; nothing is written
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
DAY, BATCH = 86400.0, 500


class Recorder:
    """A connection that remembers what it is asked to do."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.made: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
        self.made.append((statement, [values]))
        return self._connection.execute(statement, values)

    def executemany(self, statement: str, values: Any) -> sqlite3.Cursor:
        given = list(values)
        if given:
            self.made.append((statement, given))
        return self._connection.executemany(statement, given)


def outcomes_of(engine: Any, pages: Any, changed: Any, now: float) -> list[Any]:
    from recrawl.store.protocol import Outcome

    found = zip(engine.url(pages), changed.tolist(), strict=True)
    return [
        Outcome(url, now, 0.1, 200, flag, f"main:{now if flag else 0:016}", content_type="text/html; charset=utf-8")
        for url, flag in found
    ]


def saved(n: int, batches: int, folder: Path) -> dict[str, Any]:
    """Rates of saving, and of SQLite alone."""
    from recrawl import Engine
    from recrawl.store import SqliteStore
    from recrawl.store.protocol import Batch

    rng, now = np.random.default_rng(1), 1.7e9
    engine = Engine(n / (7 * DAY), start=now)
    urls = [f"https://host{k % 1000}.example.org/section{k % 7}/article-{k:08d}.html" for k in range(n)]
    ids = engine.add(urls, now, fetched_at=now - rng.uniform(0, 7 * DAY, n), importance=rng.lognormal(0.0, 1.0, n))
    store = SqliteStore(folder / "one.db", keep=0)
    for first in range(0, n, 20_000):
        some = ids[first : first + 20_000]
        store._writes.save(Batch(outcomes_of(engine, some, np.zeros(len(some), np.bool_), now), engine.rows(some)))
    store._database.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(folder / "one.db", folder / "two.db")
    recorder = store._database.writer = Recorder(store._database.writer)
    order, made = rng.permutation(ids), list[list[tuple[str, Any]]]()
    cpu = clock = rows_cpu = 0.0
    for k in range(batches):
        some, now = order[k * BATCH % n :][:BATCH], now + 60.0
        changed = rng.random(len(some)) < 0.3
        engine.record(some, now, changed=changed)
        outcomes = outcomes_of(engine, some, changed, now)
        recorder.made = []
        began = time.process_time(), time.perf_counter()
        rows = engine.rows(some)
        rows_cpu += time.process_time() - began[0]
        store._writes.save(Batch(outcomes, rows))
        cpu, clock = cpu + time.process_time() - began[0], clock + time.perf_counter() - began[1]
        made.append(recorder.made)
    store._database.close()
    alone = again(folder / "two.db", made)
    total = batches * BATCH
    by = {name: round(1e6 * took / total, 2) for name, took in sorted(alone["by"].items(), key=lambda one: -one[1])}
    return {
        "pages": n,
        "outcomes": total,
        "saved_per_s": total / clock,
        "saved_per_cpu_s": total / cpu,
        "sqlite_alone_per_s": total / alone["clock"],
        "sqlite_alone_per_cpu_s": total / alone["cpu"],
        "cpu_over_sqlite_alone": cpu / alone["cpu"],
        "engine_rows_us": 1e6 * rows_cpu / total,
        "sqlite_us_by_statement": by,
        "load": round(os.getloadavg()[0], 1),
    }


def again(path: Path, made: list[list[tuple[str, Any]]]) -> dict[str, Any]:
    """Make recorded statements again."""
    from recrawl.store.sqlite.database import _CACHE, _PRAGMAS

    base = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", *_PRAGMAS, _CACHE):
        base.execute(f"PRAGMA {pragma}")
    by, cpu, clock = dict[str, float](), time.process_time(), time.perf_counter()
    for batch in made:
        for statement, values in batch:
            before = time.process_time()
            if statement.startswith(("SELECT", "WITH")):
                for one in values:
                    base.execute(statement, one).fetchall()
            elif len(values) == 1:
                base.execute(statement, values[0])
            else:
                base.executemany(statement, values)
            name = " ".join(statement.split()[:3]) if " FROM " not in statement else statement.split(" FROM ")[1][:24]
            by[name] = by.get(name, 0.0) + time.process_time() - before
    return {"cpu": time.process_time() - cpu, "clock": time.perf_counter() - clock, "by": by}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    parser.add_argument("--pages", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        n = 1000 if given.smallest else given.pages
        found = saved(n, 4 if given.smallest else 60, Path(folder))
    print(json.dumps(found, indent=1))
    if not given.smallest and given.pages == 1_000_000:
        (HERE / "results" / "save.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
