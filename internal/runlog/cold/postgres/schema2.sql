-- bucket is the address of the bucket with the batches; null before the first one. writes counts the
-- transactions of writers.
ALTER TABLE totals ADD COLUMN bucket TEXT, ADD COLUMN writes BIGINT NOT NULL DEFAULT 0;
UPDATE totals SET version = 2;
