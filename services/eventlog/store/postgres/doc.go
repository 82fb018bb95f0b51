// Package postgres keeps the read model in a PostgreSQL database that several
// replicas share: each follows the whole log and applies it, and whoever comes
// first has done it for all.
//
// A schema of its own holds one row, the control row: which generation of tables
// is in use, and the version of their layout. The tables of a generation are in a
// schema whose name has the generation in it. Rebuild begins the next generation
// and renames the last one away, so a replica that does not know of it yet
// neither reads nor writes the wrong tables: its statements name what is gone.
//
// Apply takes the lock of the generation's tail row first, so batches are applied
// one after the other, and each is compared with where the tail is: behind it, it
// is applied already; beyond it, the writer missed something (store.ErrMoved).
//
// Commits do not wait for the disk (synchronous_commit off), as the log has
// everything: a crash or a failover of the server loses the last batches together
// with their position. A process that has seen more than that, as a writer or as a
// reader, must not go on from there, so every new connection and every batch looks
// whether the tail has gone back.
//
// The database may be gone for a while at any time, also when a process starts.
// Calls then fail, their callers say "try again", and the next call may succeed.
package postgres
