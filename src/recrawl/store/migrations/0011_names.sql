-- Tables and columns get the names that the code and PostgreSQL have for them; rows, indexes and keys stay.
ALTER TABLE post RENAME TO command;
ALTER TABLE told RENAME TO last_event;
ALTER TABLE follower RENAME TO subscriber;
ALTER TABLE page RENAME COLUMN told TO fixed_rate;  -- whether the rate of changes is given
