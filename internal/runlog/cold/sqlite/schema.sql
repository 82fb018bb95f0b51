-- state: 0 is confirmed, 1 pending, 2 deleted (without blocks), 3 confirmed and
-- its frames were deleted from the log without overwriting.
CREATE TABLE objects (
	id INTEGER PRIMARY KEY,
	tenant TEXT NOT NULL,
	run_id TEXT NOT NULL,
	workflow_id TEXT NOT NULL,
	state INTEGER NOT NULL,
	UNIQUE (tenant, run_id)
) STRICT;
CREATE INDEX pending ON objects (id) WHERE state = 1;

-- id is that of the object times 2^20, plus the number of the block: blocks are appended.
CREATE TABLE blocks (
	id INTEGER PRIMARY KEY,
	next INTEGER NOT NULL,
	pos INTEGER NOT NULL,
	hash BLOB NOT NULL,
	data BLOB NOT NULL
) STRICT;

CREATE TABLE totals (
	id INTEGER PRIMARY KEY CHECK (id = 1),
	runs INTEGER NOT NULL,
	bytes INTEGER NOT NULL
) STRICT;
INSERT INTO totals VALUES (1, 0, 0);
