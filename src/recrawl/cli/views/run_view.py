"""The live view of a crawl: freshness, budget, changes, slow hosts."""

from __future__ import annotations

import asyncio
import time

from rich.console import Console
from rich.live import Live
from rich.table import Table

from recrawl.cli.views.status_report import freshness_rows
from recrawl.crawl.audit.freshness import Freshness, reported_freshness
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.crawler import Crawler
from recrawl.model.spans import format_span

_EVERY = 0.5  # seconds between two pictures
_QUICK = 0.01  # seconds: freshness that takes longer to compute is not computed for every picture
_REST = 50.0  # times as long as it took


class View:
    """Shows a crawl on a terminal while it runs; nothing elsewhere."""

    def __init__(self, crawler: Crawler, settings: Settings, quiet: bool) -> None:
        self._crawler, self._settings = crawler, settings
        console = Console(stderr=True)
        self._live = None if quiet or not console.is_terminal else Live(console=console, transient=True)
        self._fresh: Freshness | None = None
        self._compute_at = 0.0

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
        """The expected freshness of all copies; None while it is not known."""
        return reported_freshness(self._crawler.engine, self._crawler.now()).now

    def close(self) -> None:
        """End the view."""
        if self._live is not None:
            self._live.stop()

    def rows(self, rate: float) -> list[tuple[str, str]]:
        """Label and text of each line: the state as ``recrawl status`` shows it, then the counts of this run."""
        counts, engine = self._crawler.counters, self._crawler.engine
        failing = engine.stats
        slow = ", ".join(f"{host} {format_span(took)}" for host, took in counts.slowest(3))
        return [
            *freshness_rows(self._reported()),
            ("failing, gone", f"{failing['failing']}, {failing['away']}"),
            (
                "in this run: requests",
                f"{counts.requests}, {rate:.2f}/s of {self._crawler.budget.text or self._settings.budget}",
            ),
            ("  changes found", f"{counts.changed} in {counts.changed + counts.unchanged} comparisons"),
            ("  first copies", f"{counts.new}"),
            ("  failed, gone, set aside", f"{counts.failed}, {counts.gone}, {counts.set_aside}"),
            ("  crawls saved", f"{counts.acknowledged}"),
            ("  slowest hosts", slow),
        ]

    def _reported(self) -> Freshness:
        """The freshness of now; with many pages one computed a little earlier, so that it takes 2% of the time."""
        began = time.monotonic()
        if self._fresh is None or began >= self._compute_at:
            self._fresh = reported_freshness(self._crawler.engine, self._crawler.now())
            took = time.monotonic() - began
            self._compute_at = began + (took * _REST if took > _QUICK else 0.0)
        return self._fresh

    def _picture(self, rate: float) -> Table:
        table = Table(show_header=False, title=f"{self._settings.database_name}: {len(self._crawler.engine)} pages")
        table.add_column(style="bold")
        table.add_column()
        for label, text in self.rows(rate):
            table.add_row(label, text)
        return table
