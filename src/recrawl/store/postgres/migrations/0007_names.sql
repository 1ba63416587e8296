-- Columns get the names that the code has for them.
ALTER TABLE page RENAME COLUMN told TO fixed_rate;  -- whether the rate of changes is given
ALTER TABLE owner RENAME COLUMN words TO announced;
