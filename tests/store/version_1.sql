BEGIN TRANSACTION;
CREATE TABLE body (
    key BLOB PRIMARY KEY,
    size INTEGER NOT NULL,
    data BLOB NOT NULL
);
INSERT INTO "body" VALUES(X'A81256003E1EB809C67265CD01908A05',9,X'28B52FFD20094900003C703E7365636F6E64');
CREATE TABLE copy (
    page INTEGER PRIMARY KEY REFERENCES page (id) ON DELETE CASCADE,
    fetched_at REAL NOT NULL,
    changed_at REAL NOT NULL,
    status INTEGER,
    digest TEXT,
    etag TEXT,
    last_modified TEXT,
    content_type TEXT,
    final_url TEXT
);
INSERT INTO "copy" VALUES(1,1700004000.0,1700004000.0,200,'text-1:ab','"b"',NULL,'text/html',NULL);
INSERT INTO "copy" VALUES(2,1700000010.0,1700000010.0,200,'text-1:bb',NULL,NULL,NULL,NULL);
CREATE TABLE host (
    name TEXT PRIMARY KEY,
    spacing REAL NOT NULL,
    concurrency REAL NOT NULL,
    held_until REAL NOT NULL
) WITHOUT ROWID;
INSERT INTO "host" VALUES('a.example',1.0,1.0,-9e999);
CREATE TABLE note (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "note" VALUES('delay:a.example','2.0');
INSERT INTO "note" VALUES('engine','{"settings": {"budget": 0.5, "objective": "freshness", "sources": 1, "lease": 300.0, "floor": 0.0, "day": 86400.0, "half_life": 730.0, "host_spacing": 1.0, "host_concurrency": 1}, "prior": [[1.0, 207000.0], [1.0, 3.0]], "priors": [[1.0, 207000.0]], "scores": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "crawls": 1, "refit_at": 200, "threshold": 0.0}');
INSERT INTO "note" VALUES('paced_until','1700004001.0');
CREATE TABLE observation (
    id INTEGER PRIMARY KEY,
    page INTEGER NOT NULL REFERENCES page (id) ON DELETE CASCADE,
    began_at REAL NOT NULL,
    took REAL NOT NULL,
    status INTEGER,
    changed INTEGER,
    digest TEXT,
    failure TEXT,
    gone INTEGER NOT NULL,
    final_url TEXT,
    etag TEXT,
    last_modified TEXT,
    content_type TEXT,
    requests INTEGER NOT NULL
);
INSERT INTO "observation" VALUES(1,1,1700000009.0,0.25,200,NULL,'text-1:aa',NULL,0,NULL,'"a"',NULL,'text/html',1);
INSERT INTO "observation" VALUES(2,2,1700000010.0,0.5,200,NULL,'text-1:bb',NULL,0,NULL,NULL,NULL,NULL,1);
INSERT INTO "observation" VALUES(3,1,1700004000.0,0.25,200,1,'text-1:ab',NULL,0,NULL,'"b"',NULL,'text/html',1);
CREATE TABLE page (
    id INTEGER PRIMARY KEY,
    url TEXT NOT NULL UNIQUE,
    given REAL NOT NULL,            -- importance as given
    fetched_at REAL NOT NULL,
    change_rate REAL NOT NULL,
    importance REAL NOT NULL,
    cost REAL NOT NULL,
    evidence REAL NOT NULL,
    shape REAL NOT NULL,            -- the gamma belief about the rate of changes that no signal tells of
    rate REAL NOT NULL,
    prior_at INTEGER NOT NULL,      -- the prior that this belief goes with, counted from 0
    watched REAL NOT NULL,
    n_crawls INTEGER NOT NULL,
    n_changes INTEGER NOT NULL,
    told INTEGER NOT NULL,
    request_weight REAL NOT NULL,
    requested_at REAL NOT NULL,
    watched_from REAL NOT NULL,
    paused INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    times_gone INTEGER NOT NULL,
    wait_until REAL NOT NULL,
    sources BLOB NOT NULL,          -- per signal source, little-endian doubles: shape, rate, heard, signals, recall, false_rate
    more TEXT                       -- columns that this schema does not know yet, as JSON
);
INSERT INTO "page" VALUES(1,'https://a.example/0',1.0,1700004000.0,9.57047899103673477966e-06,1.0,1.0,1.99981777647974046097e+00,1.99981777647974046097e+00,2.08956916195383382724e+05,0,3990.0,1,1,0,0.0,0.0,0.0,0,0,0,-9e999,X'000000000000F03F00000000000008400000000000000000000000000000000000000000000000000000000000000000',NULL);
INSERT INTO "page" VALUES(2,'https://a.example/1',1.0,1700000010.0,4.83091787439613531323e-06,1.0,1.0,1.0,1.0,207000.0,0,0.0,0,0,0,0.0,0.0,0.0,0,0,0,-9e999,X'000000000000F03F00000000000008400000000000000000000000000000000000000000000000000000000000000000',NULL);
INSERT INTO "page" VALUES(3,'https://a.example/2',1.0,1670000000.0,4.83091787439613531323e-06,1.0,1.0,1.0,1.0,207000.0,0,0.0,0,0,0,0.0,0.0,0.0,0,1,0,1700000071.0,X'000000000000F03F00000000000008400000000000000000000000000000000000000000000000000000000000000000',NULL);
CREATE TABLE post (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    value TEXT NOT NULL
);
CREATE TABLE version (
    id INTEGER PRIMARY KEY,
    page INTEGER NOT NULL REFERENCES page (id) ON DELETE CASCADE,
    fetched_at REAL NOT NULL,
    key BLOB NOT NULL REFERENCES body (key)
);
INSERT INTO "version" VALUES(2,1,1700004000.0,X'A81256003E1EB809C67265CD01908A05');
CREATE INDEX observation_page ON observation (page);
CREATE INDEX observation_began_at ON observation (began_at);
CREATE INDEX version_page ON version (page);
CREATE INDEX version_key ON version (key);
DELETE FROM "sqlite_sequence";
COMMIT;
