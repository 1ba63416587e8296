"""What a crawl of a page is worth now, when it will be worth more, and the clocks of groups."""
