"""Recrawl: the add-on, which puts the two middlewares into Scrapy's settings."""

from __future__ import annotations

from scrapy.settings import BaseSettings

from recrawl.contrib.scrapy.downloader_middleware import RecrawlDownloaderMiddleware
from recrawl.contrib.scrapy.spider_middleware import RecrawlSpiderMiddleware

OUTERMOST = 1  # before all middlewares of Scrapy


class Recrawl:
    """The Scrapy add-on: ``ADDONS = {"recrawl.contrib.scrapy.Recrawl": 500}``."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Add the middlewares; an order that the project gives them stays."""
        names = {
            "SPIDER_MIDDLEWARES": RecrawlSpiderMiddleware,
            "DOWNLOADER_MIDDLEWARES": RecrawlDownloaderMiddleware,
        }
        for name, middleware in names.items():
            settings.setdefault_in_component_priority_dict(name, middleware, OUTERMOST)
