-- When something was last recorded of a run, and what it waits for. Rows that are there say
-- neither until their run moves on.
ALTER TABLE runs ADD COLUMN last_event_at TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN waits TEXT NOT NULL DEFAULT '';

CREATE INDEX runs_by_code ON runs (tenant, error_code, created_at, run_id) WHERE error_code <> '';
