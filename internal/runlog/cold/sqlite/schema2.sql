-- Sealed runs of the log up to a position were given up after a loss of their file.
CREATE TABLE given_up (
	id INTEGER PRIMARY KEY CHECK (id = 1),
	until INTEGER NOT NULL
) STRICT;
INSERT INTO given_up VALUES (1, 0);
