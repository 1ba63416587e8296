"""The parts of a crawl by HTTP, put together from settings."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from recrawl import __version__
from recrawl.cli.shared.crawl_options import engine_of
from recrawl.crawl.clock import SystemClock
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.config.shares import share_of
from recrawl.crawl.deliver.webhook import Webhook
from recrawl.crawl.detect.detector import detector
from recrawl.crawl.http.fetcher import HttpFetcher, Limits
from recrawl.crawl.polite.budget import MARK, pacer_from
from recrawl.crawl.polite.robots import READ, Robots
from recrawl.crawl.polite.robots_cache import RobotsKept
from recrawl.crawl.run.crawler import Crawler, OnEvent
from recrawl.errors import ParameterError, StoreError
from recrawl.store import SqliteStore


class Parts:
    """Store, engine, fetchers and crawler; ``close`` ends what needs ending.

    ``web`` is how fetchers reach the web where that is not by the system's means: resolver, ssl_context.
    """

    def __init__(self, settings: Settings, on_event: OnEvent | None = None, **web: Any) -> None:
        agent = settings.agent(__version__)
        finds = detector(settings.detector)
        self.clock = SystemClock()
        self._webhook = self._to(settings, agent)
        if not Path(settings.database).is_file():
            raise StoreError(f"{settings.database}: there is no such database; recrawl add makes one")
        self.store = SqliteStore(settings.database, keep=settings.keep, events=settings.event_limits())
        try:
            engine = engine_of(self.store, settings, self.clock.now())
            if not len(engine) and not self.store.posts():
                raise ParameterError(f"{settings.database}: has no pages; recrawl add adds some")
            pages = self._fetcher(settings, agent, settings.largest_body, **web)
            rules_txt = self._fetcher(settings, agent, READ + 1, cut=True, **web)
            self._fetchers = [pages, rules_txt]
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
                feed_interval=settings.seconds("feed_interval"),
                audit_share=share_of(settings.audit_share),
                audit_draws=settings.audit_draws,
                rate=lambda n: settings.rates(n)[0],
                on_event=on_event,
                followers={} if self._webhook is None else {"webhook": self._webhook},
                texts=settings.event_text,
            )
        except BaseException:
            self.store.close()
            raise

    def _fetcher(self, settings: Settings, agent: str, largest: int, **web: Any) -> HttpFetcher:
        """Redirects are followed by the crawler itself, politely."""
        limits = Limits(body=largest, redirects=0, total=settings.seconds("timeout"), connections=settings.concurrency)
        return HttpFetcher(agent, limits=limits, allow_private=settings.allow_private, clock=self.clock, **web)

    def _to(self, settings: Settings, agent: str) -> Webhook | None:
        """Where events are posted to."""
        if not settings.webhook.strip():
            return None
        timeout = settings.seconds("webhook_timeout")
        return Webhook(settings.webhook.strip(), settings.secret(), user_agent=agent, timeout=timeout)

    async def close(self) -> None:
        """Give everything back."""
        with suppress(Exception):
            for fetcher in self._fetchers:
                await fetcher.close()
            if self._webhook is not None:
                await self._webhook.close()
        self.crawler.close()
        self.store.close()
