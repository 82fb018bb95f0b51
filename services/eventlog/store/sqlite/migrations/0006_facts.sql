-- The columns that lists show and sort by. Rows that are already here get them in the background.
ALTER TABLE runs ADD COLUMN facts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN model TEXT;
ALTER TABLE runs ADD COLUMN last_node TEXT;
ALTER TABLE runs ADD COLUMN tokens_in INTEGER;
ALTER TABLE runs ADD COLUMN tokens_out INTEGER;
ALTER TABLE runs ADD COLUMN tokens INTEGER;
ALTER TABLE runs ADD COLUMN cost REAL;
ALTER TABLE runs ADD COLUMN duration_ms INTEGER;
ALTER TABLE runs ADD COLUMN waiting_since TEXT;
ALTER TABLE runs ADD COLUMN inputs TEXT NOT NULL DEFAULT '';

-- Status and workflow are part of the indexes so that a list filters by them without reading rows.
CREATE INDEX runs_by_model         ON runs (tenant, model, created_at, run_id, status, workflow_id) WHERE model IS NOT NULL;
CREATE INDEX runs_by_last_node     ON runs (tenant, last_node, created_at, run_id, status, workflow_id) WHERE last_node IS NOT NULL;
CREATE INDEX runs_by_tokens        ON runs (tenant, tokens, created_at, run_id, status, workflow_id) WHERE tokens IS NOT NULL;
CREATE INDEX runs_by_cost          ON runs (tenant, cost, created_at, run_id, status, workflow_id) WHERE cost IS NOT NULL;
CREATE INDEX runs_by_duration_ms   ON runs (tenant, duration_ms, created_at, run_id, status, workflow_id) WHERE duration_ms IS NOT NULL;
CREATE INDEX runs_by_waiting_since ON runs (tenant, waiting_since, created_at, run_id, status, workflow_id) WHERE waiting_since IS NOT NULL;
CREATE INDEX runs_without_facts    ON runs (tenant, run_id) WHERE facts = 0;
