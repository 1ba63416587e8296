-- How many of the changes seen the page's own rate explains; before siblings and credited signals, all of them.
ALTER TABLE page ADD COLUMN own REAL NOT NULL DEFAULT 0.0;
UPDATE page SET own = n_changes;
