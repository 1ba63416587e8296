-- Pages that were handed to crawlers; ended leases stay for a while, so that an outcome that is sent again counts once.
CREATE TABLE lease (
    id TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    picked_at REAL NOT NULL,
    until REAL NOT NULL,
    state TEXT NOT NULL,            -- held, recorded or released
    conditional INTEGER NOT NULL    -- whether validators were given
) WITHOUT ROWID;
