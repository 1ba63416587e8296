BEGIN TRANSACTION;
CREATE TABLE body (
    key BLOB PRIMARY KEY,
    size INTEGER NOT NULL,
    data BLOB NOT NULL
);
INSERT INTO "body" VALUES(X'BDB68F40C6D88E68C3EBD61CD7FAB3C9',6,X'28B52FFD20063100003C703E312030');
INSERT INTO "body" VALUES(X'EA7EB92956B69499E1E4D089B5432D5A',6,X'28B52FFD20063100003C703E332031');
INSERT INTO "body" VALUES(X'A449045DF10F7548CAC6E272174A7307',6,X'28B52FFD20063100003C703E322035');
INSERT INTO "body" VALUES(X'5379C4DB17D198D80FD9B32B25562732',6,X'28B52FFD20063100003C703E342033');
INSERT INTO "body" VALUES(X'B582600DB1F46AAC62D597201C32CE74',6,X'28B52FFD20063100003C703E302033');
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
, recent TEXT NOT NULL DEFAULT '', n_flaps INTEGER NOT NULL DEFAULT 0);
INSERT INTO "copy" VALUES(1,1700374400.0,1700374400.0,200,'d3','"e"',NULL,'text/html','https://a.example/x/0','d3 d2 d1 d0',0);
INSERT INTO "copy" VALUES(2,1700259200.0,1700028800.0,200,'d0','"e"',NULL,'text/html','https://b.example/x/1','d0',0);
INSERT INTO "copy" VALUES(3,1700331200.0,1700331200.0,200,'d5','"e"',NULL,'text/html','https://a.example/y/2','d5 d4 d3 d2 d1 d0',0);
INSERT INTO "copy" VALUES(4,1700345600.0,1700057600.0,200,'d1','"e"',NULL,'text/html','https://b.example/y/3','d1 d0',0);
INSERT INTO "copy" VALUES(5,1700403200.0,1700360000.0,200,'d3','"e"',NULL,'text/html','https://a.example/x/4','d3 d2 d1 d0',0);
CREATE TABLE event (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    url TEXT NOT NULL,
    kind TEXT NOT NULL,             -- new, changed, redirected, gone
    at REAL NOT NULL,
    status INTEGER,
    reason TEXT,                    -- of gone: not-found, moved, removed
    content_type TEXT,
    old_digest TEXT,
    new_digest TEXT,
    old_final_url TEXT,
    new_final_url TEXT,
    old_text BLOB,                  -- compressed with zstd
    new_text BLOB,
    size INTEGER NOT NULL           -- bytes that the row counts as
);
INSERT INTO "event" VALUES(1,'https://a.example/x/0','new',1700014400.0,200,NULL,'text/html',NULL,'d0',NULL,'https://a.example/x/0',NULL,X'28B52FFD2003190000302030',265);
INSERT INTO "event" VALUES(2,'https://b.example/x/1','new',1700028800.0,200,NULL,'text/html',NULL,'d0',NULL,'https://b.example/x/1',NULL,X'28B52FFD2003190000312030',265);
INSERT INTO "event" VALUES(3,'https://a.example/y/2','new',1700043200.0,200,NULL,'text/html',NULL,'d0',NULL,'https://a.example/y/2',NULL,X'28B52FFD2003190000322030',265);
INSERT INTO "event" VALUES(4,'https://b.example/y/3','new',1700057600.0,200,NULL,'text/html',NULL,'d0',NULL,'https://b.example/y/3',NULL,X'28B52FFD2003190000332030',265);
INSERT INTO "event" VALUES(5,'https://a.example/x/4','new',1700072000.0,200,NULL,'text/html',NULL,'d0',NULL,'https://a.example/x/4',NULL,X'28B52FFD2003190000342030',265);
INSERT INTO "event" VALUES(6,'https://a.example/x/4','changed',1700100800.0,200,NULL,'text/html','d0','d1','https://a.example/x/4','https://a.example/x/4',X'28B52FFD2003190000342030',X'28B52FFD2003190000342031',300);
INSERT INTO "event" VALUES(7,'https://a.example/y/2','changed',1700129600.0,200,NULL,'text/html','d0','d1','https://a.example/y/2','https://a.example/y/2',X'28B52FFD2003190000322030',X'28B52FFD2003190000322031',300);
INSERT INTO "event" VALUES(8,'https://a.example/y/2','changed',1700172800.0,200,NULL,'text/html','d1','d2','https://a.example/y/2','https://a.example/y/2',X'28B52FFD2003190000322031',X'28B52FFD2003190000322032',300);
INSERT INTO "event" VALUES(9,'https://a.example/y/2','changed',1700230400.0,200,NULL,'text/html','d2','d3','https://a.example/y/2','https://a.example/y/2',X'28B52FFD2003190000322032',X'28B52FFD2003190000322033',300);
INSERT INTO "event" VALUES(10,'https://a.example/x/0','changed',1700273600.0,200,NULL,'text/html','d0','d1','https://a.example/x/0','https://a.example/x/0',X'28B52FFD2003190000302030',X'28B52FFD2003190000302031',300);
INSERT INTO "event" VALUES(11,'https://a.example/y/2','changed',1700288000.0,200,NULL,'text/html','d3','d4','https://a.example/y/2','https://a.example/y/2',X'28B52FFD2003190000322033',X'28B52FFD2003190000322034',300);
INSERT INTO "event" VALUES(12,'https://a.example/x/4','changed',1700302400.0,200,NULL,'text/html','d1','d2','https://a.example/x/4','https://a.example/x/4',X'28B52FFD2003190000342031',X'28B52FFD2003190000342032',300);
INSERT INTO "event" VALUES(13,'https://a.example/x/0','changed',1700316800.0,200,NULL,'text/html','d1','d2','https://a.example/x/0','https://a.example/x/0',X'28B52FFD2003190000302031',X'28B52FFD2003190000302032',300);
INSERT INTO "event" VALUES(14,'https://a.example/y/2','changed',1700331200.0,200,NULL,'text/html','d4','d5','https://a.example/y/2','https://a.example/y/2',X'28B52FFD2003190000322034',X'28B52FFD2003190000322035',300);
INSERT INTO "event" VALUES(15,'https://a.example/x/4','changed',1700360000.0,200,NULL,'text/html','d2','d3','https://a.example/x/4','https://a.example/x/4',X'28B52FFD2003190000342032',X'28B52FFD2003190000342033',300);
INSERT INTO "event" VALUES(16,'https://a.example/x/0','changed',1700374400.0,200,NULL,'text/html','d2','d3','https://a.example/x/0','https://a.example/x/0',X'28B52FFD2003190000302032',X'28B52FFD2003190000302033',300);
INSERT INTO "event" VALUES(17,'https://a.example/y/2','gone',1700388800.0,410,'not-found',NULL,'d5',NULL,'https://a.example/y/2',NULL,X'28B52FFD2003190000322035',NULL,256);
CREATE TABLE event_total (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    id TEXT NOT NULL,               -- of this stream of events
    rows INTEGER NOT NULL,
    size INTEGER NOT NULL
);
INSERT INTO "event_total" VALUES(1,'4dd79c36a1366288',17,4881);
CREATE TABLE follower (
    name TEXT PRIMARY KEY,
    cursor INTEGER NOT NULL,        -- the last event that it has taken
    taken INTEGER NOT NULL,
    failures INTEGER NOT NULL,      -- in a row
    failure TEXT,                   -- why the last delivery failed
    failed_at REAL,
    taken_at REAL,
    dropped INTEGER NOT NULL        -- events that it has not taken and never will: the limit was reached
) WITHOUT ROWID;
INSERT INTO "follower" VALUES('index',10,3,0,NULL,NULL,1700302400.0,0);
INSERT INTO "follower" VALUES('webhook',1,0,2,'HTTP 500',1700302400.0,NULL,0);
CREATE TABLE host (
    name TEXT PRIMARY KEY,
    spacing REAL NOT NULL,
    concurrency REAL NOT NULL,
    held_until REAL NOT NULL
) WITHOUT ROWID;
INSERT INTO "host" VALUES('a.example',1.0,9e999,1700403201.0);
INSERT INTO "host" VALUES('b.example',1.0,9e999,1700345601.0);
CREATE TABLE lease (
    id TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    picked_at REAL NOT NULL,
    until REAL NOT NULL,
    state TEXT NOT NULL,            -- held, recorded or released
    conditional INTEGER NOT NULL    -- whether validators were given
) WITHOUT ROWID;
INSERT INTO "lease" VALUES('l1','https://a.example/y/2',1700403200.0,1700403800.0,'held',1);
CREATE TABLE listing (
    url TEXT PRIMARY KEY,
    state TEXT NOT NULL,            -- JSON: kind, validators, when it was polled, what its signals were worth
    entries BLOB NOT NULL           -- fingerprints of URLs and their dates at the last poll, packed
);
INSERT INTO "listing" VALUES('https://a.example/sitemap.xml','{"kind": "sitemap"}',X'0102');
CREATE TABLE note (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "note" VALUES('engine','{"columns": ["url", "given", "fetched_at", "prior_at", "own", "change_rate", "importance", "cost", "evidence", "gamma", "watched", "n_crawls", "n_changes", "told", "request_weight", "requested_at", "watched_from", "paused", "failures", "times_gone", "wait_until", "seen", "rate_evidence", "signalled"], "policy": {}, "settings": {"budget": 6.944444444444444e-05, "objective": "freshness", "policy": "value", "sources": 1, "lease": 300.0, "floor": 0.0, "day": 86400.0, "half_life": 730.0, "host_spacing": 1.0, "host_concurrency": null, "min_change_probability": 0.01, "price": 0.0, "very_stale": 0.0, "very_stale_share": 0.0, "siblings": true, "canonical_urls": true}, "prior": [0.17546707701742864, 291332.80645981355], "table": [111.0, 85.0, 63.0, 48.0, 37.0, 27.0, 21.0, 15.0, 10.0, 8.0, 8.0, 19.0, 125.0, 623.0, 39.0, 16.0, 12.0, 5.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "strength": [5.0, 5.0], "fits": 0, "crawls": 22, "refit_at": 50, "account": [1627200.0, 388631.36697926396], "stated": {"lately": [[0.30387276930127644, 4.957178522789673, 1.982076544265446], [0.5107038476992104, 3.982542925597465, 0.9960069930043736], [1.7735930830864866, 6.957641914358559, 2.9875289508137515], [1.3716590706437213, 3.993013979395611, 2.993013979395611], [0.9539324956450922, 1.9945067451272498, 1.9945067451272498], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "knots": [[0.0, 0.0], [0.05374494715540412, 0.16594550506190742], [0.14380101376397486, 0.17850880246074557], [0.25201576402364667, 0.3236021245481832], [0.34814937495361087, 0.4640182586079328], [0.4547025243752307, 0.541456758758807], [0.55, 0.55], [0.65, 0.65], [0.75, 0.75], [0.85, 0.85], [0.95, 0.95], [1.0, 1.0]]}, "clocks": {"weight": [0.7, 0.037500000000000006, 0.037500000000000006, 0.037500000000000006, 0.037500000000000006, 0.037500000000000006, 0.037500000000000006, 0.037500000000000006, 0.037500000000000006], "credit": [8.362126963069546, 0.5581695032633177, 0.6297349727750273, 0.5703968820782881, 0.6573031332062762, 0.5703968820782881, 0.6573031332062762, 0.4912118976885676, 0.5644893154189576], "exposure": [5.339765182974132, 7.012505057646639, 8.425851814166355, 6.941395199662567, 8.420508313845728, 6.941395199662567, 8.420508313845728, 5.814399577111184, 6.646278931604305]}, "signal_tables": {"repeats": [0.0], "mean_rate": [7.585185185185185e-05], "gate": [[0.0, 0.0, 0.0, 5.0, -Infinity]], "delay": [[[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.997, 0.0009030009367435083, 0.0006321006557204558, 0.000442470459004319, 0.00030972932130302327, 0.0002168105249121163, 0.0001517673674384814, 0.00010623715720693698, 7.436601004485587e-05, 5.205620703139911e-05, 3.6439344921979373e-05, 2.550754144538556e-05, 1.7855279011769893e-05, 1.2498695308238922e-05, 8.749086715767244e-06, 6.124360701037072e-06, 4.287052490725951e-06]]], "host_gate": {"b.example": [[0.0, 0.0, 0.0, 5.0, -Infinity]]}, "host_delay": {}, "stated_delays": {}}, "threshold": 6614.632326632942}');
INSERT INTO "note" VALUES('feed/https://a.example/feed','{"at": 1700403200.0}');
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
, flapping INTEGER NOT NULL DEFAULT 0, rolled_off INTEGER NOT NULL DEFAULT 0);
INSERT INTO "observation" VALUES(1,1,1700014400.0,0.2,200,NULL,'d0',NULL,0,'https://a.example/x/0','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(2,2,1700028800.0,0.2,200,NULL,'d0',NULL,0,'https://b.example/x/1','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(3,3,1700043200.0,0.2,200,NULL,'d0',NULL,0,'https://a.example/y/2','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(4,4,1700057600.0,0.2,200,NULL,'d0',NULL,0,'https://b.example/y/3','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(5,5,1700072000.0,0.2,200,0,'d0',NULL,0,'https://a.example/x/4','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(6,1,1700086400.0,0.2,200,0,'d0',NULL,0,'https://a.example/x/0','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(7,5,1700100800.0,0.2,200,1,'d1',NULL,0,'https://a.example/x/4','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(8,2,1700115200.0,0.2,200,0,'d0',NULL,0,'https://b.example/x/1','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(9,3,1700129600.0,0.2,200,1,'d1',NULL,0,'https://a.example/y/2','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(10,5,1700144000.0,0.2,200,0,'d1',NULL,0,'https://a.example/x/4','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(11,1,1700158400.0,0.2,200,0,'d0',NULL,0,'https://a.example/x/0','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(12,3,1700172800.0,0.2,200,1,'d2',NULL,0,'https://a.example/y/2','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(13,5,1700187200.0,0.2,200,0,'d1',NULL,0,'https://a.example/x/4','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(14,4,1700201600.0,0.2,503,NULL,NULL,'http-5xx',0,NULL,NULL,NULL,NULL,1,0,0);
INSERT INTO "observation" VALUES(15,4,1700216000.0,0.2,200,0,'d1',NULL,0,'https://b.example/y/3','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(16,3,1700230400.0,0.2,200,1,'d3',NULL,0,'https://a.example/y/2','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(17,5,1700244800.0,0.2,200,0,'d1',NULL,0,'https://a.example/x/4','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(18,2,1700259200.0,0.2,200,0,'d0',NULL,0,'https://b.example/x/1','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(19,1,1700273600.0,0.2,200,1,'d1',NULL,0,'https://a.example/x/0','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(20,3,1700288000.0,0.2,200,1,'d4',NULL,0,'https://a.example/y/2','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(21,5,1700302400.0,0.2,200,1,'d2',NULL,0,'https://a.example/x/4','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(22,1,1700316800.0,0.2,200,1,'d2',NULL,0,'https://a.example/x/0','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(23,3,1700331200.0,0.2,200,1,'d5',NULL,0,'https://a.example/y/2','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(24,4,1700345600.0,0.2,200,0,'d1',NULL,0,'https://b.example/y/3','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(25,5,1700360000.0,0.2,200,1,'d3',NULL,0,'https://a.example/x/4','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(26,1,1700374400.0,0.2,200,1,'d3',NULL,0,'https://a.example/x/0','"e"',NULL,'text/html',1,0,0);
INSERT INTO "observation" VALUES(27,3,1700388800.0,0.2,410,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,1,0,0);
INSERT INTO "observation" VALUES(28,5,1700403200.0,0.2,200,0,'d3',NULL,0,'https://a.example/x/4','"e"',NULL,'text/html',1,0,0);
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
, own REAL NOT NULL DEFAULT 0.0, seen_time REAL NOT NULL DEFAULT -1.0, seen_changes REAL NOT NULL DEFAULT -1.0, seen_logs REAL NOT NULL DEFAULT -1.0, given_changes REAL NOT NULL DEFAULT -1.0, given_time REAL NOT NULL DEFAULT -1.0);
INSERT INTO "page" VALUES(1,'https://a.example/x/0',1.0,1700374400.0,9.34497933693886645867e-06,1.0,1.0,1.28947614743815037736e+01,1.28947614743815037736e+01,1.37985981664090440613e+06,0,360000.0,5,3,0,0.0,0.0,0.0,0,0,0,-9e999,X'',NULL,3.0,1.55707994295291166052e+05,2.99826003306891708533e+00,3.35922319050118716181e+01,0.0,0.0);
INSERT INTO "page" VALUES(2,'https://b.example/x/1',1.0,1700259200.0,8.69849999661483e-07,1.0,1.0,1.98152629903377369702e-01,1.98152629903377369702e-01,2.27800919676371617242e+05,0,230400.0,2,0,0,0.0,0.0,0.0,0,0,0,-9e999,X'','{"signalled": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 236949.05226303992, 0.0, 0.0, 0.0, 236949.05226303992, 0.0, 0.0, 1.0, 147148.6311786629, 147148.6311786629, 1700403260.0]}',0.0,2.36949052263039920945e+05,0.0,0.0,0.0,0.0);
INSERT INTO "page" VALUES(3,'https://a.example/y/2',1.0,1700388800.0,2.25406863076795351604e-05,1.0,1.0,1.02934900824764108406e+00,1.02934900824764108406e+00,4.56662673974104036441e+04,0,288000.0,5,5,0,0.0,0.0,0.0,0,0,1,1702980800.0,X'',NULL,5.0,0.0,4.9944658454713355411e+00,5.50043889976409516862e+01,0.0,0.0);
INSERT INTO "page" VALUES(4,'https://b.example/y/3',1.0,1700345600.0,6.75871818450795600096e-07,1.0,1.0,1.90723028533011762508e-01,1.90723028533011762508e-01,2.82188165457436756691e+05,0,288000.0,2,0,0,0.0,0.0,0.0,0,0,0,-9e999,X'',NULL,0.0,3.02301854204063769429e+05,0.0,0.0,0.0,0.0);
INSERT INTO "page" VALUES(5,'https://a.example/x/4',1.0,1700403200.0,8.88686129915434e-06,1.0,1.0,1.9919093816683172804e+01,1.9919093816683172804e+01,2.24140932846320467064e+06,0,403200.0,8,3,1,0.0,0.0,0.0,0,0,0,-9e999,X'',NULL,3.0,2.92791403035183437162e+05,2.99510040589768511409e+00,3.23705007321593356555e+01,1.99115744974937691758e+00,3.44072007316692324817e+05);
CREATE TABLE page_log (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    mark TEXT,                      -- random, of a state; else what one transaction wrote:
    pages BLOB,                     -- numbers of pages, 8 bytes each, little-endian
    removed TEXT                    -- URLs of removed pages as JSON
);
INSERT INTO "page_log" VALUES(1,'36acf8351e2d7f36c83a8bad53f9136c',NULL,NULL);
INSERT INTO "page_log" VALUES(2,NULL,X'0500000000000000',NULL);
INSERT INTO "page_log" VALUES(3,NULL,X'0200000000000000',NULL);
INSERT INTO "page_log" VALUES(4,NULL,X'0300000000000000',NULL);
INSERT INTO "page_log" VALUES(5,NULL,X'0500000000000000',NULL);
INSERT INTO "page_log" VALUES(6,NULL,X'0100000000000000',NULL);
INSERT INTO "page_log" VALUES(7,NULL,X'0300000000000000',NULL);
INSERT INTO "page_log" VALUES(8,NULL,X'0500000000000000',NULL);
INSERT INTO "page_log" VALUES(9,NULL,X'0400000000000000',NULL);
INSERT INTO "page_log" VALUES(10,NULL,X'0400000000000000',NULL);
INSERT INTO "page_log" VALUES(11,NULL,X'0300000000000000',NULL);
INSERT INTO "page_log" VALUES(12,NULL,X'0500000000000000',NULL);
INSERT INTO "page_log" VALUES(13,NULL,X'0200000000000000',NULL);
INSERT INTO "page_log" VALUES(14,NULL,X'0100000000000000',NULL);
INSERT INTO "page_log" VALUES(15,NULL,X'0300000000000000',NULL);
INSERT INTO "page_log" VALUES(16,NULL,X'0500000000000000',NULL);
INSERT INTO "page_log" VALUES(17,NULL,X'0100000000000000',NULL);
INSERT INTO "page_log" VALUES(18,NULL,X'0300000000000000',NULL);
INSERT INTO "page_log" VALUES(19,NULL,X'0400000000000000',NULL);
INSERT INTO "page_log" VALUES(20,NULL,X'0500000000000000',NULL);
INSERT INTO "page_log" VALUES(21,NULL,X'0100000000000000',NULL);
INSERT INTO "page_log" VALUES(22,NULL,X'0300000000000000',NULL);
INSERT INTO "page_log" VALUES(23,NULL,X'0500000000000000',NULL);
INSERT INTO "page_log" VALUES(24,NULL,X'0200000000000000',NULL);
CREATE TABLE post (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    value TEXT NOT NULL
);
INSERT INTO "post" VALUES(2,'{"remove": ["https://b.example/y/3"]}');
INSERT INTO "post" VALUES(3,'{"add": ["https://a.example/late"]}');
CREATE TABLE signal (
    page INTEGER NOT NULL REFERENCES page (id) ON DELETE CASCADE,
    source INTEGER NOT NULL,
    at REAL NOT NULL,               -- when it came
    changed_at REAL,                -- when the page changed, as the source says
    resolution REAL NOT NULL,       -- the change was at changed_at or up to so many seconds later
    PRIMARY KEY (page, source)
) WITHOUT ROWID;
INSERT INTO "signal" VALUES(2,0,1700403260.0,1700403230.0,0.0);
CREATE TABLE told (
    page INTEGER PRIMARY KEY REFERENCES page (id) ON DELETE CASCADE,
    gone INTEGER NOT NULL,
    digest TEXT,
    final_url TEXT,
    text BLOB
);
INSERT INTO "told" VALUES(1,0,'d3','https://a.example/x/0',X'28B52FFD2003190000302033');
INSERT INTO "told" VALUES(2,0,'d0','https://b.example/x/1',X'28B52FFD2003190000312030');
INSERT INTO "told" VALUES(3,1,'d5','https://a.example/y/2',X'28B52FFD2003190000322035');
INSERT INTO "told" VALUES(4,0,'d0','https://b.example/y/3',X'28B52FFD2003190000332030');
INSERT INTO "told" VALUES(5,0,'d3','https://a.example/x/4',X'28B52FFD2003190000342033');
CREATE TABLE version (
    id INTEGER PRIMARY KEY,
    page INTEGER NOT NULL REFERENCES page (id) ON DELETE CASCADE,
    fetched_at REAL NOT NULL,
    key BLOB NOT NULL REFERENCES body (key)
);
INSERT INTO "version" VALUES(17,2,1700259200.0,X'BDB68F40C6D88E68C3EBD61CD7FAB3C9');
INSERT INTO "version" VALUES(22,3,1700331200.0,X'A449045DF10F7548CAC6E272174A7307');
INSERT INTO "version" VALUES(23,4,1700345600.0,X'EA7EB92956B69499E1E4D089B5432D5A');
INSERT INTO "version" VALUES(25,1,1700374400.0,X'B582600DB1F46AAC62D597201C32CE74');
INSERT INTO "version" VALUES(26,5,1700403200.0,X'5379C4DB17D198D80FD9B32B25562732');
CREATE INDEX observation_page ON observation (page);
CREATE INDEX observation_began_at ON observation (began_at);
CREATE INDEX version_page ON version (page);
CREATE INDEX version_key ON version (key);
CREATE INDEX event_url ON event (url);
CREATE INDEX event_kind ON event (kind);
CREATE INDEX event_text ON event (url) WHERE new_text IS NOT NULL OR old_text IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('event',17);
INSERT INTO "sqlite_sequence" VALUES('page_log',24);
INSERT INTO "sqlite_sequence" VALUES('post',3);
COMMIT;
