-- Finds the runs of a workflow that ended before an instant.
CREATE INDEX runs_by_end ON runs (tenant, workflow_id, completed_at, run_id) WHERE completed_at <> '';
