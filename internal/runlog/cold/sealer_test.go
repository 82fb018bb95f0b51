package cold_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/internal/runlog/cold/sqlite"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

var (
	quiet = slog.New(slog.DiscardHandler)
	at    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	errAt = errors.New("the process dies here")
)

// rig is a log, a cold store, and what they had before anything was sealed.
type rig struct {
	*cold.Log

	hot   *memory.Log
	store *sqlite.Store
	want  map[subject.Run][]*frame.Frame
}

func newRig(t *testing.T) *rig {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "cold.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return newRigOn(store)
}

func newRigOn(store *sqlite.Store) *rig {
	hot := memory.New()
	return &rig{Log: cold.NewLog(hot, store, pastAll, cold.NewFaults(quiet)), hot: hot, store: store, want: map[subject.Run][]*frame.Frame{}}
}

// run appends a run with the number of events of each frame; the last one ends it.
func (r *rig) run(t *testing.T, id string, frames ...int) subject.Run {
	t.Helper()
	run := subject.Run{Tenant: "acme", WorkflowID: "flow", RunID: id}
	record := fmt.Appendf(nil, `{"runId":%q,"workflowId":"flow","owner":{"tenant":"acme"},"createdAt":"2026-03-01T12:00:00.000Z"}`, id)
	f := frame.NewStart(run, record).By("writer").In("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	pos, err := r.Append(t.Context(), f, 0)
	require.NoError(t, err)
	head := frame.Head{Pos: pos, Hash: f.Hash}
	for i, n := range frames {
		events := make([]wire.Event, n)
		for j := range events {
			d := wire.Draft{Type: wire.EventLogAppended, Payload: fmt.Appendf(nil, `{"level":"info","message":"event %d of %s"}`, j, id)}
			if j%2 == 1 {
				d.Trust = wire.Untrusted
			}
			events[j] = d.Place(id, head.Next+j, at)
		}
		kind := subject.Step
		if i == len(frames)-1 {
			kind = subject.End
		}
		f := frame.New(run, kind, head, events).With(`{"note":1}`)
		pos, err := r.Append(t.Context(), f, head.Pos)
		require.NoError(t, err)
		head = frame.Head{Pos: pos, Hash: f.Hash, Next: f.Last + 1}
	}
	if r.want[run], err = r.hot.Run(t.Context(), run); err != nil {
		require.NoError(t, err)
	}
	return run
}

func (r *rig) sealer(log cold.Hot, store cold.Store, past cold.Past) *cold.Sealer {
	return cold.NewSealer(time.Hour, cold.SealerDeps{
		Log: log, Store: store, Past: past, Clock: func() time.Time { return time.Now().Add(2 * time.Hour) }, Logger: quiet,
	})
}

func pastAll(context.Context, uint64) error { return nil }

func (r *rig) sweep(t *testing.T) {
	t.Helper()
	require.NoError(t, r.sealer(r.hot, r.store, pastAll).Sweep(t.Context()))
}

// same checks that all reads of a run are as they were.
func (r *rig) same(t *testing.T, run subject.Run) {
	t.Helper()
	want := r.want[run]
	equal := func(got []*frame.Frame, from int) {
		t.Helper()
		require.Len(t, got, len(want)-from)
		for i, f := range got {
			require.NoError(t, f.Verify())
			w, g := *want[from+i], *f
			require.True(t, w.Stored.Equal(g.Stored))
			w.Stored, g.Stored = time.Time{}, time.Time{}
			require.Equal(t, w, g)
		}
	}
	all, err := r.Run(t.Context(), run)
	require.NoError(t, err)
	equal(all, 0)
	anyFlow := subject.Run{Tenant: run.Tenant, RunID: run.RunID}
	first, err := r.First(t.Context(), anyFlow)
	require.NoError(t, err)
	equal(append([]*frame.Frame{first}, all[1:]...), 0)
	last, err := r.Last(t.Context(), anyFlow)
	require.NoError(t, err)
	equal([]*frame.Frame{last}, len(want)-1)
	for i, f := range want {
		rest, err := r.After(t.Context(), run, f.Pos)
		require.NoError(t, err)
		equal(rest, i+1)
		page, err := r.Page(t.Context(), run, f.Pos-1, 1)
		require.NoError(t, err)
		require.Len(t, page, 1)
		require.Equal(t, f.Hash, page[0].Hash)
	}
}

func (r *rig) sealed(t *testing.T, run subject.Run) bool {
	t.Helper()
	_, err := r.hot.Run(t.Context(), run)
	return errors.Is(err, runlog.ErrSealed)
}

func TestSealer_MovesEndedRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	small, long, large := r.run(t, "small", 1), r.run(t, "long", 3, 70, 0, 2, 1), r.run(t, "large", 4000, 9000, 1)
	going := subject.Run{Tenant: "acme", WorkflowID: "flow", RunID: "going"}
	_, err := r.Append(t.Context(), frame.NewStart(going, []byte(`{}`)), 0)
	require.NoError(t, err)
	for range 2 {
		r.sweep(t)
		for run := range r.want {
			require.True(t, r.sealed(t, run))
			r.same(t, run)
		}
	}
	require.False(t, r.sealed(t, going))
	for _, run := range []subject.Run{small, long, large} {
		left, err := r.hot.Remaining(t.Context(), &frame.Frame{Run: run})
		require.NoError(t, err)
		require.Empty(t, left)
	}
	pending, _, err := r.store.Pending(t.Context(), "", 10)
	require.NoError(t, err)
	require.Empty(t, pending)
	_, err = r.Append(t.Context(), frame.NewStart(small, []byte(`{"another":1}`)), 0)
	require.ErrorIs(t, err, runlog.ErrConflict, "the id stays in use")
	for _, f := range r.want[long] { // an append whose acknowledgement was lost
		after := uint64(0)
		if f.First > 0 || f.Kind != subject.Start {
			after = f.Pos - 1
		}
		pos, err := r.Append(t.Context(), f, after)
		require.NoError(t, err)
		require.Equal(t, f.Pos, pos)
	}
}

func TestFrames_GivesPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := r.run(t, "r", 3000, 5000, 20, 4000, 1)
	r.sweep(t)
	for from := -1; from < 12021; {
		frames, err := cold.Frames(t.Context(), r.store, run, from, 100, 1<<20)
		require.NoError(t, err)
		require.NotEmpty(t, frames)
		require.LessOrEqual(t, frames[0].First, max(from, 0))
		last := frames[len(frames)-1]
		require.GreaterOrEqual(t, last.Last, min(from+99, 12020))
		from = last.Last + 1
	}
	frames, err := cold.Frames(t.Context(), r.store, run, 12021, 100, 1<<20)
	require.NoError(t, err)
	require.Empty(t, frames)
}

// The window counts from the end of a run.
func TestSealer_KeepsRunsForTheWindow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := r.run(t, "r", 1)
	s := cold.NewSealer(time.Hour, cold.SealerDeps{Log: r.hot, Store: r.store, Past: pastAll, Clock: time.Now, Logger: quiet})
	require.NoError(t, s.Sweep(t.Context()))
	require.False(t, r.sealed(t, run))
	r.sweep(t)
	require.True(t, r.sealed(t, run))
}

// dying is a log and a store that end the process before or after one of their calls.
type dying struct {
	*memory.Log
	*sqlite.Store

	mu        sync.Mutex // guards calls
	at, calls int
	// done: the call has an effect before the process dies.
	done bool
	// extent is the size of the log; the zero Extent is that of the log below.
	extent runlog.Extent
}

func (d *dying) Extent(ctx context.Context) (runlog.Extent, error) {
	if d.extent != (runlog.Extent{}) {
		return d.extent, nil
	}
	return d.Log.Extent(ctx)
}

func (d *dying) call(f func() error) error {
	d.mu.Lock()
	d.calls++
	call := d.calls
	d.mu.Unlock()
	if call > d.at {
		return errAt
	}
	if call < d.at {
		return f()
	}
	if d.done {
		return errors.Join(errAt, f())
	}
	return errAt
}

func (d *dying) Seal(ctx context.Context, run subject.Run, head frame.Head, pos []uint64) error {
	return d.call(func() error { return d.Log.Seal(ctx, run, head, pos) })
}

func (d *dying) Drop(ctx context.Context, run subject.Run, pos []uint64, how runlog.Removal) error {
	return d.call(func() error { return d.Log.Drop(ctx, run, pos, how) })
}

func (d *dying) Put(ctx context.Context, objects ...*cold.Object) error {
	return d.call(func() error { return d.Store.Put(ctx, objects...) })
}

func (d *dying) Confirm(ctx context.Context, objects ...cold.Ref) error {
	return d.call(func() error { return d.Store.Confirm(ctx, objects...) })
}

// A process dies before or after each step. Nothing is lost then, and the next process finishes.
func TestSealer_DiesAtEveryStep(t *testing.T) {
	t.Parallel()
	const steps = 1 + 3 + 3 + 1 + 1
	for at := 1; at <= steps; at++ {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("call %d, done %t", at, done), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				for _, id := range []string{"a", "b", "c"} {
					r.run(t, id, 2, 0, 70, 1)
				}
				d := &dying{Log: r.hot, Store: r.store, at: at, done: done}
				err := r.sealer(d, d, pastAll).Sweep(t.Context())
				require.Equal(t, at < steps, err != nil, "%v", err)
				for run := range r.want {
					r.same(t, run)
				}
				for range 2 {
					r.sweep(t)
					for run := range r.want {
						require.True(t, r.sealed(t, run))
						r.same(t, run)
					}
				}
			})
		}
	}
}

// A run is erased while it is being sealed, at every step. Neither its frames nor its object are left.
func TestSealer_MeetsAnErasureAtEveryStep(t *testing.T) {
	t.Parallel()
	const steps = 1 + 3
	for at := 1; at <= steps; at++ {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("call %d, done %t", at, done), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				run := r.run(t, "r", 2, 1)
				d := &dying{Log: r.hot, Store: r.store, at: at, done: done}
				require.Error(t, r.sealer(d, d, pastAll).Sweep(t.Context()))
				kept := r.run(t, "kept", 1)
				marked, err := r.Mark(t.Context(), run, frame.Requested)
				require.NoError(t, err)
				require.True(t, marked)
				left, err := r.Remaining(t.Context(), &frame.Frame{Run: run, Kind: subject.Erase})
				require.NoError(t, err)
				require.Len(t, left, 3, "the steps of the erasure need the frames")
				r.sweep(t) // in between
				require.NoError(t, r.Purge(t.Context(), &frame.Frame{Run: run, Kind: subject.Erase}))
				r.sweep(t)
				for _, read := range []func() error{
					func() error { _, err := r.Run(t.Context(), run); return err },
					func() error { _, err := r.Last(t.Context(), run); return err },
				} {
					require.ErrorIs(t, read(), runlog.ErrErased)
				}
				_, _, err = r.store.Blocks(t.Context(), run)
				require.ErrorIs(t, err, cold.ErrNotFound)
				pending, _, err := r.store.Pending(t.Context(), "", 10)
				require.NoError(t, err)
				require.Empty(t, pending)
				require.True(t, r.sealed(t, kept))
				r.same(t, kept)
			})
		}
	}
}

// late is a log whose reads of runs wait.
type late struct {
	*memory.Log

	read, next chan struct{}
}

func (l late) Page(ctx context.Context, run subject.Run, pos uint64, n int) ([]*frame.Frame, error) {
	frames, err := l.Log.Page(ctx, run, pos, n)
	if len(frames) > 0 { // otherwise the run is read
		close(l.read)
		<-l.next
	}
	return frames, err
}

// A sealer has read a run that another one seals and a caller erases. It must not store the run again.
func TestSealer_DoesNotBringBackAnErasedRun(t *testing.T) {
	t.Parallel()
	for name, sealed := range map[string]bool{"sealed before": true, "not sealed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			run := r.run(t, "r", 1)
			slow := late{Log: r.hot, read: make(chan struct{}), next: make(chan struct{})}
			done := make(chan error, 1)
			go func() { done <- r.sealer(slow, r.store, pastAll).Sweep(t.Context()) }()
			<-slow.read
			if sealed {
				r.sweep(t)
			}
			_, err := r.Mark(t.Context(), run, frame.Requested)
			require.NoError(t, err)
			require.NoError(t, r.Purge(t.Context(), &frame.Frame{Run: run, Kind: subject.Erase}))
			close(slow.next)
			require.NoError(t, <-done)
			r.sweep(t)
			_, _, err = r.store.Blocks(t.Context(), run)
			require.ErrorIs(t, err, cold.ErrNotFound)
			_, err = r.Run(t.Context(), run)
			require.ErrorIs(t, err, runlog.ErrErased)
		})
	}
}

// Several sealers move the same runs while readers read them and writers append others.
func TestSealer_RunsNextToOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const n = 40
	var runs []subject.Run
	for i := range n {
		runs = append(runs, r.run(t, fmt.Sprintf("r%d", i), 1, 3, 1))
	}
	ctx, stop := context.WithCancel(t.Context())
	var readers, sealers sync.WaitGroup
	for w := range 3 {
		readers.Go(func() {
			for i := w; ctx.Err() == nil; i++ {
				run := runs[i%n]
				frames, err := r.Run(t.Context(), run)
				if err != nil || len(frames) != len(r.want[run]) || frame.VerifyChain(frames) != nil {
					t.Errorf("run %s: %d frames: %v", run.RunID, len(frames), err)
					return
				}
				rest, err := r.After(t.Context(), run, frames[1].Pos)
				if err != nil || len(rest) != len(frames)-2 {
					t.Errorf("run %s: %d frames later: %v", run.RunID, len(rest), err)
					return
				}
			}
		})
		sealers.Go(func() {
			if err := r.sealer(r.hot, r.store, pastAll).Sweep(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	sealers.Wait()
	r.sweep(t)
	stop()
	readers.Wait()
	for _, run := range runs {
		require.True(t, r.sealed(t, run))
		r.same(t, run)
	}
	totals, err := r.store.Totals(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(n), totals.Runs)
}

// Frames stay in the log until its readers are past them.
func TestSealer_WaitsForReaders(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := r.run(t, "r", 1)
	end := r.want[run][1].Pos
	behind := func(_ context.Context, pos uint64) error {
		require.Equal(t, end, pos)
		return fmt.Errorf("%w: a reader is behind", runlog.ErrUnavailable)
	}
	require.ErrorIs(t, r.sealer(r.hot, r.store, behind).Sweep(t.Context()), runlog.ErrUnavailable)
	left, err := r.hot.Remaining(t.Context(), &frame.Frame{Run: run})
	require.NoError(t, err)
	require.Len(t, left, 2)
	r.same(t, run)
	r.sweep(t)
	left, err = r.hot.Remaining(t.Context(), &frame.Frame{Run: run})
	require.NoError(t, err)
	require.Empty(t, left)
	r.same(t, run)
}

// An object is damaged or lost. The run is reported as damaged, not as unknown, and can be erased.
func TestLog_ReportsADamagedObject(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, r *rig, run subject.Run){
		"another content": func(t *testing.T, r *rig, run subject.Run) {
			other := r.run(t, "other", 1)
			o, err := cold.Encode(r.want[other])
			require.NoError(t, err)
			o.Run = run
			require.NoError(t, r.store.Put(t.Context(), o))
		},
		"no zstd": func(t *testing.T, r *rig, run subject.Run) {
			o, err := cold.Encode(r.want[run])
			require.NoError(t, err)
			o.Blocks[0].Data = o.Blocks[0].Data[4:]
			require.NoError(t, r.store.Put(t.Context(), o))
		},
		"lost": func(t *testing.T, r *rig, run subject.Run) { require.NoError(t, r.store.Delete(t.Context(), run)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			run := r.run(t, "r", 1)
			r.sweep(t)
			spoil(t, r, run)
			_, err := r.Run(t.Context(), run)
			require.ErrorIs(t, err, frame.ErrDamaged)
			_, err = r.Last(t.Context(), run)
			require.ErrorIs(t, err, frame.ErrDamaged)
			marked, err := r.Mark(t.Context(), run, frame.Requested)
			require.NoError(t, err)
			require.True(t, marked)
			require.NoError(t, r.Purge(t.Context(), &frame.Frame{Run: run, Kind: subject.Erase}))
			_, err = r.Run(t.Context(), run)
			require.ErrorIs(t, err, runlog.ErrErased)
		})
	}
}

func TestEncode_RefusesWhatIsNoWholeRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	frames := r.want[r.run(t, "r", 1, 1)]
	for _, part := range [][]*frame.Frame{nil, frames[:2], frames[1:]} {
		_, err := cold.Encode(part)
		require.ErrorIs(t, err, frame.ErrDamaged)
	}
}
