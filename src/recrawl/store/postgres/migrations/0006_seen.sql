-- What was observed of a page and what is given of its rate as numbers; before, as JSON in `more`, where old rows stay.
ALTER TABLE page
    ADD COLUMN seen_time double precision NOT NULL DEFAULT -1,      -- of unchanged intervals; below 0: see `more`
    ADD COLUMN seen_changes double precision NOT NULL DEFAULT -1,
    ADD COLUMN seen_logs double precision NOT NULL DEFAULT -1,      -- sum of the logarithms of changed intervals
    ADD COLUMN given_changes double precision NOT NULL DEFAULT -1,  -- that a given rate stands for; below 0: see `more`
    ADD COLUMN given_time double precision NOT NULL DEFAULT -1;
