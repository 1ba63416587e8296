"""What is served: the crawl of this process, or a cluster whose workers crawl elsewhere."""
