-- Which sources had signalled a change before a crawl: bit k is set for source k.
ALTER TABLE observation ADD COLUMN signalled INTEGER NOT NULL DEFAULT 0;
