"""Who owns a shard: leases and their renewal, what an owner may do, and the connections that check it."""
