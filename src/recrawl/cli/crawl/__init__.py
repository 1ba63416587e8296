"""Commands for a crawl: its pages, the process that crawls, and what it reports."""
