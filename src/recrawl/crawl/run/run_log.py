"""What the log says of a run: what it begins with, and once a minute how it goes."""

from __future__ import annotations

from typing import Any

from recrawl import __version__
from recrawl.crawl.run.opening.components import Components
from recrawl.crawl.run.progress import PROGRESS_EVERY


def described(components: Components) -> dict[str, Any]:
    """What the log says of a run that starts."""
    path, rate = getattr(components.store, "path", None), components.budget.rate
    words = {"database": path, "budget": components.budget.text or f"{rate:g}/s"}
    return {**words, "requests_per_second": rate, "pages": len(components.engine), "version": __version__}


async def log_progress(components: Components, began: float) -> None:
    """Log once a minute how the run goes."""
    while components.report.logs_progress:
        before = components.counters.requests
        await components.clock.sleep(PROGRESS_EVERY)
        counters, limiter = components.counters, components.limiter
        components.report.progress(
            counters,
            seconds=round(components.clock.now() - began, 3),
            pages=len(components.engine),
            requests_last_minute=counters.requests - before,
            running=len(components.pool),
            hosts_held=limiter.n_held(),
        )
