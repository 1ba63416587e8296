"""Settings and rules of a crawl."""
