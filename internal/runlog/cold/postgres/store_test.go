package postgres_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/postgrestest"
	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/internal/runlog/cold/coldtest"
	"waybill.dev/waybill/internal/runlog/cold/postgres"
)

// shared is the server of all tests that do not stop it.
var shared struct {
	once sync.Once
	*postgrestest.Server
	why string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.Server != nil {
		shared.Remove()
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code) //nolint:forbidigo // a TestMain ends the process
}

func server(t testing.TB) *postgrestest.Server {
	t.Helper()
	shared.once.Do(func() { shared.Server, shared.why = postgrestest.New() })
	if shared.Server == nil {
		postgrestest.Missing(t, shared.why)
	}
	return shared.Server
}

var schemas atomic.Int64

// config is that of a store in a schema of its own.
func config(t testing.TB, s *postgrestest.Server, b postgres.Bucket) postgres.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "url")
	require.NoError(t, os.WriteFile(file, []byte(s.URL()), 0o600))
	return postgres.Config{URLFile: file, Schema: fmt.Sprintf("cold_%d", schemas.Add(1)), MaxConns: 3, Bucket: b}
}

func open(t testing.TB, cfg postgres.Config) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// bucket is a bucket in memory with faults.
type bucket struct {
	mu      sync.Mutex
	objects map[string][]byte
	puts    int
	// away is the error of all calls, kept that of Delete; nil if it answers.
	away, kept error
	// name is the name in its address.
	name string
}

func (b *bucket) String() string { return "s3://" + b.name + "/" }

func newBucket() *bucket { return &bucket{objects: map[string][]byte{}, name: "cold"} }

func (b *bucket) Put(_ context.Context, name string, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away == nil {
		b.puts++
		b.objects[name] = bytes.Clone(data)
	}
	return b.away
}

func (b *bucket) Range(_ context.Context, name string, at, size int64) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, there := b.objects[name]
	switch {
	case b.away != nil:
		return nil, b.away
	case !there || at+size > int64(len(data)):
		return nil, postgres.ErrNoObject
	}
	return bytes.Clone(data[at : at+size]), nil
}

func (b *bucket) Delete(_ context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := cmp.Or(b.away, b.kept)
	if err == nil {
		delete(b.objects, name)
	}
	return err
}

func (b *bucket) set(away error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = away
}

func (b *bucket) names() (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.objects {
		names = append(names, name)
	}
	return names
}

// change changes all objects.
func (b *bucket) change(f func([]byte) []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, data := range b.objects {
		b.objects[name] = f(data)
	}
}

func TestStore_FulfilsThePort(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]func() postgres.Bucket{
		"in the database": func() postgres.Bucket { return nil },
		"in a bucket":     func() postgres.Bucket { return newBucket() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			coldtest.Run(t, func(t *testing.T) cold.Store { return open(t, config(t, server(t), b())) })
		})
	}
}

func TestStore_IsSharedByProcesses(t *testing.T) {
	t.Parallel()
	cfg := config(t, server(t), newBucket())
	a, b := open(t, cfg), open(t, cfg)
	o := coldtest.Object("acme", "r", 100, 200)
	require.NoError(t, a.Put(t.Context(), o))
	data, err := b.Data(t.Context(), o.Run, 1)
	require.NoError(t, err)
	require.Equal(t, o.Blocks[1].Data, data)
	require.NoError(t, b.GiveUp(t.Context(), 7))
	until, err := a.GivenUp(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 7, until)
	for run, want := range map[string]bool{"r": true, "ghost": false} {
		o.Run.RunID = run
		known, err := a.Knows(t.Context(), o.Run)
		require.NoError(t, err)
		require.Equal(t, want, known, run)
	}
}

// A second process that stores the same run does not replace what the first one has read back, and the
// run stays released.
func TestStore_KeepsAnObjectWithTheSameContent(t *testing.T) {
	t.Parallel()
	objects := newBucket()
	s := open(t, config(t, server(t), objects))
	o := coldtest.Object("acme", "r", 100, 200)
	require.NoError(t, s.Put(t.Context(), o))
	require.NoError(t, s.Confirm(t.Context(), cold.Ref{Run: o.Run, Hash: o.Hash(), Released: true}))
	require.NoError(t, s.Put(t.Context(), o))
	require.Equal(t, 1, objects.puts)
	require.NoError(t, s.Confirm(t.Context(), cold.Ref{Run: o.Run, Hash: o.Hash()}))
	is, err := s.Released(t.Context(), o.Run)
	require.NoError(t, err)
	require.True(t, is)
	objects.change(func(b []byte) []byte { b[3] ^= 1; return b })
	s = open(t, config(t, server(t), objects))
	require.NoError(t, s.Put(t.Context(), o))
	require.Equal(t, 2, objects.puts, "a damaged one is replaced")
}

// One object of the bucket has the runs of one call. Their contents are encrypted, and unreadable without
// the index.
func TestStore_WritesBatches(t *testing.T) {
	t.Parallel()
	objects := newBucket()
	cfg := config(t, server(t), objects)
	s := open(t, cfg)
	const canary = "canary-7b1f"
	a, b := coldtest.Object("acme", "a", 10), coldtest.Object("acme", "b", 10)
	a.Blocks[0].Data, b.Blocks[0].Data = []byte(canary), []byte(canary)
	require.NoError(t, s.Put(t.Context(), a, b))
	require.Len(t, objects.names(), 1)
	for _, content := range objects.objects {
		require.NotContains(t, string(content), canary)
	}
	require.NoError(t, s.Delete(t.Context(), a.Run))
	require.Len(t, objects.names(), 1, "b is in it")
	conn, err := pgx.Connect(t.Context(), server(t).URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	var keys int
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(body_key) FROM `+cfg.Schema+`.objects`).Scan(&keys))
	require.Equal(t, 1, keys, "the key of a deleted run is gone")
	data, err := open(t, cfg).Data(t.Context(), b.Run, 0)
	require.NoError(t, err)
	require.Equal(t, canary, string(data))
	require.NoError(t, s.Delete(t.Context(), b.Run))
	require.Len(t, objects.names(), 1, "an erasure does not wait for the bucket")
	require.NoError(t, s.Clean(t.Context()))
	require.Empty(t, objects.names(), "a batch goes with its last run")
}

// Without the bucket no run is sealed, and runs are still erased.
func TestStore_SurvivesABucketThatIsAway(t *testing.T) {
	t.Parallel()
	objects := newBucket()
	cfg := config(t, server(t), objects)
	s := open(t, cfg)
	o, later := coldtest.Object("acme", "r", 100), coldtest.Object("acme", "later", 100)
	require.NoError(t, s.Put(t.Context(), o))
	objects.set(errors.New("507 Insufficient Storage"))
	require.ErrorIs(t, s.Put(t.Context(), later), cold.ErrUnavailable)
	_, _, err := s.Blocks(t.Context(), later.Run)
	require.ErrorIs(t, err, cold.ErrNotFound)
	_, err = open(t, cfg).Data(t.Context(), o.Run, 0)
	require.ErrorIs(t, err, cold.ErrUnavailable)
	require.NotErrorIs(t, err, cold.ErrDamaged)
	require.NoError(t, s.Delete(t.Context(), o.Run))
	_, _, err = s.Blocks(t.Context(), o.Run)
	require.ErrorIs(t, err, cold.ErrDeleted)
	objects.set(nil)
	require.NoError(t, s.Put(t.Context(), later))
	require.NoError(t, s.Clean(t.Context()))
	require.Len(t, objects.names(), 1, "the batch of the erased run is removed later")
}

// The batch of a process that died before its runs were in the index is removed.
func TestStore_RemovesAbandonedBatches(t *testing.T) {
	t.Parallel()
	objects := newBucket()
	cfg := config(t, server(t), objects)
	s := open(t, cfg)
	require.NoError(t, s.Put(t.Context(), coldtest.Object("acme", "r", 100)))
	conn, err := pgx.Connect(t.Context(), server(t).URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	for name, age := range map[string]string{"old": "2 hours", "young": "1 minute"} {
		require.NoError(t, objects.Put(t.Context(), name, []byte("encrypted")))
		_, err := conn.Exec(t.Context(), `INSERT INTO `+cfg.Schema+`.batches (name, begun) VALUES ($1, now() - $2::interval)`, name, age)
		require.NoError(t, err)
	}
	require.NoError(t, s.Put(t.Context(), coldtest.Object("acme", "next", 100)))
	require.NoError(t, s.Clean(t.Context()))
	require.NotContains(t, objects.names(), "old")
	require.Contains(t, objects.names(), "young")
	require.Len(t, objects.names(), 3)
}

// Damage in the bucket is damage of the run, and a lost object is no absent run.
func TestStore_ReportsDamageInTheBucket(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func([]byte) []byte{
		"a flipped bit": func(b []byte) []byte { b[5] ^= 1; return b },
		"a short one":   func(b []byte) []byte { return b[:10] },
	} {
		objects := newBucket()
		cfg := config(t, server(t), objects)
		o := coldtest.Object("acme", "r", 100)
		require.NoError(t, open(t, cfg).Put(t.Context(), o))
		objects.change(harm)
		_, err := open(t, cfg).Data(t.Context(), o.Run, 0)
		require.ErrorIs(t, err, cold.ErrDamaged, name)
	}
}

// Processes wait for an unavailable database, also at their start.
func TestStore_SurvivesADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	srv := postgrestest.Start(t)
	cfg := config(t, srv, nil)
	require.NoError(t, srv.Stop("fast"))
	s := open(t, cfg)
	o := coldtest.Object("acme", "r", 100)
	err := s.Put(t.Context(), o)
	require.ErrorIs(t, err, cold.ErrUnavailable)
	require.NotContains(t, err.Error(), "pass")
	require.NoError(t, srv.Restart())
	require.NoError(t, s.Put(t.Context(), o))
	require.NoError(t, srv.Stop("immediate"))
	_, _, err = s.Blocks(t.Context(), o.Run)
	require.ErrorIs(t, err, cold.ErrUnavailable)
	require.NoError(t, srv.Restart())
	_, blocks, err := s.Blocks(t.Context(), o.Run)
	require.NoError(t, err)
	require.Len(t, blocks, 1)
}

func TestOpen_RefusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "url")
	require.NoError(t, os.WriteFile(file, []byte("postgres://user:secret@host:x/db"), 0o600))
	for _, cfg := range []postgres.Config{
		{URLFile: file, Schema: "cold", MaxConns: 1},
		{URLFile: file + "-none", Schema: "cold", MaxConns: 1},
		{URLFile: file, Schema: "Big One", MaxConns: 1},
		{URLFile: file, Schema: "cold"},
	} {
		_, err := postgres.Open(t.Context(), cfg)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret")
		require.Error(t, cfg.Validate())
	}
}
