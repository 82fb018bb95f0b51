package natsd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// platter is what a power cut would leave of a server's files: of each what it held when its last sync
// began, if a sync of its folder has put its name there.
type platter struct {
	from string

	mu    sync.Mutex // guards what follows
	files map[string][]byte
	names map[string]map[string]bool
}

func newPlatter(from string) *platter {
	return &platter{from: from, files: map[string][]byte{}, names: map[string]map[string]bool{}}
}

func (p *platter) file(f *os.File) error {
	content, err := os.ReadFile(f.Name())
	if errors.Is(err, fs.ErrNotExist) { // its name is gone, and nobody misses it
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files[f.Name()] = content
	return err
}

func (p *platter) folder(path string) error {
	entries, err := os.ReadDir(path)
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names[path] = names
	return err
}

// image writes what is there to a folder.
func (p *platter) image(t *testing.T, to string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for path, content := range p.files {
		named := true
		for at := path; at != p.from; at = filepath.Dir(at) {
			named = named && p.names[filepath.Dir(at)][filepath.Base(at)]
		}
		if !named {
			continue
		}
		rel, err := filepath.Rel(p.from, path)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(to, rel)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(to, rel), content, 0o600))
	}
}

// watched is a server whose syncs go to a platter.
func watched(t *testing.T) (*Server, *platter) {
	t.Helper()
	s := serverAt(t, t.TempDir())
	p := newPlatter(s.cfg.Dir)
	s.disk.sync = p
	return s, p
}

func serverAt(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Start(Config{Dir: dir, Sync: true, Log: slog.New(slog.DiscardHandler)}, "secret")
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

// Whatever moment the power fails at: what OnDisk has returned for is there when the server starts
// again, over many files of a stream, with many who write.
func TestOnDisk_WhatItReturnedForSurvivesAPowerCut(t *testing.T) {
	t.Parallel()
	s, p := watched(t)
	a := api(t, s)
	_, err := a.CreateStream(t.Context(), js.StreamConfig{Name: "LOG", Subjects: []string{"log.>"}})
	require.NoError(t, err)
	const writers, each = 8, 120
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		kept = map[uint64]string{}
	)
	ctx, cut := context.WithCancel(t.Context())
	defer cut()
	body := strings.Repeat("x", 24<<10) // some 23 MB in all: more than two files
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				text := fmt.Sprint(w, " ", i, " ", body)
				ack, err := a.Publish(t.Context(), fmt.Sprintf("log.%d", w), []byte(text))
				require.NoError(t, err)
				if ctx.Err() != nil || s.OnDisk(ctx, "LOG", ack.Sequence) != nil {
					return // written, and nobody was told that it is kept
				}
				mu.Lock()
				kept[ack.Sequence] = text
				n := len(kept)
				mu.Unlock()
				if n == writers*each*9/10 {
					cut()
				}
			}
		})
	}
	<-ctx.Done()
	mu.Lock()
	promised := make(map[uint64]string, len(kept))
	for seq, text := range kept {
		promised[seq] = text
	}
	mu.Unlock()
	image := t.TempDir()
	p.image(t, image)
	wg.Wait()
	require.GreaterOrEqual(t, p.number(t), 2, "one file holds all: the change of files was not tried")

	again, err := api(t, serverAt(t, image)).Stream(t.Context(), "LOG")
	require.NoError(t, err)
	for seq, text := range promised {
		m, err := again.GetMsg(t.Context(), seq)
		require.NoError(t, err, "the record at %d was kept, and is gone", seq)
		require.Equal(t, text, string(m.Data))
	}
}

// number is how many files of records there are.
func (p *platter) number(t *testing.T) int {
	t.Helper()
	all, err := filepath.Glob(strings.ReplaceAll(streamsDir(p.from), "$", "[$]") + "/LOG/msgs/*.blk")
	require.NoError(t, err)
	return len(all)
}

// A bucket has values that replace others: files in the middle go, and are written anew.
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
				continue // the first file keeps one that is alive
			}
			rev, err := kv.Put(t.Context(), key, []byte(value))
			require.NoError(t, err)
			require.NoError(t, s.OnDisk(t.Context(), "KV_b", rev))
			want[key] = value
		}
		if i%20 == 0 {
			require.NoError(t, s.disk.settle())
		}
	}
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

// Position 0 stands for whatever was acknowledged before the call.
func TestOnDisk_WithoutAPositionKeepsAllThatWasWritten(t *testing.T) {
	t.Parallel()
	s, p := watched(t)
	a := api(t, s)
	_, err := a.CreateStream(t.Context(), js.StreamConfig{Name: "LOG", Subjects: []string{"log.>"}})
	require.NoError(t, err)
	for range 3 {
		_, err := a.Publish(t.Context(), "log.a", []byte("kept"))
		require.NoError(t, err)
		require.NoError(t, s.OnDisk(t.Context(), "LOG", 0))
	}
	image := t.TempDir()
	p.image(t, image)
	again, err := api(t, serverAt(t, image)).Stream(t.Context(), "LOG")
	require.NoError(t, err)
	require.EqualValues(t, 3, again.CachedInfo().State.Msgs)
}

// gated is a disk whose syncs the test lets through.
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

// gate is a server with a stream of n records, the first of which is kept; syncs from then
// on wait for the test.
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
	require.NoError(t, s.OnDisk(t.Context(), "LOG", 1))
	// When the names were read so long ago that a change since would show, a round is one sync.
	require.Eventually(t, func() bool {
		require.NoError(t, s.OnDisk(t.Context(), "LOG", 0))
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
	go func() { c <- s.OnDisk(t.Context(), "LOG", pos) }()
	return c
}

// waits returns once position pos is known to be waited for.
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
		t.Fatal("told of a record whose sync is on its way: ", err)
	default:
	}
	g.let <- nil
	require.NoError(t, <-third)
	require.NoError(t, <-fourth, "both share a sync")
	require.NoError(t, s.OnDisk(t.Context(), "LOG", 4), "known to be kept, without a sync")
}

// What kept an earlier round from its end says nothing of a record behind it.
func TestOnDisk_AnErrorIsToldToThoseWhomItIsAbout(t *testing.T) {
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

// A caller who goes leaves the sync to the others.
func TestOnDisk_ACallerMayGo(t *testing.T) {
	t.Parallel()
	s, g := gate(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- s.OnDisk(ctx, "LOG", 2) }()
	<-g.asked
	stays := s.begin(t, 2)
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	g.let <- nil
	require.NoError(t, <-stays)
}

// After a sync has failed the system may say of the next that all is well although it has dropped what it could
// not write: nothing is promised until the server has read its files again.
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
	require.ErrorIs(t, s.OnDisk(t.Context(), "LOG", 3), ErrStorage)
	require.ErrorIs(t, s.Ready(), ErrStorage, "Watch opens it again")
	require.NoError(t, s.Restart())
	require.NoError(t, s.Ready())
	require.NoError(t, s.OnDisk(t.Context(), "LOG", 3))
}

func TestOnDisk_OfAServerThatIsDownSaysSo(t *testing.T) {
	t.Parallel()
	s, g := gate(t, 1)
	g.armed.Store(false)
	s.Stop()
	require.ErrorIs(t, s.OnDisk(t.Context(), "LOG", 2), errDown)
	require.ErrorIs(t, s.OnDisk(t.Context(), "OTHER", 1), errDown)
}

// Without Sync nobody waits.
func TestOnDisk_WithoutSyncPromisesNothing(t *testing.T) {
	t.Parallel()
	s, err := Start(Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	require.NoError(t, s.OnDisk(t.Context(), "NONE", 1))
	require.Empty(t, s.disk.all())
}

// platterFolder is a stream without files, whose syncs go to a platter.
func platterFolder(t *testing.T) (*folder, *platter) {
	t.Helper()
	dir := t.TempDir()
	p := newPlatter(dir)
	f := newFolder(filepath.Join(dir, "LOG"), p)
	t.Cleanup(f.close)
	require.NoError(t, os.MkdirAll(f.msgs(), 0o700))
	return f, p
}

// Records that were written to a file before the server went on to the next are synced with
// those of the next, and a file that was written anew is synced again.
func TestFolder_SyncsAllFilesThatHaveChanged(t *testing.T) {
	t.Parallel()
	f, p := platterFolder(t)
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(f.msgs(), name), []byte(content), 0o600))
	}
	holds := func(want map[string]string) {
		t.Helper()
		image := t.TempDir()
		p.image(t, image)
		for name, content := range want {
			got, err := os.ReadFile(filepath.Join(image, "LOG", "msgs", name))
			require.NoError(t, err)
			require.Equal(t, content, string(got), name)
		}
	}
	require.ErrorIs(t, f.syncBlocks(), fs.ErrNotExist)
	write("1.blk", "a")
	require.NoError(t, f.syncBlocks())
	holds(map[string]string{"1.blk": "a"})
	write("1.blk", "ab")
	write("2.blk", "c")
	write("4.blk", "d") // the third came and went
	require.NoError(t, f.syncBlocks())
	holds(map[string]string{"1.blk": "ab", "2.blk": "c", "4.blk": "d"})
	write("1.tmp", "a2")
	require.NoError(t, os.Rename(filepath.Join(f.msgs(), "1.tmp"), filepath.Join(f.msgs(), "1.blk")))
	require.NoError(t, f.settle())
	holds(map[string]string{"1.blk": "a2"})
}

// What fails beside the records is a failure of the same disk.
func TestOnDisk_AFailureBesideTheRecordsIsFinalToo(t *testing.T) {
	t.Parallel()
	s, g := gate(t, 2)
	require.NoError(t, os.WriteFile(filepath.Join(streamsDir(s.cfg.Dir), "LOG", "more"), []byte("of it"), 0o600))
	settled := make(chan error, 1)
	go func() { settled <- s.disk.settle() }()
	<-g.asked
	g.let <- fmt.Errorf("%w: %w", errUnsynced, errors.New("the disk is broken"))
	require.ErrorIs(t, <-settled, ErrStorage)
	require.ErrorIs(t, s.OnDisk(t.Context(), "LOG", 2), ErrStorage)
}

// Where instants are too coarse to tell that a folder has changed, the files tell.
func TestFolder_SeesTheNextFileWithoutInstants(t *testing.T) {
	t.Parallel()
	f, p := platterFolder(t)
	long := time.Now().Add(-time.Hour)
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(f.msgs(), name), []byte(content), 0o600))
		require.NoError(t, os.Chtimes(f.msgs(), long, long))
	}
	write("1.blk", "a")
	require.NoError(t, f.syncBlocks())
	require.False(t, f.seen.IsZero())
	write("2.blk", "b")
	require.NoError(t, f.syncBlocks())
	require.Equal(t, "b", string(p.files[filepath.Join(f.msgs(), "2.blk")]))
	write("2.new", "bc")
	require.NoError(t, os.Rename(filepath.Join(f.msgs(), "2.new"), filepath.Join(f.msgs(), "2.blk")))
	require.NoError(t, os.Chtimes(f.msgs(), long, long))
	require.NoError(t, f.syncBlocks())
	require.Equal(t, "bc", string(p.files[filepath.Join(f.msgs(), "2.blk")]))
}
