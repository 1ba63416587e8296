"""A fetcher for pages that exist only after their scripts have run. Needs `pip install 'recrawl[browser]'`."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.contrib.browser.fetcher import BrowserFetcher as BrowserFetcher
    from recrawl.contrib.browser.options import BrowserLimits as BrowserLimits
    from recrawl.contrib.browser.options import Render as Render

__getattr__, __dir__, __all__ = attach(
    __name__, {"fetcher": ["BrowserFetcher"], "options": ["BrowserLimits", "Render"]}
)
