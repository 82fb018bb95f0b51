package sqlite_test

import (
	"context"
	"database/sql"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/sqlite"
	"waybill.dev/waybill/services/eventlog/tally"
)

// filled is a closed file with some runs, all in the main file.
func filled(t *testing.T, runs int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "eventlog.db")
	s := open(t, path)
	fill(t, s, 0, runs)
	require.NoError(t, s.Close())
	return path
}

func aside(t *testing.T, path string) []string {
	t.Helper()
	files, err := filepath.Glob(path + ".damaged-*")
	require.NoError(t, err)
	return files
}

func change(t *testing.T, path string, edit func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, edit(b), 0o600))
}

func execute(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), statement)
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

func TestOpen_MovesADamagedFileAside(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, path string){
		"garbage": func(t *testing.T, path string) {
			change(t, path, func(b []byte) []byte { return []byte("this was a database once, of some length, and is none now") })
		},
		"garbage of the old size": func(t *testing.T, path string) {
			change(t, path, func(b []byte) []byte {
				r := rand.New(rand.NewPCG(1, 2))
				for i := range b {
					b[i] = byte(r.Uint32())
				}
				return b
			})
		},
		"half": func(t *testing.T, path string) {
			change(t, path, func(b []byte) []byte { return b[:len(b)/2] })
		},
		"half a page": func(t *testing.T, path string) {
			change(t, path, func(b []byte) []byte { return b[:4000] })
		},
		"zeroed page": func(t *testing.T, path string) {
			change(t, path, func(b []byte) []byte { clear(b[2*8192 : 3*8192]); return b })
		},
		"lost table": func(t *testing.T, path string) { execute(t, path, "DROP TABLE frames") },
		"lost index row": func(t *testing.T, path string) {
			execute(t, path, "PRAGMA writable_schema=ON; DELETE FROM sqlite_schema WHERE name='runs'")
		},
		"later version": func(t *testing.T, path string) { execute(t, path, "PRAGMA user_version=99") },
		"other database": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			execute(t, path, "CREATE TABLE runs (x)")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filled(t, 60)
			damage(t, path)
			at := time.Unix(1772366400, 0)
			s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path}, quiet, func() time.Time { return at })
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			require.FileExists(t, path+".damaged-1772366400")
			require.Zero(t, whole(t, s))
			fill(t, s, 0, 5)
			require.Equal(t, 5, whole(t, s))
		})
	}
}

// Flipped bytes must never be served: the open notices, or the read does, or
// they changed nothing that is read.
func TestReads_NeverServeFlippedBytes(t *testing.T) {
	t.Parallel()
	const runs = 60
	path := filled(t, runs)
	r := rand.New(rand.NewPCG(7, 7))
	noticed := 0
	for range 60 {
		copied := filepath.Join(t.TempDir(), "eventlog.db")
		copyFile(t, path, copied)
		change(t, copied, func(b []byte) []byte {
			page := r.IntN(len(b)/8192) * 8192
			for range 20 {
				b[page+r.IntN(8192)] ^= byte(1 + r.IntN(255))
			}
			return b
		})
		if servesDamage(t, copied, runs) {
			noticed++
		}
	}
	require.Positive(t, noticed, "the test damages something that matters")
}

// servesDamage reports whether the damage was noticed; it fails the test when
// something was served that is not what was stored.
func servesDamage(t *testing.T, path string, runs int) (noticed bool) {
	t.Helper()
	s := open(t, path)
	if len(aside(t, path)) > 0 {
		return true
	}
	ctx := context.Background()
	tail, err := s.Tail(ctx)
	if err != nil {
		require.ErrorIs(t, err, store.ErrDamaged)
		return true
	}
	require.Equal(t, uint64(2*runs), tail.Pos)
	for n := range runs {
		want, frames := run(n, 5)
		want.New = false
		got, err := s.Run(ctx, want.Key)
		if err != nil {
			require.ErrorIs(t, err, store.ErrDamaged)
			return true
		}
		require.Equal(t, want, got)
		stored, err := s.Frames(ctx, want.Key, store.RecordFirst, 100)
		if err != nil {
			require.ErrorIs(t, err, store.ErrDamaged)
			return true
		}
		require.Equal(t, frames, stored)
	}
	return false
}

func TestReads_NoticeAChangedValue(t *testing.T) {
	t.Parallel()
	want, _ := run(7, 5)
	key := want.Key
	read := map[string]func(s *sqlite.Store) error{
		"row":    func(s *sqlite.Store) error { _, err := s.Run(t.Context(), key); return err },
		"frames": func(s *sqlite.Store) error { _, err := s.Frames(t.Context(), key, 0, 10); return err },
		"tail":   func(s *sqlite.Store) error { _, err := s.Tail(t.Context()); return err },
		"list": func(s *sqlite.Store) error {
			_, err := s.List(t.Context(), store.Query{Tenant: "acme", Limit: 100})
			return err
		},
		"due": func(s *sqlite.Store) error { _, err := s.Due(t.Context(), 1<<62, store.Timer{}, 100); return err },
	}
	for statement, noticers := range map[string][]string{
		`UPDATE runs SET status = 'completed' WHERE run_id = '` + key.RunID + `'`:     {"row", "list", "due"},
		`UPDATE runs SET due_ms = 5 WHERE run_id = '` + key.RunID + `'`:               {"row", "list", "due"},
		`UPDATE frames SET body = x'5b5d' WHERE 0`:                                    nil,
		`UPDATE frames SET body = x'5b5d' WHERE first = 2`:                            {"frames"},
		`UPDATE frames SET types = 'run.completed' WHERE first = 4`:                   {"frames"},
		`UPDATE tail SET pos = pos + 1`:                                               {"tail"},
		`UPDATE tail SET hash = 'other'`:                                              {"tail"},
		`UPDATE runs SET head = 3, sum = sum + 1 WHERE run_id = '` + key.RunID + `'`:  {"row", "list", "due"},
		`UPDATE runs SET tags = 'nightly' WHERE run_id = '` + key.RunID + `'`:         {"row", "list", "due"},
		`UPDATE frames SET last = 4 WHERE run_id = '` + key.RunID + `' AND first = 3`: {"frames"},
	} {
		t.Run(statement, func(t *testing.T) {
			path := filled(t, 10)
			execute(t, path, statement)
			s := open(t, path)
			for name, f := range read {
				err := f(s)
				if !slices.Contains(noticers, name) {
					require.NoError(t, err, name)
					continue
				}
				require.ErrorIs(t, err, store.ErrDamaged, name)
			}
		})
	}
}

// Damage under the running process, as a disk or a person makes it.
func TestApply_ReportsAFileOverwrittenWhileOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "eventlog.db")
	s := open(t, path)
	fill(t, s, 0, 60)
	change(t, path, func(b []byte) []byte {
		for i := range b {
			b[i] = 0xA5
		}
		return b
	})
	change(t, path+"-wal", func(b []byte) []byte {
		for i := range b {
			b[i] = 0xA5
		}
		return b
	})
	var err error
	for n := 60; n < 400 && err == nil; n++ { // until a page is read that is not in memory
		r, frames := run(n, 5)
		err = s.Apply(t.Context(), store.Batch{Runs: []store.Run{r}, Frames: frames, Tail: store.Tail{Pos: uint64(n)}})
		if err == nil {
			old, _ := run(n%60, 5)
			_, err = s.Run(t.Context(), old.Key)
		}
	}
	require.ErrorIs(t, err, store.ErrDamaged)
	require.NoError(t, s.Rebuild(t.Context()))
	require.Zero(t, whole(t, s))
	fill(t, s, 0, 5)
	require.Equal(t, 5, whole(t, s))
}

func TestRebuild_KeepsTheLastDamagedFilesOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "eventlog.db")
	now := time.Unix(1772366400, 0)
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path}, quiet, func() time.Time { now = now.Add(time.Second); return now })
	require.NoError(t, err)
	for range 6 {
		fill(t, s, 0, 1)
		require.NoError(t, s.Rebuild(t.Context()))
	}
	require.NoError(t, s.Close())
	require.Equal(t, []string{
		path + ".damaged-1772366404", path + ".damaged-1772366405", path + ".damaged-1772366406",
	}, aside(t, path))
}

// After a failed Rebuild the store requests another one.
func TestRebuild_CanBeTriedAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "eventlog.db")
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path}, quiet, func() time.Time { return time.Unix(7, 0) })
	require.NoError(t, err)
	fill(t, s, 0, 3)
	inTheWay := path + ".damaged-7"
	require.NoError(t, os.MkdirAll(filepath.Join(inTheWay, "full"), 0o750))
	for range 2 {
		require.Error(t, s.Rebuild(t.Context()))
		_, err = s.Tail(t.Context())
		require.ErrorIs(t, err, store.ErrDamaged)
	}
	require.NoError(t, os.RemoveAll(inTheWay))
	require.NoError(t, s.Rebuild(t.Context()))
	require.Zero(t, whole(t, s))
	require.NoError(t, s.Close())
	_, err = s.Tail(t.Context())
	require.NotErrorIs(t, err, store.ErrDamaged, "closed is not damaged")
}

// A file from before questions were counted is emptied, and filled again from the log.
func TestOpen_EmptiesAFileThatCountsNoQuestions(t *testing.T) {
	t.Parallel()
	path := filled(t, 3)
	execute(t, path, withoutOwners+"DROP INDEX runs_by_asking; ALTER TABLE runs DROP COLUMN asks; PRAGMA user_version=1")
	s := open(t, path)
	require.Zero(t, whole(t, s))
	runs, err := s.List(t.Context(), store.Query{Tenant: "acme", Limit: 10})
	require.NoError(t, err)
	require.Empty(t, runs)
	fill(t, s, 0, 4)
	require.Equal(t, 4, whole(t, s))
}

// withoutFacts takes back what the latest migrations added, withoutOwners also the one before.
const (
	withoutFacts = `DROP TABLE text_index; DROP TABLE texts; DROP TABLE tallies; DROP INDEX runs_by_end; DROP INDEX runs_by_model; DROP INDEX runs_by_last_node; DROP INDEX runs_by_tokens;
	DROP INDEX runs_by_cost; DROP INDEX runs_by_duration_ms; DROP INDEX runs_by_waiting_since; DROP INDEX runs_without_facts;
	ALTER TABLE runs DROP COLUMN facts; ALTER TABLE runs DROP COLUMN model; ALTER TABLE runs DROP COLUMN last_node;
	ALTER TABLE runs DROP COLUMN tokens_in; ALTER TABLE runs DROP COLUMN tokens_out; ALTER TABLE runs DROP COLUMN tokens;
	ALTER TABLE runs DROP COLUMN cost; ALTER TABLE runs DROP COLUMN duration_ms; ALTER TABLE runs DROP COLUMN waiting_since;
	ALTER TABLE runs DROP COLUMN inputs;`
	withoutOwners = withoutFacts + `DROP INDEX runs_by_owner; ALTER TABLE runs DROP COLUMN owner;
	ALTER TABLE runs DROP COLUMN owner_epoch; ALTER TABLE runs DROP COLUMN owned_since;`
)

// A file without facts is not changed; its rows have none until they are filled.
func TestOpen_KeepsAFileWithoutFacts(t *testing.T) {
	t.Parallel()
	path := filled(t, 3)
	execute(t, path, withoutFacts+"PRAGMA user_version=5")
	s := open(t, path)
	require.Empty(t, aside(t, path))
	require.Equal(t, 3, whole(t, s))
	rows, err := s.WithoutFacts(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, rows, 3)
}

func TestRun_NoticesAChangedFact(t *testing.T) {
	t.Parallel()
	for _, change := range []string{"cost = 99", "model = 'other'", "inputs = 'other'", "tokens_in = 1", "facts = 0"} {
		path := filled(t, 1)
		s := open(t, path)
		runs, err := s.List(t.Context(), store.Query{Tenant: "acme", Limit: 1})
		require.NoError(t, err)
		in, cost := int64(7), 0.5
		runs[0].Facts = store.Facts{Known: true, Model: "m", TokensIn: &in, TokensOut: &in, Cost: &cost, Inputs: "i"}
		require.NoError(t, s.FillFacts(t.Context(), runs, nil))
		require.NoError(t, s.Close())
		execute(t, path, "UPDATE runs SET "+change)
		_, err = open(t, path).Run(t.Context(), runs[0].Key)
		require.ErrorIs(t, err, store.ErrDamaged, change)
	}
}

// A file without owners is not changed.
func TestOpen_KeepsAFileWithoutOwners(t *testing.T) {
	t.Parallel()
	path := filled(t, 3)
	execute(t, path, withoutOwners+"PRAGMA user_version=4")
	s := open(t, path)
	require.Empty(t, aside(t, path))
	require.Equal(t, 3, whole(t, s))
}

// A file from before marks were kept is emptied, and filled again from the log.
func TestOpen_EmptiesAFileWithoutMarks(t *testing.T) {
	t.Parallel()
	path := filled(t, 3)
	execute(t, path, withoutOwners+"DROP TABLE marks; DROP TABLE substitutions; PRAGMA user_version=3")
	s := open(t, path)
	require.Empty(t, aside(t, path), "the file is none that is damaged")
	require.Zero(t, whole(t, s))
	fill(t, s, 0, 4)
	require.Equal(t, 4, whole(t, s))
}

func TestTallies_NoticeAChangedCount(t *testing.T) {
	t.Parallel()
	for _, change := range []string{"doc = x'7b7d'", "workflow_id = 'other'", "at = at + 300"} {
		path := filled(t, 1)
		s := open(t, path)
		require.NoError(t, s.Apply(t.Context(), store.Batch{
			Tallies: []tally.Delta{{Pos: 100, Tenant: "acme", WorkflowID: "flow", Tally: tally.Tally{Runs: tally.Runs{Created: 1}}}},
			Tail:    store.Tail{Pos: 100},
		}))
		require.NoError(t, s.Close())
		execute(t, path, "UPDATE tallies SET "+change)
		q := store.TallyQuery{Tenant: "acme", Grain: tally.Fine, From: math.MinInt64, Until: math.MaxInt64}
		err := open(t, path).Tallies(t.Context(), q, func(*store.Tallied) error { return nil })
		require.ErrorIs(t, err, store.ErrDamaged, change)
	}
}

func TestSubstitutions_NoticeAChangedValue(t *testing.T) {
	t.Parallel()
	path := filled(t, 1)
	s := open(t, path)
	require.NoError(t, s.Apply(t.Context(), store.Batch{
		Substitutions: []store.Substitution{{Key: store.Key{Tenant: "acme", RunID: "r"}, At: "2026"}},
		Tail:          store.Tail{Pos: 100},
	}))
	require.NoError(t, s.Close())
	execute(t, path, "UPDATE substitutions SET original_model = 'other'")
	_, err := open(t, path).Substitutions(t.Context(), "acme", "", 10)
	require.ErrorIs(t, err, store.ErrDamaged)
}
