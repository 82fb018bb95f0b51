package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/postgrestest"
	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/internal/runlog/cold/coldtest"
	"waybill.dev/waybill/internal/runlog/cold/postgres"
)

// A process vanishes within a transaction, and its connection stays open. The server ends the transaction, and
// another process writes.
func TestStore_SurvivesAWriterThatGoesSilent(t *testing.T) {
	t.Parallel()
	cfg := config(t, server(t), nil)
	cfg.Timeout = time.Second
	silent, other := open(t, cfg), open(t, cfg)
	holds, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- silent.Hold(t.Context(), func() {
			close(holds)
			<-release
		})
	}()
	speak := sync.OnceFunc(func() { close(release) })
	defer speak()
	<-holds
	o := coldtest.Object("acme", "r", 10)
	require.Eventually(t, func() bool { return other.Put(t.Context(), o) == nil }, time.Minute, 10*time.Millisecond)
	speak()
	require.ErrorIs(t, <-ended, cold.ErrUnavailable)
}

// slowBucket stops in Put until next is closed.
type slowBucket struct {
	*bucket

	putting, next chan struct{}
}

func (b slowBucket) Put(ctx context.Context, name string, data []byte) error {
	close(b.putting)
	<-b.next
	return b.bucket.Put(ctx, name, data)
}

// twoStores are two processes on one database and bucket. The first one stops when it writes to the bucket.
func twoStores(t *testing.T) (first, second *postgres.Store, slow slowBucket, cfg postgres.Config) {
	t.Helper()
	slow = slowBucket{newBucket(), make(chan struct{}), make(chan struct{})}
	cfg = config(t, server(t), slow.bucket)
	slowly := cfg
	slowly.Bucket = slow
	return open(t, slowly), open(t, cfg), slow, cfg
}

// A slow process does not replace an object that another one has stored since: it may be the only copy.
func TestStore_KeepsWhatAnotherProcessStoredConcurrently(t *testing.T) {
	t.Parallel()
	first, second, slow, cfg := twoStores(t)
	o := coldtest.Object("acme", "r", 100, 200)
	done := make(chan error, 1)
	go func() { done <- first.Put(t.Context(), o) }()
	<-slow.putting
	require.NoError(t, second.Put(t.Context(), o))
	require.NoError(t, second.Confirm(t.Context(), cold.Ref{Run: o.Run, Hash: o.Hash(), Released: true}))
	kept := slow.names()
	close(slow.next)
	require.NoError(t, <-done)
	require.Len(t, slow.names(), 2)
	slow.mu.Lock()
	for name := range slow.objects {
		if !slices.Contains(kept, name) {
			slow.objects[name] = []byte("damaged")
		}
	}
	slow.mu.Unlock()
	fresh := open(t, cfg)
	for i, b := range o.Blocks {
		data, err := fresh.Data(t.Context(), o.Run, i)
		require.NoError(t, err)
		require.Equal(t, b.Data, data)
	}
	runs, _, err := fresh.Pending(t.Context(), "", 10)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	is, err := fresh.Released(t.Context(), o.Run)
	require.NoError(t, err)
	require.True(t, is)
	got, err := fresh.Totals(t.Context())
	require.NoError(t, err)
	require.Equal(t, cold.Totals{Runs: 1, Pending: 1, Bytes: 300}, got)
	require.NoError(t, fresh.Clean(t.Context()))
	require.Equal(t, kept, slow.names(), "the other batch is not used")
}

// An object that was stored before is gone when its run is to be pending again. Put does not say that it is there.
func TestStore_ReportsAnObjectThatIsRemovedConcurrently(t *testing.T) {
	t.Parallel()
	first, second, slow, cfg := twoStores(t)
	same, more := coldtest.Object("acme", "same", 100), coldtest.Object("acme", "more", 100)
	require.NoError(t, second.Put(t.Context(), same))
	done := make(chan error, 1)
	go func() { done <- first.Put(t.Context(), same, more) }()
	<-slow.putting
	require.NoError(t, second.Discard(t.Context(), same.Run, same.Hash()))
	close(slow.next)
	require.ErrorIs(t, <-done, cold.ErrUnavailable)
	fresh := open(t, cfg)
	require.NoError(t, fresh.Put(t.Context(), same, more))
	for _, o := range []*cold.Object{same, more} {
		data, err := open(t, cfg).Data(t.Context(), o.Run, 0)
		require.NoError(t, err)
		require.Equal(t, o.Blocks[0].Data, data)
	}
}

// garbling is a bucket that stores other bytes.
type garbling struct{ *bucket }

func (b garbling) Put(ctx context.Context, name string, data []byte) error {
	data = bytes.Clone(data)
	data[0] ^= 1
	return b.bucket.Put(ctx, name, data)
}

// A batch that reads back with other bytes replaces no object.
func TestStore_RefusesABatchThatReadsBackDamaged(t *testing.T) {
	t.Parallel()
	objects := newBucket()
	cfg := config(t, server(t), objects)
	o, other := coldtest.Object("acme", "r", 100), coldtest.Object("acme", "r", 50)
	require.NoError(t, open(t, cfg).Put(t.Context(), o))
	bad := cfg
	bad.Bucket = garbling{objects}
	require.ErrorIs(t, open(t, bad).Put(t.Context(), other), cold.ErrUnavailable)
	data, err := open(t, cfg).Data(t.Context(), o.Run, 0)
	require.NoError(t, err)
	require.Equal(t, o.Blocks[0].Data, data)
}

// A process with another bucket finds no run lost, and writes nothing. When the database names its bucket, it
// continues.
func TestStore_RefusesAnotherBucket(t *testing.T) {
	t.Parallel()
	one, two := newBucket(), newBucket()
	one.name, two.name = "one", "two"
	cfg := config(t, server(t), one)
	o, erased := coldtest.Object("acme", "r", 100), coldtest.Object("acme", "erased", 100)
	require.NoError(t, open(t, cfg).Put(t.Context(), o))
	require.NoError(t, open(t, cfg).Put(t.Context(), erased))
	var logged bytes.Buffer
	cfg.Bucket, cfg.Logger = two, slog.New(slog.NewTextHandler(&logged, nil))
	s := open(t, cfg)
	for range 2 {
		_, err := s.Data(t.Context(), o.Run, 0)
		require.ErrorIs(t, err, cold.ErrUnavailable)
		require.NotErrorIs(t, err, cold.ErrDamaged)
		require.ErrorContains(t, err, "s3://one/")
		require.ErrorContains(t, err, "s3://two/")
	}
	require.ErrorIs(t, s.Put(t.Context(), coldtest.Object("acme", "more", 100)), cold.ErrUnavailable)
	require.NoError(t, s.Delete(t.Context(), erased.Run), "an erasure does not need the bucket")
	require.ErrorIs(t, s.Clean(t.Context()), cold.ErrUnavailable)
	require.Empty(t, two.names())
	require.Len(t, one.names(), 2)
	require.Equal(t, 1, strings.Count(logged.String(), "level=ERROR"))
	require.Contains(t, logged.String(), "bucket=s3://one/ bucket_of_this_process=s3://two/")

	for name, data := range one.objects {
		require.NoError(t, two.Put(t.Context(), name, data))
	}
	conn, err := pgx.Connect(t.Context(), server(t).URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	_, err = conn.Exec(t.Context(), `UPDATE `+cfg.Schema+`.totals SET bucket = 's3://two/'`)
	require.NoError(t, err)
	data, err := s.Data(t.Context(), o.Run, 0)
	require.NoError(t, err)
	require.Equal(t, o.Blocks[0].Data, data)
	require.NoError(t, s.Clean(t.Context()))
	require.Len(t, two.names(), 1)
}

// A failover to a server that was behind loses the last writes. A process that has seen them writes nothing until
// they are back.
func TestStore_NoticesThatWritesAreLost(t *testing.T) {
	t.Parallel()
	srv := postgrestest.Start(t)
	data, newer := filepath.Join(srv.Dir(), "data"), filepath.Join(srv.Dir(), "newer")
	s := open(t, config(t, srv, nil))
	a, b := coldtest.Object("acme", "a", 10), coldtest.Object("acme", "b", 10)
	require.NoError(t, s.Put(t.Context(), a))
	require.NoError(t, srv.Stop("fast"))
	require.NoError(t, srv.Keep())
	require.NoError(t, srv.Restart())
	require.Eventually(t, func() bool { return s.Put(t.Context(), b) == nil }, time.Minute, 10*time.Millisecond)
	require.NoError(t, srv.Stop("fast"))
	require.NoError(t, os.Rename(data, newer))
	require.NoError(t, srv.Recall())
	require.NoError(t, srv.Restart())
	require.Eventually(t, func() bool {
		_, err := s.GivenUp(t.Context())
		return errors.Is(err, postgres.ErrBehind)
	}, time.Minute, 10*time.Millisecond)
	require.ErrorIs(t, s.Put(t.Context(), coldtest.Object("acme", "c", 10)), postgres.ErrBehind)
	require.ErrorIs(t, s.Delete(t.Context(), a.Run), postgres.ErrBehind)
	_, _, err := s.Blocks(t.Context(), a.Run)
	require.NoError(t, err, "what it has is read")

	require.NoError(t, srv.Stop("fast"))
	require.NoError(t, os.RemoveAll(data))
	require.NoError(t, os.Rename(newer, data))
	require.NoError(t, srv.Restart())
	require.Eventually(t, func() bool { return s.Delete(t.Context(), a.Run) == nil }, time.Minute, 10*time.Millisecond)
	_, _, err = s.Blocks(t.Context(), b.Run)
	require.NoError(t, err)
}

// A credential that may not delete objects keeps no run from being sealed or erased.
func TestStore_SealsWhereObjectsCannotBeRemoved(t *testing.T) {
	t.Parallel()
	objects := newBucket()
	objects.kept = errors.New("403 AccessDenied")
	s := open(t, config(t, server(t), objects))
	for i := range 20 {
		o := coldtest.Object("acme", fmt.Sprint("r", i), 100)
		require.NoError(t, s.Put(t.Context(), o))
		require.NoError(t, s.Delete(t.Context(), o.Run))
		require.ErrorIs(t, s.Clean(t.Context()), cold.ErrUnavailable)
	}
	require.Len(t, objects.names(), 20)
	objects.mu.Lock()
	objects.kept = nil
	objects.mu.Unlock()
	require.NoError(t, s.Clean(t.Context()))
	require.Empty(t, objects.names())
}

// A database of an earlier build gets what it lacks.
func TestStore_UpgradesTheTables(t *testing.T) {
	t.Parallel()
	cfg := config(t, server(t), newBucket())
	o := coldtest.Object("acme", "r", 10)
	require.NoError(t, open(t, cfg).Put(t.Context(), o))
	conn, err := pgx.Connect(t.Context(), server(t).URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	_, err = conn.Exec(t.Context(), `ALTER TABLE `+cfg.Schema+`.totals DROP COLUMN bucket, DROP COLUMN writes`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `UPDATE `+cfg.Schema+`.totals SET version = 1`)
	require.NoError(t, err)
	s := open(t, cfg)
	require.NoError(t, s.Put(t.Context(), coldtest.Object("acme", "more", 10)))
	data, err := s.Data(t.Context(), o.Run, 0)
	require.NoError(t, err)
	require.Equal(t, o.Blocks[0].Data, data)
}

// Errors of a login name neither the user nor the host.
func TestStore_KeepsTheLoginToItself(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{
		"no such user": strings.Replace(server(t).URL(), "waybill:", "ghost-user:", 1),
		"no such host": "postgres://ghost-user:x@ghost-host.invalid/db",
	} {
		cfg := config(t, server(t), nil)
		require.NoError(t, os.WriteFile(cfg.URLFile, []byte(url), 0o600))
		_, err := open(t, cfg).Totals(t.Context())
		require.ErrorIs(t, err, cold.ErrUnavailable, name)
		require.NotContains(t, err.Error(), "ghost", name)
	}
}

// A server accepts a connection and stays silent. A caller waits no longer than its context, although
// another one is still connecting.
func TestStore_EndsAConnectWithItsCaller(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	lis, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, lis.Close()) }()
	cfg := config(t, server(t), nil)
	require.NoError(t, os.WriteFile(cfg.URLFile, []byte("postgres://u:p@"+lis.Addr().String()+"/db?sslmode=disable"), 0o600))
	s := open(t, cfg)
	ctx, stop := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := s.Totals(ctx)
		first <- err
	}()
	conn, err := lis.Accept()
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Totals(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Empty(t, first, "the other one connects")
	stop()
	require.ErrorIs(t, <-first, cold.ErrUnavailable)
}
