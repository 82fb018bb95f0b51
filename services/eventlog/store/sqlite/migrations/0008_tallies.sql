-- What runs do, added up by workflow and span of time (grain is its width, at its start, in seconds).
-- doc is a tally (package tally). Runs that are already here are not counted: the counts begin with this
-- migration.
CREATE TABLE tallies (
  tenant      TEXT    NOT NULL,
  grain       INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  workflow_id TEXT    NOT NULL,
  sum         INTEGER NOT NULL,
  doc         BLOB    NOT NULL,
  PRIMARY KEY (tenant, grain, at, workflow_id)
) STRICT, WITHOUT ROWID;
