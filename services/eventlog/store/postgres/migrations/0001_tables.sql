-- The tables of a generation; the search path names its schema. Names and times
-- are compared byte by byte, as the pages of a list are.

-- How much of the log the generation holds; its lock is what writers take turns by.
CREATE TABLE tail (
  id   smallint PRIMARY KEY CHECK (id = 1),
  pos  bigint   NOT NULL,
  hash text     NOT NULL,
  sum  bigint   NOT NULL
) WITH (fillfactor = 10);

-- One row for each run. sum is the CRC-32C of the row: page checksums are the
-- server's choice, and none of them sees a value that was changed by hand.
CREATE TABLE runs (
  tenant       text COLLATE "C" NOT NULL,
  run_id       text COLLATE "C" NOT NULL,
  workflow_id  text COLLATE "C" NOT NULL,
  status       text COLLATE "C" NOT NULL,
  created_at   text COLLATE "C" NOT NULL,
  started_at   text NOT NULL,
  completed_at text NOT NULL,
  error_code   text NOT NULL,
  tags         text NOT NULL,
  head         integer NOT NULL,
  pos          bigint  NOT NULL,
  hash         text    NOT NULL,
  due_ms       bigint,
  asks         integer NOT NULL,
  damage       text    NOT NULL,
  sum          bigint  NOT NULL,
  PRIMARY KEY (tenant, run_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX ON runs (tenant, created_at, run_id);
CREATE INDEX ON runs (tenant, status, created_at, run_id);
CREATE INDEX ON runs (tenant, workflow_id, created_at, run_id);
CREATE INDEX ON runs (due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX ON runs (tenant, created_at, run_id) WHERE asks > 0;

-- A run's tags never change.
CREATE TABLE tags (
  tenant     text COLLATE "C" NOT NULL,
  tag        text COLLATE "C" NOT NULL,
  created_at text COLLATE "C" NOT NULL,
  run_id     text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, tag, created_at, run_id)
);

-- One row for each frame that has events, and one (first = -1) for the record.
CREATE TABLE frames (
  tenant text COLLATE "C" NOT NULL,
  run_id text COLLATE "C" NOT NULL,
  first  integer NOT NULL,
  last   integer NOT NULL,
  types  text    NOT NULL,
  sum    bigint  NOT NULL,
  body   bytea   NOT NULL,
  PRIMARY KEY (tenant, run_id, first)
);
