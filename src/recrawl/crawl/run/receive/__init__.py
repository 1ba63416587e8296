"""What reaches a crawl from outside while it runs: deliveries of hubs, pings of sites; and what it hands to others."""
