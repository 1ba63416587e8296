-- What was observed of a page and what is given of its rate as numbers; before, as JSON in `more`, where old rows stay.
ALTER TABLE page ADD COLUMN seen_time REAL NOT NULL DEFAULT -1.0;     -- of unchanged intervals; below 0: see `more`
ALTER TABLE page ADD COLUMN seen_changes REAL NOT NULL DEFAULT -1.0;
ALTER TABLE page ADD COLUMN seen_logs REAL NOT NULL DEFAULT -1.0;     -- sum of the logarithms of changed intervals
ALTER TABLE page ADD COLUMN given_changes REAL NOT NULL DEFAULT -1.0; -- that a given rate stands for; below 0: see `more`
ALTER TABLE page ADD COLUMN given_time REAL NOT NULL DEFAULT -1.0;
