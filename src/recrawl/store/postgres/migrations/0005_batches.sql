-- The number of the last write of a shard's owner: a write whose answer was lost is not made twice.
ALTER TABLE owner ADD COLUMN batch bigint NOT NULL DEFAULT 0;
