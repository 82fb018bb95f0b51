package sqlite_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/eventlog/store"
)

// The index gets the words of a run in parts. It agrees with the table, and nothing is left of an erased
// run: neither in the index nor in the file.
func TestStore_AddsWordsInPartsAndErasesAll(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "eventlog.db")
	s := open(t, path)
	key := func(run int) store.Key { return store.Key{Tenant: "acme", RunID: fmt.Sprint("r", run)} }
	pos := uint64(0)
	apply := func(b store.Batch) {
		pos++
		b.Tail = store.Tail{Pos: pos, Hash: "h"}
		require.NoError(t, s.Apply(t.Context(), b))
	}
	for part := range 30 {
		for run := range 3 {
			words := []string{fmt.Sprint("common", part), fmt.Sprintf("own%dof%d", part, run)}
			apply(store.Batch{Texts: []store.Text{{Key: key(run), CreatedAt: "2026-03-01T12:00:00.000Z", Words: words}}})
		}
	}
	apply(store.Batch{Erased: []store.Erasure{{Key: key(1)}}})
	require.NoError(t, s.Close())

	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.ExecContext(t.Context(), "INSERT INTO text_index (text_index, rank) VALUES ('integrity-check', 1)")
	require.NoError(t, err)
	for word, want := range map[string]int{"common0": 2, "common29": 2, "co*": 2, "own1*": 2, "own*": 2, "own0of0": 1, "own29of0": 1, "own0of1": 0, "own15of1": 0, "own29of1": 0} {
		var n int
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM text_index WHERE text_index MATCH ?", word).Scan(&n))
		require.Equal(t, want, n, word)
	}
	raw, err := os.ReadFile(path) //nolint:gosec // G304: the test's own file
	require.NoError(t, err)
	require.Contains(t, string(raw), "own15of0")
	require.NotContains(t, string(raw), "of1")
}
