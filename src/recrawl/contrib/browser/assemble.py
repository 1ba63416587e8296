"""A crawl whose pages are rendered where its rules say so."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from recrawl.contrib.browser.fetcher import BrowserFetcher
from recrawl.contrib.browser.options import Render
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.http.fetcher import Limits
from recrawl.crawl.polite.robots import Robots
from recrawl.crawl.run.opening.assemble import LiveCrawl, Web, http_fetcher, open_crawl
from recrawl.errors import ParameterError

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


async def open_rendered(settings: Settings, **options: Any) -> LiveCrawl:
    """Open the crawl of a database whose rules let pages be rendered, with options of `open_crawl`.

    Rules that are reloaded count.
    """
    web, fetcher = _rendering(settings, settings.rules())
    live = await open_crawl(settings, web=web, **options)
    components = live.crawler.components
    fetcher.render, fetcher.robots = by_rules(components.options.rules), components.robots
    return live


def rendered_web(settings: Settings, rules: Rules) -> Web:
    """The web of a worker, whose shards share a browser; ``rules`` may be replaced while it is in use.

    What scripts may ask for is read from the robots.txt of their hosts, whichever shards these belong to.
    """
    web, fetcher = _rendering(settings, rules)
    fetcher.robots = None if web.robots is None else Robots(web.robots, web.user_agent, web.clock)
    return web


def _rendering(settings: Settings, rules: Rules) -> tuple[Web, BrowserFetcher]:
    web = Web.http(settings)
    total, most = settings.seconds("timeout"), settings.concurrency
    further = http_fetcher(settings, Limits(body=settings.largest_body, total=total, connections=most), web.clock)
    path = settings.browser.strip() or _found()
    fetcher = BrowserFetcher(web.pages, further, by_rules(rules), user_agent=web.user_agent, executable=path)
    return replace(web, pages=fetcher), fetcher


def by_rules(rules: Rules) -> Callable[[str], Render | None]:
    """What rules say of rendering."""

    def render(url: str) -> Render | None:
        found = rules.of(url)
        if found.render is None:
            return None
        return Render("always" if found.render == "always" else "auto", found.wait_for)

    return render


def _found() -> str:
    path = next((found for name in _NAMES if (found := shutil.which(name))), None)
    if path is None:
        raise ParameterError("rules with render need Chromium, which is not found: give its path as browser")
    return path
