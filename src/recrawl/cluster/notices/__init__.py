"""Notifications of a cluster: sent by the one worker that has the lease for them, from the events of all shards."""
