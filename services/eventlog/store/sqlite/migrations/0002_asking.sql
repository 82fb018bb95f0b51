-- How many questions of a run wait for somebody. What is here does not say; it is filled
-- again from the log.
DELETE FROM frames;
DELETE FROM tags;
DELETE FROM runs;
DELETE FROM tail;
ALTER TABLE runs ADD COLUMN asks INTEGER NOT NULL DEFAULT 0;

CREATE INDEX runs_by_asking ON runs (tenant, created_at, run_id) WHERE asks > 0;
