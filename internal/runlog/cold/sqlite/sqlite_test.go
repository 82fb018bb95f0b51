package sqlite_test

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/internal/runlog/cold/coldtest"
	"waybill.dev/waybill/internal/runlog/cold/sqlite"
	"waybill.dev/waybill/protocol/subject"
)

func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestStore_FulfilsThePort(t *testing.T) {
	t.Parallel()
	coldtest.Run(t, func(t *testing.T) cold.Store { return open(t, filepath.Join(t.TempDir(), "cold.db")) })
}

func TestStore_KeepsItsContentOverRestarts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cold.db")
	o := coldtest.Object("acme", "r", 100, 200)
	s, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, s.Put(t.Context(), o))
	require.NoError(t, s.Close())
	s = open(t, path)
	data, err := s.Data(t.Context(), o.Run, 1)
	require.NoError(t, err)
	require.Equal(t, o.Blocks[1].Data, data)
	runs, _, err := s.Pending(t.Context(), "", 10)
	require.NoError(t, err)
	require.Len(t, runs, 1)
}

// Neither the file nor its write-ahead log has the bytes of a deleted object.
func TestStore_OverwritesDeletedBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "cold.db"))
	const canary = "canary-7b1f"
	holds := func() bool {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		for _, f := range files {
			b, err := os.ReadFile(f)
			require.NoError(t, err)
			if bytes.Contains(b, []byte(canary)) {
				return true
			}
		}
		return false
	}
	for i, remove := range []func(o *cold.Object) error{
		func(o *cold.Object) error { return s.Discard(t.Context(), o.Run, o.Hash()) },
		func(o *cold.Object) error { return s.Delete(t.Context(), o.Run) },
	} {
		o := coldtest.Object("acme", "r", 100, 30_000)
		o.Blocks[i].Data = append(o.Blocks[i].Data, canary...)
		require.NoError(t, s.Put(t.Context(), coldtest.Object("acme", "before", 500), o, coldtest.Object("acme", "after", 500)))
		require.True(t, holds())
		require.NoError(t, remove(o))
		require.False(t, holds())
	}
}

// A reader keeps deleted bytes in the write-ahead log. The next call for the same run removes them, and
// so does a process that finds them.
func TestStore_ScrubsAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cold.db")
	s, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	o := coldtest.Object("acme", "r", 100)
	o.Blocks[0].Data = []byte("canary-7b1f")
	require.NoError(t, s.Put(t.Context(), o))
	reader, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	tx, err := reader.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	var n int
	require.NoError(t, tx.QueryRowContext(t.Context(), `SELECT count(*) FROM objects`).Scan(&n))
	holds := func(path string) bool {
		b, err := os.ReadFile(path + "-wal")
		require.NoError(t, err)
		return bytes.Contains(b, []byte("canary-7b1f"))
	}
	require.ErrorIs(t, s.Delete(t.Context(), o.Run), cold.ErrUnavailable)
	require.True(t, holds(path))
	killed := filepath.Join(t.TempDir(), "cold.db")
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + suffix)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(killed+suffix, b, 0o600))
	}
	require.True(t, holds(killed))
	open(t, killed)
	require.False(t, holds(killed))
	require.NoError(t, tx.Rollback())
	require.NoError(t, reader.Close())
	require.NoError(t, s.Delete(t.Context(), o.Run))
	require.False(t, holds(path))
	require.NoError(t, s.Close())
}

func TestOpen_RefusesWhatItCannotKeep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	damaged := filepath.Join(dir, "damaged.db")
	require.NoError(t, os.WriteFile(damaged, bytes.Repeat([]byte("no database"), 4096), 0o600))
	_, err := sqlite.Open(t.Context(), damaged)
	require.ErrorContains(t, err, "damaged.db")
	content, err := os.ReadFile(damaged)
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(content, []byte("no database")), "it is not replaced")
}

// A file of the first schema gets what the later ones have, and keeps what it has.
func TestStore_MigratesTheFirstSchema(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cold.db")
	s, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	o := coldtest.Object("acme", "r", 100)
	require.NoError(t, s.Put(t.Context(), o))
	require.NoError(t, s.Close())
	db, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), `DROP TABLE given_up; ALTER TABLE objects DROP COLUMN releasing; PRAGMA user_version = 1`)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	for _, want := range []uint64{0, 7} {
		s, err := sqlite.Open(t.Context(), path)
		require.NoError(t, err)
		until, err := s.GivenUp(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, until)
		known, err := s.Knows(t.Context(), o.Run)
		require.NoError(t, err)
		require.True(t, known)
		known, err = s.Knows(t.Context(), subject.Run{Tenant: "beta", RunID: "r"})
		require.NoError(t, err)
		require.False(t, known)
		require.NoError(t, s.GiveUp(t.Context(), 7))
		require.NoError(t, s.Close())
	}
}
