-- releasing: the frames of the pending object are about to be deleted without overwriting.
ALTER TABLE objects ADD COLUMN releasing INTEGER NOT NULL DEFAULT 0;
