-- Words of runs' contents, by which lists find them; empty unless the host indexes payloads. The order of
-- ids is that of creation times. The index has no copy of the words, so that those of an erased run are
-- deleted by their row here. It has no index of prefixes: words of a
-- run that are added later share their prefixes with earlier ones, and FTS5 would not delete both.
CREATE TABLE texts (
  id     INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  run_id TEXT NOT NULL,
  words  TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX texts_by_run ON texts (tenant, run_id);
CREATE VIRTUAL TABLE text_index USING fts5 (words, content = 'texts', content_rowid = 'id', tokenize = 'ascii', detail = 'none', columnsize = 0);
INSERT INTO text_index (text_index, rank) VALUES ('secure-delete', 1);
