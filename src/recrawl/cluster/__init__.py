"""Several machines, one crawl: leases of shards."""
