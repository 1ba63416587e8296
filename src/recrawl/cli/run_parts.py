"""The parts of a crawl by HTTP, put together from settings."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from recrawl import __version__
from recrawl.cli.crawl_options import engine_of
from recrawl.crawl.clock import SystemClock
from recrawl.crawl.crawler import Crawler
from recrawl.crawl.detect import detector
from recrawl.crawl.fetch import HttpFetcher, Limits
from recrawl.crawl.pace import MARK, pacer_from
from recrawl.crawl.robots import Robots
from recrawl.crawl.robots_kept import RobotsKept
from recrawl.crawl.settings import Settings
from recrawl.crawl.shares import share_of
from recrawl.errors import ParameterError, StoreError
from recrawl.store import SqliteStore


class Parts:
    """Store, engine, fetchers and crawler; ``close`` ends what needs ending."""

    def __init__(self, settings: Settings) -> None:
        agent = settings.agent(__version__)
        finds = detector(settings.detector)
        self.clock = SystemClock()
        if not Path(settings.database).is_file():
            raise StoreError(f"{settings.database}: there is no such database; recrawl add makes one")
        self.store = SqliteStore(settings.database, keep=settings.keep)
        try:
            engine = engine_of(self.store, settings, self.clock.now())
            if not len(engine) and not self.store.posts():
                raise ParameterError(f"{settings.database}: has no pages; recrawl add adds some")
            self._fetchers = [self._fetcher(settings, agent, redirects) for redirects in (0, 5)]
            pages, rules_txt = self._fetchers
            kept = RobotsKept(self.store)
            rate = settings.rates(len(engine))[0]
            self.crawler = Crawler(
                engine,
                self.store,
                pages,
                detector=finds,
                robots=Robots(rules_txt, agent, self.clock, kept) if settings.robots else None,
                robots_kept=kept,
                clock=self.clock,
                pacer=pacer_from(rate, self.clock.now(), self.store.noted(MARK).get(MARK)),
                rules=settings.rules(),
                hours=settings.opening(),
                concurrency=settings.concurrency,
                longest_delay=settings.seconds("longest_delay"),
                longest_hint=settings.seconds("longest_hint"),
                audit_share=share_of(settings.audit_share),
                audit_draws=settings.audit_draws,
                rate=lambda n: settings.rates(n)[0],
            )
        except BaseException:
            self.store.close()
            raise

    def _fetcher(self, settings: Settings, agent: str, redirects: int) -> HttpFetcher:
        """For pages the crawler follows redirects itself, politely; for robots.txt the fetcher does."""
        limits = Limits(
            body=settings.largest_body,
            redirects=redirects,
            total=settings.seconds("timeout"),
            connections=settings.concurrency,
        )
        return HttpFetcher(agent, limits=limits, allow_private=settings.allow_private, clock=self.clock)

    async def close(self) -> None:
        """Give everything back."""
        with suppress(Exception):
            for fetcher in self._fetchers:
                await fetcher.close()
        self.crawler.close()
        self.store.close()
