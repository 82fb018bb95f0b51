// Package sqlite keeps the read model in one SQLite file.
//
// The file is a cache of the log, so it is never repaired: when SQLite, or the
// checksum of a row, says that it is damaged, it is moved aside and an empty
// one takes its place. For the same reason commits do not wait for the disk
// (WAL, synchronous NORMAL): a power cut loses the last moments, whole batches
// of them, and the position with them.
//
// One connection writes, a few read. Writers and readers do not block each
// other.
package sqlite
