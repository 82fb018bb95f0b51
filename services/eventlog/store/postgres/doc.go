// Package postgres stores the read model in a PostgreSQL database that several replicas share. Each
// replica follows the whole log and applies it; the first to apply a batch does so for all.
//
// One schema holds a single row, the control row: the generation of tables in use and the version
// of their layout. The tables of a generation are in a schema named after it. Rebuild creates the
// next generation and renames the previous one. A replica that has not noticed yet neither reads
// nor writes the wrong tables: its statements refer to a schema that no longer exists.
//
// Apply first locks the generation's tail row, so batches are applied one at a time. Each batch is
// compared with the tail: before it, the batch is already applied; beyond it, the writer missed
// something (store.ErrMoved).
//
// Commits do not wait for the disk (synchronous_commit off), because the log has everything: a
// crash or failover of the server loses the last batches together with their position. A process
// that has seen a later position, as writer or reader, must not continue from there. Every new
// connection and every batch therefore checks whether the tail has gone back.
//
// The database may be unavailable at any time, also at start. Calls then fail, clients retry, and
// the next call may succeed.
package postgres
