-- Finds the runs of a workflow that ended before an instant.
ALTER TABLE runs ALTER COLUMN completed_at TYPE text COLLATE "C";

CREATE INDEX ON runs (tenant, workflow_id, completed_at, run_id) WHERE completed_at <> '';
