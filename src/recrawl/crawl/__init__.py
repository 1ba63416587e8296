"""The live web: fetching, robots, URLs, change detection, sitemaps."""
