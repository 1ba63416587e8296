-- Which worker has which shard, and until when by the server's clock; the epoch goes up with each owner.
CREATE TABLE shard_lease (
    shard integer PRIMARY KEY,
    epoch bigint NOT NULL,
    worker text NOT NULL,
    until timestamptz NOT NULL
);
