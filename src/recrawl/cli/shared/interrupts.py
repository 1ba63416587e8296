"""What SIGTERM and Ctrl-C do: the command stops after the work at hand, and everything found is kept."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recrawl.crawl.run.crawler import Crawler

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stop_on_signals(crawler: Crawler) -> None:
    """Stop a running crawl on SIGTERM and SIGINT. Call it inside the crawl's event loop."""
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, crawler.stop)


def stop_requests() -> list[bool]:
    """A list that is empty until SIGTERM or SIGINT arrives. For commands without an event loop."""
    received: list[bool] = []
    for number in _SIGNALS:
        signal.signal(number, lambda *_: received.append(True))
    return received
