-- For a state of the engine that is kept beside the database: what was written since the marks of such states.
CREATE TABLE page_log (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    mark TEXT,                      -- random, of a state; else what one transaction wrote:
    pages BLOB,                     -- numbers of pages, 8 bytes each, little-endian
    removed TEXT                    -- URLs of removed pages as JSON
);
