-- Which dispatcher process owns a run. Rows that are already here have no owner until their
-- run's next frame.
ALTER TABLE runs ADD COLUMN owner text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN owner_epoch bigint NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN owned_since text NOT NULL DEFAULT '';

CREATE INDEX ON runs (owner, tenant, run_id) WHERE owner <> '';
