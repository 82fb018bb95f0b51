-- When something was last recorded of a run, and what it waits for. Rows that are there say
-- neither until their run moves on.
ALTER TABLE runs ADD COLUMN last_event_at text NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN waits text NOT NULL DEFAULT '';

CREATE INDEX ON runs (tenant, error_code, created_at, run_id) WHERE error_code <> '';
