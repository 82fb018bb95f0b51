// Package writebehind makes a batch readable before it is committed, so that the
// store below can commit many batches in one transaction.
//
// Memory holds every uncommitted batch and, up to a limit, the most recently
// committed ones. A run that is active or has just ended is served from memory.
// A crash loses nothing: the log position is committed with the rows it
// produced, and ingestion resumes from that position.
//
// Reads across runs wait until every batch applied before them is committed.
package writebehind
