"""A Scrapy add-on: recrawl decides which page a spider fetches next. Needs `pip install 'recrawl[scrapy,crawl]'`.

``ADDONS = {"recrawl.contrib.scrapy.Recrawl": 500}`` with ``RECRAWL_BUDGET`` and ``RECRAWL_DATABASE`` turns a spider
into one that keeps its pages fresh.

- `RecrawlSpiderMiddleware`: pages enter by ``process_start``, which does not end while the spider is open; sees what
  callbacks yield.
- `RecrawlDownloaderMiddleware`, the outermost: sets validators, sees the last answer of a request, after retries and
  redirects.
- A `Source` gives pages and takes outcomes: `ProcessSource` has a desk in a process beside Scrapy's, `DatabaseSource`
  one in Scrapy's process, `ServiceSource` asks ``recrawl serve``.
"""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.contrib.scrapy.addon import Recrawl as Recrawl
    from recrawl.contrib.scrapy.database import DatabaseSource as DatabaseSource
    from recrawl.contrib.scrapy.downloader_middleware import RecrawlDownloaderMiddleware as RecrawlDownloaderMiddleware
    from recrawl.contrib.scrapy.process import ProcessSource as ProcessSource
    from recrawl.contrib.scrapy.sources import ServiceSource as ServiceSource
    from recrawl.contrib.scrapy.sources import Source as Source
    from recrawl.contrib.scrapy.spider_middleware import RecrawlSpiderMiddleware as RecrawlSpiderMiddleware

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "addon": ["Recrawl"],
        "database": ["DatabaseSource"],
        "downloader_middleware": ["RecrawlDownloaderMiddleware"],
        "process": ["ProcessSource"],
        "sources": ["ServiceSource", "Source"],
        "spider_middleware": ["RecrawlSpiderMiddleware"],
    },
)
