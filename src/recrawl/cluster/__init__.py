"""Several machines, one crawl: shards, their leases, workers, shares of the budget."""
