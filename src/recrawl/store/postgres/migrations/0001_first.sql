-- Texts of any length are found by `key`, 16 bytes of BLAKE2b: an entry of a B-tree holds at most 2.7 kB.
-- Times are seconds since 1970, rates per second.

-- Small facts by name: the engine as a whole, pacing, robots rules. Values are JSON.
CREATE TABLE note (
    key bytea PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    value text NOT NULL
);
CREATE INDEX note_name ON note (left(name, 500));

-- One row per page: what the engine needs to go on.
CREATE TABLE page (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    given double precision NOT NULL,            -- importance as given
    fetched_at double precision NOT NULL,
    change_rate double precision NOT NULL,
    importance double precision NOT NULL,
    cost double precision NOT NULL,
    evidence double precision NOT NULL,
    shape double precision NOT NULL,            -- the gamma belief about the rate of changes that no signal tells of
    rate double precision NOT NULL,
    watched double precision NOT NULL,
    own double precision NOT NULL,              -- how many of the changes seen the page's own rate explains
    request_weight double precision NOT NULL,
    requested_at double precision NOT NULL,
    watched_from double precision NOT NULL,
    wait_until double precision NOT NULL,
    prior_at bigint NOT NULL,                   -- the prior that this belief goes with, counted from 0
    n_crawls bigint NOT NULL,
    n_changes bigint NOT NULL,
    failures bigint NOT NULL,
    times_gone bigint NOT NULL,
    told boolean NOT NULL,
    paused boolean NOT NULL,
    key bytea NOT NULL UNIQUE,
    url text COLLATE "C" NOT NULL,
    more text                                   -- columns that this schema does not know yet, as JSON
) WITH (fillfactor = 80);
CREATE INDEX page_url ON page (left(url, 500));
CREATE INDEX page_failures ON page (id) WHERE failures > 0;

-- Politeness per host, kept across restarts.
CREATE TABLE host (
    key bytea PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    spacing double precision NOT NULL,
    concurrency double precision NOT NULL,
    held_until double precision NOT NULL
);

-- The newest copy of a page.
CREATE TABLE copy (
    page bigint PRIMARY KEY REFERENCES page (id) ON DELETE CASCADE,
    fetched_at double precision NOT NULL,
    changed_at double precision NOT NULL,
    status integer,
    digest text,
    etag text,
    last_modified text,
    content_type text,
    final_url text,
    recent text NOT NULL,                       -- the last contents, by digest
    n_flaps integer NOT NULL
);

-- What every crawl found, in the order in which it was saved.
CREATE TABLE observation (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    page bigint NOT NULL REFERENCES page (id) ON DELETE CASCADE,
    began_at double precision NOT NULL,
    took double precision NOT NULL,
    status integer,
    changed boolean,
    digest text,
    failure text,
    gone boolean NOT NULL,
    final_url text,
    etag text,
    last_modified text,
    content_type text,
    requests bigint NOT NULL,
    flapping boolean NOT NULL,
    rolled_off boolean NOT NULL
);
CREATE INDEX observation_page ON observation (page, id);
CREATE INDEX observation_began_at ON observation USING brin (began_at) WITH (pages_per_range = 32, autosummarize = on);
CREATE INDEX observation_robots ON observation (began_at) WHERE failure = 'robots';

-- Bodies by what is in them, compressed with zstd.
CREATE TABLE body (
    key bytea PRIMARY KEY,
    size bigint NOT NULL,
    data bytea NOT NULL
);
ALTER TABLE body ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE version (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    page bigint NOT NULL REFERENCES page (id) ON DELETE CASCADE,
    fetched_at double precision NOT NULL,
    key bytea NOT NULL REFERENCES body (key)
);
CREATE INDEX version_page ON version (page, id);
CREATE INDEX version_key ON version (key);

-- Commands for the running crawler.
CREATE TABLE command (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    value text NOT NULL
);

-- What became of pages, for subscribers: numbers go up by one and are never used again.
CREATE TABLE event (
    number bigint PRIMARY KEY,
    url text NOT NULL,
    kind text NOT NULL,                         -- new, changed, redirected, gone
    at double precision NOT NULL,
    status integer,
    reason text,                                -- of gone: not-found, moved, removed
    content_type text,
    old_digest text,
    new_digest text,
    old_final_url text,
    new_final_url text,
    old_text bytea,                             -- compressed with zstd
    new_text bytea,
    size bigint NOT NULL                        -- bytes that the row counts as
);

-- The state of a page in its last event: the next one is compared with it.
CREATE TABLE last_event (
    page bigint PRIMARY KEY REFERENCES page (id) ON DELETE CASCADE,
    gone boolean NOT NULL,
    digest text,
    final_url text,
    text bytea
);

CREATE TABLE subscriber (
    name text COLLATE "C" PRIMARY KEY,
    cursor bigint NOT NULL,                     -- the last event that was delivered
    taken bigint NOT NULL,
    failures bigint NOT NULL,                   -- in a row
    failure text,                               -- why the last delivery failed
    failed_at double precision,
    taken_at double precision,
    dropped bigint NOT NULL                     -- events that were deleted before they were delivered
);

-- How many events there are, in one row.
CREATE TABLE event_total (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    id text NOT NULL,                           -- of this stream of events
    last bigint NOT NULL,                       -- the last number given
    rows bigint NOT NULL,
    size bigint NOT NULL
);
INSERT INTO event_total (id, last, rows, size) VALUES (substr(replace(gen_random_uuid()::text, '-', ''), 1, 16), 0, 0, 0);

-- Signals that came since the newest copy of a page: the newest of each source.
CREATE TABLE signal (
    page bigint NOT NULL REFERENCES page (id) ON DELETE CASCADE,
    source integer NOT NULL,
    at double precision NOT NULL,               -- when it came
    changed_at double precision,                -- when the page changed, as the source says
    resolution double precision NOT NULL,       -- the change was at changed_at or up to so many seconds later
    PRIMARY KEY (page, source)
);

-- Sitemaps, feeds and index pages that are polled; they are no pages.
CREATE TABLE listing (
    key bytea PRIMARY KEY,
    url text COLLATE "C" NOT NULL,
    state text NOT NULL,                        -- JSON: kind, validators, when it was polled, what its signals were worth
    entries bytea NOT NULL                      -- fingerprints of URLs and their dates at the last poll, packed
);

-- The process that has the database to itself. The advisory lock says whether it is still there.
CREATE TABLE owner (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    epoch bigint NOT NULL,                      -- goes up with each owner
    pid integer,
    host text,
    words text NOT NULL                         -- what the process announces, a line each
);
INSERT INTO owner (epoch, words) VALUES (0, '');
