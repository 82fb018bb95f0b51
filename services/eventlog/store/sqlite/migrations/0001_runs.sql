-- How much of the log the file holds; changed in the transaction of the rows.
CREATE TABLE tail (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  pos  INTEGER NOT NULL,
  hash TEXT    NOT NULL,
  sum  INTEGER NOT NULL
) STRICT;

-- One row for each run. sum is the CRC-32C of the row: SQLite has no checksums.
CREATE TABLE runs (
  tenant       TEXT    NOT NULL,
  run_id       TEXT    NOT NULL,
  workflow_id  TEXT    NOT NULL,
  status       TEXT    NOT NULL,
  created_at   TEXT    NOT NULL,
  started_at   TEXT    NOT NULL,
  completed_at TEXT    NOT NULL,
  error_code   TEXT    NOT NULL,
  tags         TEXT    NOT NULL,
  head         INTEGER NOT NULL,
  pos          INTEGER NOT NULL,
  hash         TEXT    NOT NULL,
  due_ms       INTEGER,
  damage       TEXT    NOT NULL,
  sum          INTEGER NOT NULL,
  PRIMARY KEY (tenant, run_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_by_time     ON runs (tenant, created_at, run_id);
CREATE INDEX runs_by_status   ON runs (tenant, status, created_at, run_id);
CREATE INDEX runs_by_workflow ON runs (tenant, workflow_id, created_at, run_id);
CREATE INDEX runs_by_due      ON runs (due_ms) WHERE due_ms IS NOT NULL;

-- A run's tags never change.
CREATE TABLE tags (
  tenant     TEXT NOT NULL,
  tag        TEXT NOT NULL,
  created_at TEXT NOT NULL,
  run_id     TEXT NOT NULL,
  PRIMARY KEY (tenant, tag, created_at, run_id)
) STRICT, WITHOUT ROWID;

-- One row for each frame that has events, and one (first = -1) for the record.
CREATE TABLE frames (
  tenant TEXT    NOT NULL,
  run_id TEXT    NOT NULL,
  first  INTEGER NOT NULL,
  last   INTEGER NOT NULL,
  types  TEXT    NOT NULL,
  sum    INTEGER NOT NULL,
  body   BLOB    NOT NULL,
  PRIMARY KEY (tenant, run_id, first)
) STRICT, WITHOUT ROWID;
