"""The live crawl: fetch, robots.txt, change detection, and the driver of the engine."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.crawl.audit.freshness import expected_freshness as expected_freshness
    from recrawl.crawl.audit.open_audit import saved_audits as saved_audits
    from recrawl.crawl.clock import Clock as Clock
    from recrawl.crawl.clock import MonotonicClock as MonotonicClock
    from recrawl.crawl.clock import SystemClock as SystemClock
    from recrawl.crawl.config.options import CrawlOptions as CrawlOptions
    from recrawl.crawl.config.rules import Rule as Rule
    from recrawl.crawl.config.rules import Rules as Rules
    from recrawl.crawl.config.settings import Settings as Settings
    from recrawl.crawl.deliver.webhook import Webhook as Webhook
    from recrawl.crawl.deliver.webhook import verify as verify
    from recrawl.crawl.detect.detector import Detection as Detection
    from recrawl.crawl.detect.detector import Detector as Detector
    from recrawl.crawl.detect.detector import detector as detector
    from recrawl.crawl.detect.detector import detector_for as detector_for
    from recrawl.crawl.detect.detector import same as same
    from recrawl.crawl.detect.detector import tag as tag
    from recrawl.crawl.detect.detectors import MainText as MainText
    from recrawl.crawl.detect.detectors import RawBytes as RawBytes
    from recrawl.crawl.detect.detectors import VisibleText as VisibleText
    from recrawl.crawl.feeds.polling import Feed as Feed
    from recrawl.crawl.feeds.polling import longest_interval as longest_interval
    from recrawl.crawl.formats.feed_items import Item as Item
    from recrawl.crawl.formats.feed_items import read_feed as read_feed
    from recrawl.crawl.formats.sitemaps import Entry as Entry
    from recrawl.crawl.formats.sitemaps import read_sitemap as read_sitemap
    from recrawl.crawl.http.cache_headers import fresh_for as fresh_for
    from recrawl.crawl.http.cache_headers import modified_at as modified_at
    from recrawl.crawl.http.charset import decode as decode
    from recrawl.crawl.http.fetched import FAILURES as FAILURES
    from recrawl.crawl.http.fetched import Fetched as Fetched
    from recrawl.crawl.http.fetched import Fetcher as Fetcher
    from recrawl.crawl.http.fetcher import HttpFetcher as HttpFetcher
    from recrawl.crawl.http.fetcher import Limits as Limits
    from recrawl.crawl.http.memory import Answer as Answer
    from recrawl.crawl.http.memory import ManualClock as ManualClock
    from recrawl.crawl.http.memory import MemoryWeb as MemoryWeb
    from recrawl.crawl.polite.budget import Budget as Budget
    from recrawl.crawl.polite.host_limiter import HostLimiter as HostLimiter
    from recrawl.crawl.polite.hours import Hours as Hours
    from recrawl.crawl.polite.not_modified import NotModified as NotModified
    from recrawl.crawl.polite.not_modified import Validators as Validators
    from recrawl.crawl.polite.robots import CachedRobots as CachedRobots
    from recrawl.crawl.polite.robots import Robots as Robots
    from recrawl.crawl.polite.robots import RobotsRule as RobotsRule
    from recrawl.crawl.polite.robots_cache import RobotsCache as RobotsCache
    from recrawl.crawl.run.commands import add_command as add_command
    from recrawl.crawl.run.commands import audit_command as audit_command
    from recrawl.crawl.run.commands import remove_command as remove_command
    from recrawl.crawl.run.crawler import Crawler as Crawler
    from recrawl.crawl.run.opening.assemble import LiveCrawl as LiveCrawl
    from recrawl.crawl.run.opening.assemble import Web as Web
    from recrawl.crawl.run.opening.assemble import engine_of as engine_of
    from recrawl.crawl.run.opening.assemble import new_crawler as new_crawler
    from recrawl.crawl.run.opening.assemble import open_crawl as open_crawl
    from recrawl.crawl.run.opening.pages import add_pages as add_pages
    from recrawl.crawl.run.opening.pages import open_engine as open_engine
    from recrawl.crawl.run.opening.pages import save_pages as save_pages
    from recrawl.crawl.run.opening.warming import warm_up as warm_up
    from recrawl.crawl.run.progress import Counters as Counters
    from recrawl.crawl.signals.inbox import Inbox as Inbox
    from recrawl.crawl.signals.inbox import Taken as Taken
    from recrawl.crawl.signals.sorting import Signal as Signal
    from recrawl.crawl.signals.sources import Source as Source
    from recrawl.crawl.urls import canonical as canonical

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "audit.freshness": ["expected_freshness"],
        "audit.open_audit": ["saved_audits"],
        "clock": ["Clock", "MonotonicClock", "SystemClock"],
        "config.options": ["CrawlOptions"],
        "config.rules": ["Rule", "Rules"],
        "config.settings": ["Settings"],
        "deliver.webhook": ["Webhook", "verify"],
        "detect.detector": ["Detection", "Detector", "detector", "detector_for", "same", "tag"],
        "detect.detectors": ["MainText", "RawBytes", "VisibleText"],
        "feeds.polling": ["Feed", "longest_interval"],
        "formats.feed_items": ["Item", "read_feed"],
        "formats.sitemaps": ["Entry", "read_sitemap"],
        "http.cache_headers": ["fresh_for", "modified_at"],
        "http.charset": ["decode"],
        "http.fetched": ["FAILURES", "Fetched", "Fetcher"],
        "http.fetcher": ["HttpFetcher", "Limits"],
        "http.memory": ["Answer", "ManualClock", "MemoryWeb"],
        "polite.budget": ["Budget"],
        "polite.host_limiter": ["HostLimiter"],
        "polite.hours": ["Hours"],
        "polite.not_modified": ["NotModified", "Validators"],
        "polite.robots": ["CachedRobots", "Robots", "RobotsRule"],
        "polite.robots_cache": ["RobotsCache"],
        "run.opening.assemble": ["LiveCrawl", "Web", "engine_of", "new_crawler", "open_crawl"],
        "run.commands": ["add_command", "audit_command", "remove_command"],
        "run.progress": ["Counters"],
        "run.crawler": ["Crawler"],
        "run.opening.pages": ["add_pages", "open_engine", "save_pages"],
        "run.opening.warming": ["warm_up"],
        "signals.inbox": ["Inbox", "Taken"],
        "signals.sorting": ["Signal"],
        "signals.sources": ["Source"],
        "urls": ["canonical"],
    },
)
