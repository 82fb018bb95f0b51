-- What runs have to do with, and which models were asked instead of others. What is here
-- does not say; it is filled again from the log.
DELETE FROM frames;
DELETE FROM tags;
DELETE FROM runs;
DELETE FROM tail;

CREATE TABLE marks (
  tenant     TEXT NOT NULL,
  name       TEXT NOT NULL,
  value      TEXT NOT NULL,
  created_at TEXT NOT NULL,
  run_id     TEXT NOT NULL,
  PRIMARY KEY (tenant, name, value, created_at, run_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE substitutions (
  tenant            TEXT    NOT NULL,
  at                TEXT    NOT NULL,
  run_id            TEXT    NOT NULL,
  seq               INTEGER NOT NULL,
  node_id           TEXT    NOT NULL,
  original_provider TEXT    NOT NULL,
  original_model    TEXT    NOT NULL,
  fallback_provider TEXT    NOT NULL,
  fallback_model    TEXT    NOT NULL,
  missing           TEXT    NOT NULL,
  sum               INTEGER NOT NULL,
  PRIMARY KEY (tenant, at, run_id, seq)
) STRICT, WITHOUT ROWID;
