"""The live view of a crawl: freshness, budget, changes, slow hosts."""

from __future__ import annotations

import asyncio

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.table import Table

from recrawl.crawl.audit.freshness import expected_freshness
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.crawler import Crawler

_EVERY = 0.5  # seconds between two pictures
_SAMPLE = 5000  # pages whose freshness is looked at while crawling


class View:
    """Shows a crawl on a terminal while it runs; nothing elsewhere."""

    def __init__(self, crawler: Crawler, settings: Settings, quiet: bool) -> None:
        self._crawler, self._settings = crawler, settings
        console = Console(stderr=True)
        self._live = None if quiet or not console.is_terminal else Live(console=console, transient=True)
        self._rng = np.random.default_rng(0)

    async def watch(self) -> None:
        """Draw again and again."""
        if self._live is None:
            return
        self._live.start()
        before, used = self._crawler.now(), self._crawler.budget.used
        while True:
            await asyncio.sleep(_EVERY)
            now = self._crawler.now()
            rate = (self._crawler.budget.used - used) / max(now - before, 1e-9)
            if now - before > 10.0:
                before, used = now, self._crawler.budget.used
            self._live.update(self._picture(rate))

    def freshness(self) -> float | None:
        """The expected freshness of all copies."""
        engine = self._crawler.engine
        return expected_freshness(engine, self._crawler.now()) if len(engine) else None

    def close(self) -> None:
        """End the view."""
        if self._live is not None:
            self._live.stop()

    def _sampled(self) -> float:
        engine, now = self._crawler.engine, self._crawler.now()
        ids = engine.ids()
        some = ids if len(ids) <= _SAMPLE else np.sort(self._rng.choice(ids, _SAMPLE, replace=False))
        weight = engine.pages(some).importance
        return float(np.average(engine.fresh(some, now), weights=weight)) if weight.sum() > 0 else 0.0

    def _picture(self, rate: float) -> Table:
        counts = self._crawler.counters
        table = Table(show_header=False, title=f"{self._settings.database}: {len(self._crawler.engine)} pages")
        table.add_column(style="bold")
        table.add_column()
        table.add_row("freshness, expected", f"{self._sampled():.3f}" if len(self._crawler.engine) else "")
        table.add_row(
            "requests", f"{counts.requests}, {rate:.2f}/s of {self._crawler.budget.text or self._settings.budget}"
        )
        table.add_row("changes found", f"{counts.changed} in {counts.changed + counts.unchanged} comparisons")
        table.add_row("first copies", f"{counts.new}")
        table.add_row("failed, gone, set aside", f"{counts.failed}, {counts.gone}, {counts.set_aside}")
        table.add_row("kept", f"{counts.acknowledged}")
        slow = ", ".join(f"{host} {took:.2f} s" for host, took in counts.slowest(3))
        table.add_row("slowest hosts", slow)
        return table
