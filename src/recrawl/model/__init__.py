"""What follows from a page's parameters: its freshness at a crawl rate, the value of crawling it now."""

from recrawl.model.pages import Pages

__all__ = ["Pages"]
