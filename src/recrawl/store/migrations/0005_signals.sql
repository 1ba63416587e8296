-- Signals that came since the newest copy of a page: the newest of each source.
CREATE TABLE signal (
    page INTEGER NOT NULL REFERENCES page (id) ON DELETE CASCADE,
    source INTEGER NOT NULL,
    at REAL NOT NULL,               -- when it came
    changed_at REAL,                -- when the page changed, as the source says
    resolution REAL NOT NULL,       -- the change was at changed_at or up to so many seconds later
    PRIMARY KEY (page, source)
) WITHOUT ROWID;
