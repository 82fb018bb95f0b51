-- Which dispatcher process owns a run. Rows that are already here have no owner until their
-- run's next frame.
ALTER TABLE runs ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN owner_epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN owned_since TEXT NOT NULL DEFAULT '';

CREATE INDEX runs_by_owner ON runs (owner, tenant, run_id) WHERE owner <> '';
