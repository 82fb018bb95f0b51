-- What runs do, added up by workflow and span of time (grain is its width, at its start, in seconds).
-- doc is a tally (package tally). Runs that are already here are not counted: the counts begin with this
-- migration.
CREATE TABLE tallies (
  tenant      text COLLATE "C" NOT NULL,
  grain       bigint NOT NULL,
  at          bigint NOT NULL,
  workflow_id text COLLATE "C" NOT NULL,
  sum         bigint NOT NULL,
  doc         bytea  NOT NULL,
  PRIMARY KEY (tenant, grain, at, workflow_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
