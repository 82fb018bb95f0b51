-- Words of runs' contents, by which lists find them; empty unless the host indexes payloads.
CREATE TABLE texts (
  tenant text COLLATE "C" NOT NULL,
  run_id text COLLATE "C" NOT NULL,
  words  tsvector NOT NULL,
  PRIMARY KEY (tenant, run_id)
);
CREATE INDEX texts_by_word ON texts USING gin (words);
-- No statistics: they would be a copy of frequent words that erasure does not reach.
ALTER TABLE texts ALTER COLUMN words SET STATISTICS 0;
