"""Histories that other tools keep, read as crawl logs: WARC files, stores of page watchers, saved sitemaps."""
