"""Assembly of a live crawl: the one place where store, engine, fetchers, robots and crawler are put together.

The command, audits, the demo and services use it. Fetchers are injected by ``Web``, so that any fetcher can be used.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from recrawl.crawl.clock import Clock, SystemClock
from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.config.shares import share_of
from recrawl.crawl.detect.detector import detector
from recrawl.crawl.http.fetched import Fetcher
from recrawl.crawl.polite.budget import Budget
from recrawl.crawl.polite.robots import READ, Robots
from recrawl.crawl.polite.robots_cache import RobotsCache
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.run.opening.notifiers import check_notify, open_notifiers, texts_wanted
from recrawl.crawl.run.opening.pages import Part, open_engine
from recrawl.crawl.run.opening.reload import NOTE, Reloaded, adopted, reload_settings
from recrawl.engine import Engine
from recrawl.errors import ParameterError, RecrawlError
from recrawl.logs import event
from recrawl.store import OwnedStore, open_store
from recrawl.store.protocol import Store

if TYPE_CHECKING:
    from recrawl.crawl.deliver.webhook import Webhook
    from recrawl.crawl.http.fetcher import HttpFetcher, Limits


log = logging.getLogger(__name__)

_SIGNAL_DELAY = 0.05  # seconds that signals wait for others: fewer transactions


@dataclass(frozen=True)
class Web:
    """How a crawl reaches the web: the fetcher of pages, the one of robots.txt (None: not used), and the clock."""

    user_agent: str
    pages: Fetcher
    robots: Fetcher | None
    clock: Clock

    @classmethod
    def http(cls, settings: Settings, **system: Any) -> Web:
        """By HTTP; ``system`` are the options of `HttpFetcher` that replace the system's: resolver, ssl_context.

        The fetchers follow no redirects: the crawler does, politely.
        """
        from recrawl.crawl.http.fetcher import Limits

        clock = SystemClock()
        total, connections = settings.seconds("timeout"), settings.concurrency
        limits = Limits(body=settings.largest_body, redirects=0, total=total, connections=connections)
        pages, robots = http_fetcher(settings, limits, clock, **system), None
        if settings.robots:
            robots = http_fetcher(settings, replace(limits, body=READ + 1, cut=True), clock, **system)
        return cls(agent_of(settings), pages, robots, clock)

    async def close(self) -> None:
        """Close the fetchers."""
        for fetcher in (self.pages, self.robots):
            if fetcher is not None:
                await fetcher.close()


def agent_of(settings: Settings) -> str:
    """How the crawler names itself to servers."""
    from recrawl import __version__

    return settings.agent(__version__)


def http_fetcher(settings: Settings, limits: Limits, clock: Clock, **system: Any) -> HttpFetcher:
    """A fetcher under these settings."""
    from recrawl.crawl.http.fetcher import HttpFetcher

    agent, private = agent_of(settings), settings.allow_private
    return HttpFetcher(agent, limits=limits, allow_private=private, clock=clock, **system)


def check_settings(settings: Settings) -> None:
    """Raise ParameterError if a crawl could not start under these settings; a contact is not required."""
    from recrawl.crawl.deliver.webhook import check_webhook
    from recrawl.crawl.http.fetcher import check_headers

    detector(settings.detector)
    check_headers({"user-agent": settings.user_agent.strip() or settings.contact})
    if settings.webhook.strip():
        check_webhook(settings.webhook.strip(), settings.secret())
    check_notify(settings)


async def engine_of(
    store: Store, settings: Settings, now: float, part: Part | None = None, *, save: bool = False
) -> Engine:
    """The engine of a store, or of a part of its pages, under these settings; ``save`` as for `open_engine`."""
    engine = await open_engine(
        store,
        now,
        rules=settings.rules(),
        **settings.host_rules(),
        min_change_probability=share_of(settings.min_change_probability, "min_change_probability"),
        siblings=settings.siblings,
        **settings.choices(),
        part=part,
        kinds=settings.signal_kinds() if save else (),
        save=save,
        checkpoint=save and settings.checkpoint_pages > 0,
    )
    n_pages = len(engine) if part is None else part.totals.pages
    if n_pages:
        engine.budget = settings.rates(n_pages)[1]
    return engine


def options_of(settings: Settings, n_pages: int, now: float) -> CrawlOptions:
    """The options of a crawler under these settings."""
    return CrawlOptions(
        budget=Budget.parse(settings.budget, n_pages, now, settings.opening()),
        rules=settings.rules(),
        detector=detector(settings.detector),
        concurrency=settings.concurrency,
        longest_delay=settings.seconds("longest_delay"),
        longest_hint=settings.seconds("longest_hint"),
        feed_interval=settings.seconds("feed_interval"),
        audit_share=share_of(settings.audit_share),
        audit_draws=settings.audit_draws,
        callback_url=settings.callback_url(),
        texts=settings.event_text or texts_wanted(settings),
        listings=settings.listings,
        signal_delay=_SIGNAL_DELAY,
        checkpoint_pages=settings.checkpoint_pages,
    )


def new_crawler(engine: Engine, store: Store, web: Web, options: CrawlOptions | None = None) -> Crawler:
    """A crawler of an engine's pages; robots.txt is cached in the store."""
    robots = None
    if web.robots is not None:
        robots = Robots(web.robots, web.user_agent, web.clock, RobotsCache(store))
    return Crawler(engine, store, web.pages, options, robots=robots, clock=web.clock)


class LiveCrawl:
    """The crawl of a database: store, engine, fetchers, senders and crawler; ``close`` ends them all."""

    def __init__(self, settings: Settings, store: OwnedStore, web: Web, crawler: Crawler) -> None:
        self.settings, self.store, self.web, self.crawler = settings, store, web, crawler
        self._reloading = asyncio.Lock()

    @property
    def clock(self) -> Clock:
        """The clock of the crawl."""
        return self.web.clock

    async def reload(self, read: Callable[[], Settings]) -> Reloaded:
        """Read the settings again and use them as far as is possible without a restart.

        Settings that are not valid are refused and those in use stay. The result is logged, and noted in the store.
        """
        async with self._reloading:
            try:
                new = read()
                check_settings(new)
            except (RecrawlError, OSError) as problem:
                done = Reloaded(error=" ".join(str(problem).split()))
                event(log, logging.ERROR, "settings.refused", error=done.error)
            else:
                done = await reload_settings(self.crawler.components, self.settings, new)
                self.settings = adopted(self.settings, new)
                named = {name: ",".join(getattr(done, name)) for name in ("changed", "needs_restart")}
                event(log, logging.INFO, "settings.reloaded", **named)
            number = (await self.store.notes(NOTE)).get(NOTE, {"number": 0})["number"] + 1
            await self.crawler.save_notes({NOTE: done.as_note(number)})
        return done

    async def close(self) -> None:
        """Close everything."""
        with suppress(Exception):
            await self.web.close()
            for callback in self.crawler.components.deliveries.callbacks:
                if hasattr(callback, "close"):
                    await callback.close()
        self.crawler.close()
        await self.store.close()


async def open_crawl(
    settings: Settings,
    *,
    web: Web | None = None,
    store: OwnedStore | None = None,
    may_be_empty: bool = False,
    prepare: Callable[[], Awaitable[None]] | None = None,
    **options: Any,
) -> LiveCrawl:
    """Open the crawl of a database; ``options`` are fields of `CrawlOptions` that replace those of the settings.

    With ``may_be_empty`` a database that does not exist is made, and one without pages is opened. ``store`` is one that
    is open already. ``prepare`` is awaited when the database is open, before the engine is loaded.
    """
    check_settings(settings)
    web = web or Web.http(settings)
    webhook = _webhook(settings)
    limits = settings.event_limits()
    store = store or open_store(settings.database, keep=settings.keep, create=may_be_empty, events=limits)
    try:
        if prepare is not None:
            await prepare()
        now = web.clock.now()
        engine = await engine_of(store, settings, now, save=True)
        if not may_be_empty and not len(engine) and not await store.commands() and not await store.listings():
            raise ParameterError(f"{settings.database_name}: has no pages; recrawl add adds some")
        chosen = options_of(settings, len(engine), now)
        subscribers = await open_notifiers(settings, store, web.clock)
        subscribers |= {} if webhook is None else {"webhook": webhook}
        chosen = replace(chosen, subscribers=subscribers)
        crawler = new_crawler(engine, store, web, replace(chosen, **options))
    except BaseException:
        await store.close()
        raise
    return LiveCrawl(settings, store, web, crawler)


def _webhook(settings: Settings) -> Webhook | None:
    """Where events are sent to."""
    if not settings.webhook.strip():
        return None
    from recrawl.crawl.deliver.webhook import Webhook

    timeout = settings.seconds("webhook_timeout")
    return Webhook(settings.webhook.strip(), settings.secret(), user_agent=agent_of(settings), timeout=timeout)
