-- What runs have to do with, and which models were asked instead of others. Of runs that are
-- there already it says nothing until they go on: to fill a large database again is for its
-- operator to decide.
CREATE TABLE marks (
  tenant     text COLLATE "C" NOT NULL,
  name       text COLLATE "C" NOT NULL,
  value      text COLLATE "C" NOT NULL,
  created_at text COLLATE "C" NOT NULL,
  run_id     text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, name, value, created_at, run_id)
);

CREATE TABLE substitutions (
  tenant            text COLLATE "C" NOT NULL,
  at                text COLLATE "C" NOT NULL,
  run_id            text COLLATE "C" NOT NULL,
  seq               integer NOT NULL,
  node_id           text    NOT NULL,
  original_provider text    NOT NULL,
  original_model    text    NOT NULL,
  fallback_provider text    NOT NULL,
  fallback_model    text    NOT NULL,
  missing           text    NOT NULL,
  sum               bigint  NOT NULL,
  PRIMARY KEY (tenant, at, run_id, seq)
);
