-- Small facts by name: the engine as a whole, pacing, robots rules. Values are JSON.
CREATE TABLE note (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- One row per page: what the engine needs to go on. Times are seconds since 1970, rates per second.
CREATE TABLE page (
    id INTEGER PRIMARY KEY,
    url TEXT NOT NULL UNIQUE,
    given REAL NOT NULL,            -- importance as given
    fetched_at REAL NOT NULL,
    change_rate REAL NOT NULL,
    importance REAL NOT NULL,
    cost REAL NOT NULL,
    evidence REAL NOT NULL,
    shape REAL NOT NULL,            -- the gamma belief about the rate of changes that no signal tells of
    rate REAL NOT NULL,
    prior_at INTEGER NOT NULL,      -- the prior that this belief goes with, counted from 0
    watched REAL NOT NULL,
    n_crawls INTEGER NOT NULL,
    n_changes INTEGER NOT NULL,
    told INTEGER NOT NULL,
    request_weight REAL NOT NULL,
    requested_at REAL NOT NULL,
    watched_from REAL NOT NULL,
    paused INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    times_gone INTEGER NOT NULL,
    wait_until REAL NOT NULL,
    sources BLOB NOT NULL,          -- per signal source, little-endian doubles: shape, rate, heard, signals, recall, false_rate
    more TEXT                       -- columns that this schema does not know yet, as JSON
);

-- Politeness per host, kept across restarts.
CREATE TABLE host (
    name TEXT PRIMARY KEY,
    spacing REAL NOT NULL,
    concurrency REAL NOT NULL,
    held_until REAL NOT NULL
) WITHOUT ROWID;

-- The newest copy of a page.
CREATE TABLE copy (
    page INTEGER PRIMARY KEY REFERENCES page (id) ON DELETE CASCADE,
    fetched_at REAL NOT NULL,
    changed_at REAL NOT NULL,
    status INTEGER,
    digest TEXT,
    etag TEXT,
    last_modified TEXT,
    content_type TEXT,
    final_url TEXT
);

-- What every crawl found, in the order in which it was saved.
CREATE TABLE observation (
    id INTEGER PRIMARY KEY,
    page INTEGER NOT NULL REFERENCES page (id) ON DELETE CASCADE,
    began_at REAL NOT NULL,
    took REAL NOT NULL,
    status INTEGER,
    changed INTEGER,
    digest TEXT,
    failure TEXT,
    gone INTEGER NOT NULL,
    final_url TEXT,
    etag TEXT,
    last_modified TEXT,
    content_type TEXT,
    requests INTEGER NOT NULL
);
CREATE INDEX observation_page ON observation (page);
CREATE INDEX observation_began_at ON observation (began_at);

-- Bodies by what is in them, compressed with zstd.
CREATE TABLE body (
    key BLOB PRIMARY KEY,
    size INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE TABLE version (
    id INTEGER PRIMARY KEY,
    page INTEGER NOT NULL REFERENCES page (id) ON DELETE CASCADE,
    fetched_at REAL NOT NULL,
    key BLOB NOT NULL REFERENCES body (key)
);
CREATE INDEX version_page ON version (page);
CREATE INDEX version_key ON version (key);

-- Commands for the running crawler.
CREATE TABLE post (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    value TEXT NOT NULL
);
