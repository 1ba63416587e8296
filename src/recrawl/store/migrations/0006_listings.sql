-- Sitemaps, feeds and index pages that are polled; they are no pages.
CREATE TABLE listing (
    url TEXT PRIMARY KEY,
    state TEXT NOT NULL,            -- JSON: kind, validators, when it was polled, what its signals were worth
    entries BLOB NOT NULL           -- fingerprints of URLs and their dates at the last poll, packed
);
