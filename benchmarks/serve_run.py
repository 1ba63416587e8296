"""`recrawl serve` with its parts clocked.

SIGUSR1: clients begin; SIGUSR2: they have ended. What engine and store took of its processor time is written to the
file that PARTS names, in microseconds per turn of the clients.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from serve_parts import Parts

import recrawl.desk
from recrawl.cli import main

if __name__ == "__main__":
    parts, open_desk = Parts(), recrawl.desk.open_desk

    async def opened(*given: Any, **options: Any) -> Any:
        """The desk of the service."""
        live, desk = await open_desk(*given, **options)
        parts.clock_crawl(live.crawler.engine, live.store)
        return live, desk

    recrawl.desk.open_desk = opened  # type: ignore[assignment]
    signal.signal(signal.SIGUSR1, lambda *_: parts.resume())
    signal.signal(signal.SIGUSR2, lambda *_: parts.pause(1))
    try:
        main()
    finally:
        Path(os.environ["PARTS"]).write_text(json.dumps(parts.table("desk and HTTP")))
