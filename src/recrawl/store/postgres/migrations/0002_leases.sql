-- Pages that were handed to crawlers; ended leases stay for a while, so that an outcome that is sent again counts once.
CREATE TABLE lease (
    id text COLLATE "C" PRIMARY KEY,
    url text NOT NULL,
    picked_at double precision NOT NULL,
    until double precision NOT NULL,
    state text NOT NULL,                        -- held, recorded or released
    conditional boolean NOT NULL                -- whether validators were given
);
CREATE INDEX lease_held ON lease (id) WHERE state = 'held';
CREATE INDEX lease_until ON lease (until);
