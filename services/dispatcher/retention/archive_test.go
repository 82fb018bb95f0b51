package retention_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/archive"
	"waybill.dev/waybill/internal/archive/store"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/retention"
)

// bundles renders bundles.
type bundles struct {
	truncated bool
	err       error
	built     int
}

func (b *bundles) Whole(_ context.Context, run subject.Run) ([]byte, error) {
	b.built++
	return fmt.Appendf(nil, `{"run":{"runId":%q,"workflowId":%q},"events":[{"runId":%q,"sequence":0}],"truncated":%t}`,
		run.RunID, run.WorkflowID, run.RunID, b.truncated), b.err
}

// broken is a target that is away.
type broken struct{ archive.Target }

var errFull = errors.New("the server answered 507 QuotaExceeded: full")

func (broken) Put(context.Context, string, []byte) error { return errFull }

type archiveRig struct {
	*retention.Archiver

	log     *memory.Log
	bundles *bundles
	target  archive.Target
	logged  *bytes.Buffer
}

func newArchiveRig(t *testing.T, wrap func(archive.Target) archive.Target) archiveRig {
	t.Helper()
	r := archiveRig{log: memory.New(), bundles: &bundles{}, target: store.Directory(t.TempDir()), logged: &bytes.Buffer{}}
	to := r.target
	if wrap != nil {
		to = wrap(to)
	}
	r.Archiver = retention.NewArchiver(r.log, r.bundles, to, slog.New(slog.NewTextHandler(r.logged, nil)))
	return r
}

func TestStore_KeepsARunOnce(t *testing.T) {
	t.Parallel()
	r := newArchiveRig(t, nil)
	run := writeRun(t, r.log, "run_1", "", true)
	first, err := r.Store(t.Context(), subject.Run{Tenant: "acme", RunID: "run_1"})
	require.NoError(t, err)
	require.True(t, first.Created)
	require.Nil(t, first.Document)
	file, err := r.target.Get(t.Context(), first.Name)
	require.NoError(t, err)
	a, err := archive.Read(file)
	require.NoError(t, err)
	require.Equal(t, run, a.Run())
	require.Equal(t, first.Name, a.Name())

	again, err := r.Store(t.Context(), run)
	require.NoError(t, err)
	require.False(t, again.Created)
	require.Equal(t, first.Name, again.Name)
	require.Equal(t, first.SHA256, again.SHA256)
	require.Equal(t, 1, r.bundles.built)
	names, err := r.target.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{first.Name}, names)

	// A damaged archive is written again.
	require.NoError(t, r.target.Put(t.Context(), first.Name, file[:len(file)/2]))
	mended, err := r.Store(t.Context(), run)
	require.NoError(t, err)
	require.True(t, mended.Created)
	require.Contains(t, r.logged.String(), "truncated")
	file, err = r.target.Get(t.Context(), first.Name)
	require.NoError(t, err)
	_, err = archive.Read(file)
	require.NoError(t, err)
}

func TestStore_RefusesWhatIsNoWholeRun(t *testing.T) {
	t.Parallel()
	r := newArchiveRig(t, nil)
	writeRun(t, r.log, "active", "", false)
	writeRun(t, r.log, "large", "", true)
	for _, tt := range []struct {
		run  subject.Run
		want fault.Code
	}{
		{subject.Run{Tenant: "acme", RunID: "active"}, fault.Conflict},
		{subject.Run{Tenant: "acme", RunID: "ghost"}, fault.RunNotFound},
		{subject.Run{Tenant: "other", RunID: "large"}, fault.RunNotFound},
	} {
		_, err := r.Store(t.Context(), tt.run)
		require.Equal(t, tt.want, fault.CodeOf(err), "%v: %v", tt.run, err)
		_, err = r.Build(t.Context(), tt.run)
		require.Equal(t, tt.want, fault.CodeOf(err), "%v: %v", tt.run, err)
	}
	r.bundles.truncated = true
	_, err := r.Store(t.Context(), subject.Run{Tenant: "acme", RunID: "large"})
	require.Equal(t, fault.PayloadTooLarge, fault.CodeOf(err))
	r.bundles.err = fault.New(fault.ServiceUnavailable, "the redactor is away")
	_, err = r.Store(t.Context(), subject.Run{Tenant: "acme", RunID: "large"})
	require.ErrorContains(t, err, "the redactor is away")
	names, err := r.target.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, names)
}

// The error names the unavailable archive, the log the cause.
func TestStore_ReportsAnUnavailableArchive(t *testing.T) {
	t.Parallel()
	r := newArchiveRig(t, func(at archive.Target) archive.Target { return broken{at} })
	run := writeRun(t, r.log, "run_1", "", true)
	_, err := r.Store(t.Context(), run)
	require.ErrorIs(t, err, retention.ErrArchiveUnavailable)
	require.ErrorIs(t, err, errFull)
	f, ok := fault.As(err)
	require.True(t, ok)
	require.Equal(t, fault.ServiceUnavailable, f.Code)
	require.NotContains(t, f.Message, "Quota")
	require.Equal(t, 1, strings.Count(r.logged.String(), "QuotaExceeded"))
	none := retention.NewArchiver(r.log, r.bundles, nil, slog.New(slog.DiscardHandler))
	require.False(t, none.HasTarget())
	_, err = none.Store(t.Context(), run)
	require.Equal(t, fault.CapabilityNotProvided, fault.CodeOf(err))
	_, err = none.Build(t.Context(), run)
	require.NoError(t, err)
}

// counted is a log that counts the large runs which are loaded at the same time.
type counted struct {
	*memory.Log

	loaded, most atomic.Int64
}

func (l *counted) Run(ctx context.Context, run subject.Run) ([]*frame.Frame, error) {
	n := l.loaded.Add(1)
	for m := l.most.Load(); n > m && !l.most.CompareAndSwap(m, n); m = l.most.Load() {
		runtime.Gosched()
	}
	return l.Log.Run(ctx, run)
}

// held renders bundles when all builds had time to load their runs, or a test lets it.
type held struct {
	bundles

	began chan struct{}
	next  chan struct{}
	log   *counted
}

func (b *held) Whole(ctx context.Context, run subject.Run) ([]byte, error) {
	b.began <- struct{}{}
	<-b.next
	doc, err := (&bundles{}).Whole(ctx, run)
	b.log.loaded.Add(-1)
	return doc, err
}

// Of several large runs, one is loaded at a time: the others wait without their frames.
func TestBuild_LoadsOneLargeRunAtATime(t *testing.T) {
	t.Parallel()
	const runs = 3
	log := &counted{Log: memory.New()}
	b := &held{began: make(chan struct{}), next: make(chan struct{}), log: log}
	a := retention.NewArchiver(log, b, nil, slog.New(slog.DiscardHandler))
	for i := range runs {
		writeLarge(t, log, fmt.Sprintf("r%d", i))
	}
	done := make(chan error, runs)
	for i := range runs {
		go func() {
			_, err := a.Build(t.Context(), subject.Run{Tenant: "acme", RunID: fmt.Sprintf("r%d", i)})
			done <- err
		}()
	}
	for range runs {
		<-b.began
		b.next <- struct{}{}
	}
	for range runs {
		require.NoError(t, <-done)
	}
	require.Equal(t, int64(1), log.most.Load())
}

// writeLarge appends an ended run of 17 MiB.
func writeLarge(t *testing.T, log runlog.Log, id string) {
	t.Helper()
	run := writeRun(t, log, id, "", false)
	first, err := log.First(t.Context(), run)
	require.NoError(t, err)
	e := wire.Draft{Type: wire.EventRunCompleted, Payload: fmt.Appendf(nil, `{"outputs":{"text":%q}}`, strings.Repeat("x", 17<<20))}.Place(id, 0, time.UnixMilli(0))
	_, err = log.Append(t.Context(), frame.New(run, subject.End, frame.Head{Pos: first.Pos, Hash: first.Hash}, []wire.Event{e}), first.Pos)
	require.NoError(t, err)
}

func TestBuild_FindsDamage(t *testing.T) {
	t.Parallel()
	r := newArchiveRig(t, nil)
	run := writeRun(t, r.log, "run_1", "", true)
	r.log.FailReads(fmt.Errorf("read: %w", frame.ErrDamaged))
	_, err := r.Store(t.Context(), run)
	require.Equal(t, fault.LogDamaged, fault.CodeOf(err))
	r.log.FailReads(runlog.ErrUnavailable)
	_, err = r.Build(t.Context(), run)
	require.ErrorIs(t, err, runlog.ErrUnavailable)
}
