"""Opening of a crawl by its settings: with a browser where rules let pages be rendered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recrawl.cli.shared.options.extras import need

if TYPE_CHECKING:
    from recrawl.crawl.config.settings import Settings
    from recrawl.crawl.run.opening.assemble import LiveCrawl


async def opened(settings: Settings, **options: Any) -> LiveCrawl:
    """The crawl of a database, with options of `open_crawl`; ParameterError if a browser is needed and missing."""
    if any(rule.render for rule in settings.rules().rules):
        need("browser")
        from recrawl.contrib.browser.assemble import open_rendered

        return await open_rendered(settings, **options)
    from recrawl.crawl.run.opening.assemble import open_crawl

    return await open_crawl(settings, **options)
