// Package sqlite stores the read model in one SQLite file.
//
// The file is a cache of the log and is never repaired. If SQLite or the checksum of a row reports
// damage, the file is moved aside and replaced by an empty one. For the same reason commits do not
// wait for the disk (WAL, synchronous NORMAL): a power failure loses the last batches together with
// their position.
//
// One connection writes, a few read. Writers and readers do not block each other.
package sqlite
