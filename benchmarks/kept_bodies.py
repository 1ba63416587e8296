"""What one more kept body of each changed page costs on disk, for a folder of HTML files.

    python benchmarks/kept_bodies.py FOLDER    such as one of installed documentation; some seconds

Every file is a page; it is saved, changed in one line and saved again, with `keep` 1, 2 and 3.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

MOST = 500  # files


def changed(body: bytes, k: int) -> bytes:
    """A body in which one line differs."""
    return body.replace(b"</body>", b"<p>edition %d</p></body>" % k, 1)


async def size(bodies: list[bytes], keep: int, path: Path) -> int:
    """Bytes of the database after three versions of each page."""
    from recrawl import Engine
    from recrawl.store import Outcome, SqliteStore

    urls = [f"https://a.example/{k}" for k in range(len(bodies))]
    engine, store = Engine(1.0), SqliteStore(path, keep=keep)
    engine.add(urls, 0.0)
    await store.save(rows=engine.rows())
    for k in range(3):
        found: dict[str, Any] = {"status": 200, "digest": f"main:{k}", "changed": True if k else None}
        pages = zip(urls, bodies, strict=True)
        await store.save([Outcome(url, float(k), body=changed(body, k), **found) for url, body in pages])
    await store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("VACUUM")
    return path.stat().st_size


def main(folder: str) -> None:
    """Print the bytes per page."""
    files = [path for path in sorted(Path(folder).rglob("*.html")) if path.is_file()][:MOST]
    bodies = [path.read_bytes() for path in files]
    with tempfile.TemporaryDirectory() as place:
        sizes = [asyncio.run(size(bodies, keep, Path(place) / f"{keep}.db")) for keep in (1, 2, 3)]
    n = len(bodies)
    found = {"pages": n, "bytes_per_page": sum(map(len, bodies)) / n, "database_by_keep": [one / n for one in sizes]}
    print(json.dumps(found | {"second_body": (sizes[1] - sizes[0]) / n, "third_body": (sizes[2] - sizes[1]) / n}))


if __name__ == "__main__":
    main(*sys.argv[1:2])
