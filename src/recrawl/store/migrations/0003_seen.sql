-- What the page was like lately, so that content which returns is distinguished from content that is new.
ALTER TABLE copy ADD COLUMN recent TEXT NOT NULL DEFAULT '';
ALTER TABLE copy ADD COLUMN n_flaps INTEGER NOT NULL DEFAULT 0;
UPDATE copy SET recent = substr(replace(substr(digest, instr(digest, ':') + 1), ' ', ''), 1, 16) WHERE digest IS NOT NULL;
ALTER TABLE observation ADD COLUMN flapping INTEGER NOT NULL DEFAULT 0;
-- Items of a feed came and went between two polls.
ALTER TABLE observation ADD COLUMN rolled_off INTEGER NOT NULL DEFAULT 0;
