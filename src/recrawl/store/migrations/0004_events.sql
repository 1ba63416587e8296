-- What became of pages, for subscribers: numbers go up by one and are never used again.
CREATE TABLE event (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    url TEXT NOT NULL,
    kind TEXT NOT NULL,             -- new, changed, redirected, gone
    at REAL NOT NULL,
    status INTEGER,
    reason TEXT,                    -- of gone: not-found, moved, removed
    content_type TEXT,
    old_digest TEXT,
    new_digest TEXT,
    old_final_url TEXT,
    new_final_url TEXT,
    old_text BLOB,                  -- compressed with zstd
    new_text BLOB,
    size INTEGER NOT NULL           -- bytes that the row counts as
);

-- The state of a page in its last event, with which the next one is compared.
CREATE TABLE told (
    page INTEGER PRIMARY KEY REFERENCES page (id) ON DELETE CASCADE,
    gone INTEGER NOT NULL,
    digest TEXT,
    final_url TEXT,
    text BLOB
);
INSERT INTO told (page, gone, digest, final_url)
    SELECT copy.page, page.times_gone > 0, copy.digest, copy.final_url FROM copy JOIN page ON page.id = copy.page;

-- Subscribers, and the position of each.
CREATE TABLE follower (
    name TEXT PRIMARY KEY,
    cursor INTEGER NOT NULL,        -- the last event that it has taken
    taken INTEGER NOT NULL,
    failures INTEGER NOT NULL,      -- in a row
    failure TEXT,                   -- why the last delivery failed
    failed_at REAL,
    taken_at REAL,
    dropped INTEGER NOT NULL        -- events that it has not taken and never will: the limit was reached
) WITHOUT ROWID;

-- How much there is, in one row.
CREATE TABLE event_total (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    id TEXT NOT NULL,               -- of this stream of events
    rows INTEGER NOT NULL,
    size INTEGER NOT NULL
);
INSERT INTO event_total (only, id, rows, size) VALUES (1, lower(hex(randomblob(8))), 0, 0);
