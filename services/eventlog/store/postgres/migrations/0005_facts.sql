-- The columns that lists show and sort by. Rows that are already here get them in the background.
ALTER TABLE runs ADD COLUMN facts smallint NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN model text COLLATE "C";
ALTER TABLE runs ADD COLUMN last_node text COLLATE "C";
ALTER TABLE runs ADD COLUMN tokens_in bigint;
ALTER TABLE runs ADD COLUMN tokens_out bigint;
ALTER TABLE runs ADD COLUMN tokens bigint;
ALTER TABLE runs ADD COLUMN cost double precision;
ALTER TABLE runs ADD COLUMN duration_ms bigint;
ALTER TABLE runs ADD COLUMN waiting_since text COLLATE "C";
ALTER TABLE runs ADD COLUMN inputs text NOT NULL DEFAULT '';

-- Status and workflow are part of the indexes so that a list filters by them without reading rows.
CREATE INDEX ON runs (tenant, model, created_at, run_id) INCLUDE (status, workflow_id) WHERE model IS NOT NULL;
CREATE INDEX ON runs (tenant, last_node, created_at, run_id) INCLUDE (status, workflow_id) WHERE last_node IS NOT NULL;
CREATE INDEX ON runs (tenant, tokens, created_at, run_id) INCLUDE (status, workflow_id) WHERE tokens IS NOT NULL;
CREATE INDEX ON runs (tenant, cost, created_at, run_id) INCLUDE (status, workflow_id) WHERE cost IS NOT NULL;
CREATE INDEX ON runs (tenant, duration_ms, created_at, run_id) INCLUDE (status, workflow_id) WHERE duration_ms IS NOT NULL;
CREATE INDEX ON runs (tenant, waiting_since, created_at, run_id) INCLUDE (status, workflow_id) WHERE waiting_since IS NOT NULL;
CREATE INDEX ON runs (tenant, run_id) WHERE facts = 0;
