package natsd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natslink"
)

// watched is a server whose syncs are recorded by a platter.
func watched(t *testing.T) (*Server, *platter) {
	t.Helper()
	s := serverAt(t, t.TempDir())
	p := newPlatter(s.cfg.Dir)
	s.disk.sync = p
	return s, p
}

func serverAt(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Start(t.Context(), Config{Dir: dir, Sync: true, Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s
}

func api(t *testing.T, s *Server) js.JetStream {
	t.Helper()
	nc, err := s.Connect("test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	a, err := js.New(nc)
	require.NoError(t, err)
	return a
}

// After a power cut at any moment, everything that OnDisk confirmed is there when the server starts
// again. The stream has many files and concurrent writers.
func TestOnDisk_ConfirmedRecordsSurviveAPowerCut(t *testing.T) {
	t.Parallel()
	s, p := watched(t)
	a := api(t, s)
	_, err := a.CreateStream(t.Context(), js.StreamConfig{Name: "LOG", Subjects: []string{"log.>"}})
	require.NoError(t, err)
	const writers, each = 8, 120
	var (
		mu             sync.Mutex // guards the fields below
		kept, promised = map[uint64]string{}, map[uint64]string{}
		left           *platter // the state at the power cut
	)
	ctx, cut := context.WithCancel(t.Context())
	defer cut()
	body := strings.Repeat("x", 24<<10) // about 23 MB in total: more than two files
	write := func(w, i int) error {
		text := fmt.Sprint(w, " ", i, " ", body)
		ack, err := a.Publish(t.Context(), fmt.Sprintf("log.%d", w), []byte(text))
		if err != nil {
			return err
		}
		if err := s.OnDisk(ctx, "LOG", ack.Sequence, true); err != nil {
			return err // written but not confirmed
		}
		mu.Lock()
		defer mu.Unlock()
		if kept[ack.Sequence] = text; len(kept) == writers*each*9/10 {
			promised, left = maps.Clone(kept), p.now()
			cut()
		}
		return nil
	}
	ended := make(chan error, writers)
	for w := range writers {
		go func() {
			var err error
			for i := 0; i < each && err == nil && ctx.Err() == nil; i++ {
				err = write(w, i)
			}
			ended <- err
		}()
	}
	for range writers {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			require.NoError(t, err)
		}
	}
	require.Error(t, ctx.Err(), "the power did not fail")
	image := t.TempDir()
	left.image(t, image)
	require.GreaterOrEqual(t, len(p.blocks(t, "LOG")), 2, "one file holds all: the change of files was not tried")

	again, err := api(t, serverAt(t, image)).Stream(t.Context(), "LOG")
	require.NoError(t, err)
	for seq, text := range promised {
		m, err := again.GetMsg(t.Context(), seq)
		require.NoError(t, err, "the record at %d was kept, and is gone", seq)
		require.Equal(t, text, string(m.Data))
	}
}

// blocks returns the record files of a stream.
func (p *platter) blocks(t *testing.T, stream string) []string {
	t.Helper()
	all, err := filepath.Glob(strings.ReplaceAll(streamsDir(p.from), "$", "[$]") + "/" + stream + "/msgs/*" + blockSuffix)
	require.NoError(t, err)
	return all
}

// In a bucket, values replace others: the server deletes and rewrites earlier files.
func TestOnDisk_KeepsTheLastValueOfKeysThatChange(t *testing.T) {
	t.Parallel()
	s, p := watched(t)
	kv, err := api(t, s).CreateKeyValue(t.Context(), js.KeyValueConfig{Bucket: "b"})
	require.NoError(t, err)
	want := map[string]string{}
	for i := range 60 {
		for k := range 5 {
			key, value := fmt.Sprint("key-", k), fmt.Sprint(i, strings.Repeat("v", 100<<10))
			if k == 0 && i > 0 {
				continue // the first file has a live value
			}
			rev, err := kv.Put(t.Context(), key, []byte(value))
			require.NoError(t, err)
			require.NoError(t, s.OnDisk(t.Context(), "KV_b", rev, true))
			want[key] = value
		}
		if i%20 == 0 {
			require.NoError(t, s.disk.settle())
		}
	}
	require.Less(t, len(p.blocks(t, "KV_b")), s.disk.tail("KV_b").files.number, "no file has gone")
	image := t.TempDir()
	p.image(t, image)
	again, err := api(t, serverAt(t, image)).KeyValue(t.Context(), "b")
	require.NoError(t, err)
	for key, value := range want {
		e, err := again.Get(t.Context(), key)
		require.NoError(t, err, key)
		require.True(t, bytes.Equal([]byte(value), e.Value()), key)
	}
}

// Position 0 means everything acknowledged before the call.
func TestOnDisk_WithoutAPositionKeepsAllThatWasWritten(t *testing.T) {
	t.Parallel()
	s, p := watched(t)
	a := api(t, s)
	_, err := a.CreateStream(t.Context(), js.StreamConfig{Name: "LOG", Subjects: []string{"log.>"}})
	require.NoError(t, err)
	for range 3 {
		_, err := a.Publish(t.Context(), "log.a", []byte("kept"))
		require.NoError(t, err)
		require.NoError(t, s.OnDisk(t.Context(), "LOG", 0, true))
	}
	image := t.TempDir()
	p.image(t, image)
	again, err := api(t, serverAt(t, image)).Stream(t.Context(), "LOG")
	require.NoError(t, err)
	require.EqualValues(t, 3, again.CachedInfo().State.Msgs)
}

// gated is a disk whose syncs the test releases.
type gated struct {
	onDisk

	asked chan struct{}
	let   chan error
	armed atomic.Bool
}

func (g *gated) file(*os.File) error {
	if !g.armed.Load() {
		return nil
	}
	g.asked <- struct{}{}
	return <-g.let
}

// gate is a server with a stream of n records, the first of which is synced. Further syncs wait for
// the test.
func gate(t *testing.T, n int) (*Server, *gated) {
	t.Helper()
	s := serverAt(t, t.TempDir())
	g := &gated{asked: make(chan struct{}), let: make(chan error)}
	s.disk.sync = g
	a := api(t, s)
	_, err := a.CreateStream(t.Context(), js.StreamConfig{Name: "LOG", Subjects: []string{"log.>"}})
	require.NoError(t, err)
	for range n {
		_, err := a.Publish(t.Context(), "log.a", nil)
		require.NoError(t, err)
	}
	require.NoError(t, s.OnDisk(t.Context(), "LOG", 1, true))
	// Once the folder was read long enough ago that a later change would show, a round is one sync.
	require.Eventually(t, func() bool {
		require.NoError(t, s.OnDisk(t.Context(), "LOG", 0, true))
		f := s.disk.tail("LOG").files
		f.mu.Lock()
		defer f.mu.Unlock()
		return !f.seen.IsZero()
	}, patience, time.Millisecond)
	g.armed.Store(true)
	return s, g
}

const patience = 20 * time.Second

func (s *Server) begin(t *testing.T, pos uint64) <-chan error {
	t.Helper()
	c := make(chan error, 1)
	go func() { c <- s.OnDisk(t.Context(), "LOG", pos, true) }()
	return c
}

// waits returns once a caller waits for position pos.
func (s *Server) waits(t *testing.T, pos uint64) {
	t.Helper()
	tail := s.disk.tail("LOG")
	require.Eventually(t, func() bool {
		tail.mu.Lock()
		defer tail.mu.Unlock()
		return tail.written >= pos
	}, patience, time.Millisecond)
}

func TestOnDisk_ASyncThatBeganBeforeTheRecordDoesNotCount(t *testing.T) {
	t.Parallel()
	s, g := gate(t, 4)
	second := s.begin(t, 2)
	<-g.asked
	third := s.begin(t, 3)
	s.waits(t, 3)
	fourth := s.begin(t, 4)
	s.waits(t, 4)
	g.let <- nil
	require.NoError(t, <-second)
	<-g.asked
	select {
	case err := <-third:
		t.Fatal("confirmed a record whose sync is in progress: ", err)
	default:
	}
	g.let <- nil
	require.NoError(t, <-third)
	require.NoError(t, <-fourth, "both share a sync")
	require.NoError(t, s.OnDisk(t.Context(), "LOG", 4, true), "known to be kept, without a sync")
}

// The error of an earlier round does not affect later records.
func TestOnDisk_AnErrorReachesOnlyTheAffectedCallers(t *testing.T) {
	t.Parallel()
	s, g := gate(t, 3)
	second := s.begin(t, 2)
	<-g.asked
	third := s.begin(t, 3)
	s.waits(t, 3)
	odd := errors.New("too many open files")
	g.let <- odd
	require.ErrorIs(t, <-second, odd)
	<-g.asked
	g.let <- nil
	require.NoError(t, <-third)
	require.NoError(t, s.Ready())
}

// After a caller gives up, the sync continues for the others.
func TestOnDisk_ACallerMayGo(t *testing.T) {
	t.Parallel()
	s, g := gate(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- s.OnDisk(ctx, "LOG", 2, true) }()
	<-g.asked
	stays := s.begin(t, 2)
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	g.let <- nil
	require.NoError(t, <-stays)
}

// After a failed sync the system may report success although it dropped the data. No sync is
// confirmed until the server has read its files again.
func TestOnDisk_AFailedSyncIsFinalUntilTheServerIsOpenedAgain(t *testing.T) {
	t.Parallel()
	s, g := gate(t, 3)
	second := s.begin(t, 2)
	<-g.asked
	third := s.begin(t, 3)
	s.waits(t, 3)
	broken := fmt.Errorf("%w: %w", errUnsynced, errors.New("the disk is broken"))
	g.let <- broken
	require.ErrorIs(t, <-second, broken)
	require.ErrorIs(t, <-third, ErrStorage)
	require.ErrorIs(t, s.OnDisk(t.Context(), "LOG", 3, true), ErrStorage)
	require.ErrorIs(t, s.Ready(), ErrStorage, "Watch opens it again")
	require.NoError(t, s.Restart())
	require.NoError(t, s.Ready())
	require.NoError(t, s.OnDisk(t.Context(), "LOG", 3, true))
}

func TestOnDisk_ReportsAServerThatIsDown(t *testing.T) {
	t.Parallel()
	s, g := gate(t, 1)
	g.armed.Store(false)
	s.Stop()
	require.ErrorIs(t, s.OnDisk(t.Context(), "LOG", 2, true), errDown)
	require.ErrorIs(t, s.OnDisk(t.Context(), "OTHER", 1, true), errDown)
}

// Without Sync no caller waits.
func TestOnDisk_WithoutSyncPromisesNothing(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	require.NoError(t, s.OnDisk(t.Context(), "NONE", 1, true))
	require.Empty(t, s.disk.all())
}

// A failure outside the record files is a failure of the same disk.
func TestOnDisk_AFailureOutsideTheRecordsIsFinalToo(t *testing.T) {
	t.Parallel()
	s, g := gate(t, 2)
	require.NoError(t, os.WriteFile(filepath.Join(streamsDir(s.cfg.Dir), "LOG", "more"), []byte("of it"), 0o600))
	settled := make(chan error, 1)
	go func() { settled <- s.disk.settle() }()
	<-g.asked
	g.let <- fmt.Errorf("%w: %w", errUnsynced, errors.New("the disk is broken"))
	require.ErrorIs(t, <-settled, ErrStorage)
	require.ErrorIs(t, s.OnDisk(t.Context(), "LOG", 2, true), ErrStorage)
}

// A round that waits during another failed sync must fail, too. It reopens the file, and the system
// reports a failure only once.
func TestOnDisk_ARoundConcurrentWithAFailedSyncFails(t *testing.T) {
	t.Parallel()
	s, g := gate(t, 2)
	block := s.disk.tail("LOG").files.block(1)
	content, err := os.ReadFile(block)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(block+".new", content, 0o600))
	require.NoError(t, os.Rename(block+".new", block))
	settled := make(chan error, 1)
	go func() { settled <- s.disk.settle() }()
	<-g.asked
	second := s.begin(t, 2)
	s.waits(t, 2)
	g.let <- fmt.Errorf("%w: %w", errUnsynced, errors.New("the disk is broken"))
	require.ErrorIs(t, <-settled, ErrStorage)
	require.ErrorIs(t, <-second, ErrStorage)
}

// A caller that waits for everything does not get an earlier round's error.
func TestOnDisk_WithoutAPositionAnEarlierRoundsErrorIsNotReported(t *testing.T) {
	t.Parallel()
	s, g := gate(t, 2)
	second := s.begin(t, 2)
	<-g.asked
	all := s.begin(t, 0)
	odd := errors.New("too many open files")
	g.let <- odd
	require.ErrorIs(t, <-second, odd)
	<-g.asked
	g.let <- nil
	require.NoError(t, <-all)
}

// A caller that is not urgent shares the sync of an urgent one, which does not wait.
func TestOnDisk_SyncsThatAreNotUrgentAreShared(t *testing.T) {
	t.Parallel()
	s, g := gate(t, 4)
	tail := s.disk.tail("LOG")
	tail.pace = time.Hour
	onDiskOf(s).Begin("LOG", 2)
	joins := make(chan error, 1)
	go func() { joins <- s.OnDisk(t.Context(), "LOG", 3, false) }()
	s.waits(t, 3)
	select {
	case <-g.asked:
		t.Fatal("a sync that is not urgent began immediately")
	case err := <-joins:
		t.Fatal("confirmed a record that is not synced: ", err)
	default:
	}
	urgent := s.begin(t, 4)
	<-g.asked
	g.let <- nil
	require.NoError(t, <-urgent)
	require.NoError(t, <-joins)
	require.EqualValues(t, 4, tail.kept)
}

// A started sync completes soon without waiters, even behind a sync in progress.
func TestOnDisk_AStartedRoundIsKeptWithoutWaiters(t *testing.T) {
	t.Parallel()
	s, g := gate(t, 3)
	onDiskOf(s).Begin("LOG", 2)
	<-g.asked
	onDiskOf(s).Begin("LOG", 3)
	g.let <- nil
	<-g.asked
	g.let <- nil
	tail := s.disk.tail("LOG")
	require.Eventually(t, func() bool {
		tail.mu.Lock()
		defer tail.mu.Unlock()
		return tail.kept == 3
	}, patience, time.Millisecond)
}

// onDiskOf returns the server's OnDisk in the form that users have.
func onDiskOf(s *Server) natslink.OnDisk { return s.OnDisk }
