package snapshot_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine/snapshot"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// counted is a log that counts the reads of whole runs.
type counted struct {
	*memory.Log
	mu    sync.Mutex
	whole int
}

func (c *counted) Run(ctx context.Context, r subject.Run) ([]*frame.Frame, error) {
	c.mu.Lock()
	c.whole++
	c.mu.Unlock()
	return c.Log.Run(ctx, r)
}

func (c *counted) wholeReads() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.whole
}

// long is a run with a snapshot of its first 300 events.
func long(t *testing.T) (*counted, *kvmemory.Store, *writer) {
	t.Helper()
	log, store := &counted{Log: memory.New()}, kvmemory.New()
	w := begin(t, log, theRun, unchanged)
	w.nodes(t, 30)
	require.Equal(t, snapshot.Written, written(t, log, store, theRun))
	log.whole = 0
	return log, store, w
}

func whole(t *testing.T, log runlog.Reader) (*runstate.State, frame.Head) {
	t.Helper()
	frames, err := log.Run(t.Context(), theRun)
	require.NoError(t, err)
	st, head, err := machine.Load(frames)
	require.NoError(t, err)
	return st, head
}

// results collects what a keeper counts.
func results() (*[]snapshot.Result, func(snapshot.Result)) {
	var got []snapshot.Result
	return &got, func(r snapshot.Result) { got = append(got, r) }
}

// The state from a snapshot is the state from the whole log, after any number of later frames.
func TestRead_FoldsAsTheWholeLogDoes(t *testing.T) {
	t.Parallel()
	log, store, w := long(t)
	got, done := results()
	k := keeper(t, log, store, done)
	for range 8 {
		want, head := whole(t, log.Log)
		f, err := k.Read(t.Context(), byID, snapshot.Latest)
		require.NoError(t, err)
		require.Equal(t, want, f.State)
		require.Equal(t, head, f.Head)
		require.Equal(t, 301, f.From)
		w.append(t, subject.Wake)
		w.nodes(t, 1)
	}
	require.Zero(t, log.wholeReads())
	require.Subset(t, []snapshot.Result{snapshot.Hit}, *got)
}

// Each of these snapshots is ignored and counted, and the run is folded from its log.
func TestRead_RejectsWhatIsNotOfTheLog(t *testing.T) {
	t.Parallel()
	other := theRun
	other.RunID = "run_2"
	for name, spoil := range map[string]func(t *testing.T, log *counted, s *kvmemory.Store, w *writer){
		"a flipped bit in the checksum": flip(3),
		"a flipped bit in the content":  flip(100),
		"cut off": func(t *testing.T, _ *counted, s *kvmemory.Store, _ *writer) {
			put(t, s, value(t, s)[:200])
		},
		"empty": func(t *testing.T, _ *counted, s *kvmemory.Store, _ *writer) { put(t, s, nil) },
		"of another run": func(t *testing.T, log *counted, s *kvmemory.Store, _ *writer) {
			begin(t, log, other, unchanged).nodes(t, 30)
			require.Equal(t, snapshot.Written, written(t, log, s, other))
			e, err := s.Get(t.Context(), snapshot.Place(other))
			require.NoError(t, err)
			put(t, s, e.Value)
		},
		"of another run, signed": func(t *testing.T, log *counted, s *kvmemory.Store, _ *writer) {
			signed(t, log, s, func(v *snapshot.Snapshot) string { v.Run = other; return snapshot.Build() })
		},
		"of another build": func(t *testing.T, log *counted, s *kvmemory.Store, _ *writer) {
			signed(t, log, s, func(*snapshot.Snapshot) string { return snapshot.Build() + "+" })
		},
		"of another frame": func(t *testing.T, log *counted, s *kvmemory.Store, _ *writer) {
			signed(t, log, s, func(v *snapshot.Snapshot) string { v.Head.Hash = "other"; return snapshot.Build() })
		},
		"of a position without a frame of the run": func(t *testing.T, log *counted, s *kvmemory.Store, _ *writer) {
			signed(t, log, s, func(v *snapshot.Snapshot) string { v.Head.Pos++; return snapshot.Build() })
		},
		"with another number of events": func(t *testing.T, log *counted, s *kvmemory.Store, _ *writer) {
			signed(t, log, s, func(v *snapshot.Snapshot) string { v.Head.Next++; return snapshot.Build() })
		},
		"of a masked run": func(t *testing.T, log *counted, s *kvmemory.Store, _ *writer) {
			signed(t, log, s, func(v *snapshot.Snapshot) string {
				v.Record = []byte(`{"runId":"run_1","workflowId":"wf","owner":{"tenant":"acme"},"masking":"mask"}`)
				return snapshot.Build()
			})
		},
		"ahead of a log that lost its end": func(t *testing.T, log *counted, _ *kvmemory.Store, w *writer) {
			log.CutOff(w.head.Pos - 1)
		},
		"of a frame that another one replaced": func(t *testing.T, log *counted, _ *kvmemory.Store, w *writer) {
			log.CutOff(w.head.Pos - 1)
			_, w.head = whole(t, log.Log)
			w.append(t, subject.Step, wire.Draft{
				Type:    wire.EventNodeCompleted,
				NodeID:  "node-30",
				Payload: json.RawMessage(`{"nodeId":"node-30"}`),
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, store, w := long(t)
			spoil(t, log, store, w)
			want, head := whole(t, log.Log)
			got, done := results()
			f, err := keeper(t, log, store, done).Read(t.Context(), byID, snapshot.Latest)
			require.NoError(t, err)
			require.Equal(t, want, f.State)
			require.Equal(t, head, f.Head)
			require.Zero(t, f.From)
			require.Equal(t, []snapshot.Result{snapshot.Rejected}, *got)
			// The next snapshot replaces it.
			require.Equal(t, snapshot.Written, written(t, log, store, theRun))
			*got = nil
			_, err = keeper(t, log, store, done).Read(t.Context(), byID, snapshot.Latest)
			require.NoError(t, err)
			require.Equal(t, []snapshot.Result{snapshot.Hit}, *got)
		})
	}
}

func value(t *testing.T, s kv.Store) []byte {
	t.Helper()
	e, err := s.Get(t.Context(), snapshot.Place(theRun))
	require.NoError(t, err)
	return e.Value
}

func put(t *testing.T, s kv.Store, b []byte) {
	t.Helper()
	_, err := s.Put(t.Context(), snapshot.Place(theRun), b)
	require.NoError(t, err)
}

func flip(at int) func(*testing.T, *counted, *kvmemory.Store, *writer) {
	return func(t *testing.T, _ *counted, s *kvmemory.Store, _ *writer) {
		t.Helper()
		b := append([]byte(nil), value(t, s)...)
		b[at] ^= 1
		put(t, s, b)
	}
}

// signed stores a changed snapshot of the run with a right checksum.
func signed(t *testing.T, log *counted, s kv.Store, change func(*snapshot.Snapshot) (build string)) {
	t.Helper()
	st, head := whole(t, log.Log)
	first, err := log.First(t.Context(), theRun)
	require.NoError(t, err)
	v := &snapshot.Snapshot{Run: theRun, Head: head, Record: first.Body, State: st}
	store, err := snapshot.NewStore(s, secret)
	require.NoError(t, err)
	build := change(v)
	require.NoError(t, store.PutAs(t.Context(), theRun, v, build))
}

func TestRead_RejectsSnapshotsOfAnotherHostKey(t *testing.T) {
	t.Parallel()
	log, s, _ := long(t)
	store, err := snapshot.NewStore(s, []byte("another secret of at least 32 bytes"))
	require.NoError(t, err)
	got, done := results()
	_, err = snapshot.New(snapshot.Deps{
		Log:    log,
		Store:  store,
		Logger: quiet(),
		Done:   done,
	}).Read(t.Context(), byID, snapshot.Latest)
	require.NoError(t, err)
	require.Equal(t, []snapshot.Result{snapshot.Rejected}, *got)
}

// A damaged frame after the snapshot, or its own last frame, is found; frames before it are not read.
func TestRead_FindsDamageFromTheSnapshotOn(t *testing.T) {
	t.Parallel()
	log, store, w := long(t)
	at := w.head.Pos
	w.nodes(t, 3)
	k := keeper(t, log, store, nil)
	for _, pos := range []uint64{at, at + 1, w.head.Pos} {
		log.Damage(pos)
		_, err := k.Read(t.Context(), byID, snapshot.Latest)
		require.ErrorIs(t, err, frame.ErrDamaged, "at %d", pos)
		log.Damage(pos) // it is whole again
	}
	log.Damage(at - 1)
	_, err := k.Read(t.Context(), byID, snapshot.Latest)
	require.NoError(t, err)
	f, err := k.FoldAll(t.Context(), byID)
	require.ErrorIs(t, err, frame.ErrDamaged)
	require.NotEmpty(t, f.Frames)
}

// Frames that this build cannot read give the error that they give without a snapshot.
func TestRead_FailsAsTheWholeLogDoes(t *testing.T) {
	t.Parallel()
	log, store, w := long(t)
	f := frame.New(theRun, subject.Step, w.head, []wire.Event{wire.Draft{Type: wire.EventOutputChunk}.Place("run_1", w.head.Next, at)})
	f.Body = []byte("[")
	_, err := log.Append(t.Context(), f.By("P-1"), w.head.Pos)
	require.NoError(t, err)
	got, done := results()
	k := keeper(t, log, store, done)
	_, want := k.FoldAll(t.Context(), byID)
	require.Error(t, want)
	read, err := k.Read(t.Context(), byID, snapshot.Latest)
	require.Equal(t, want, err)
	require.NotEmpty(t, read.Frames)
	require.Equal(t, []snapshot.Result{snapshot.Rejected}, *got)
}

// A session that reads what others wrote after its head needs all of these frames.
func TestRead_UsesNoSnapshotOfALaterFrame(t *testing.T) {
	t.Parallel()
	log, store, w := long(t)
	k := keeper(t, log, store, nil)
	f, err := k.Read(t.Context(), byID, w.head.Pos)
	require.NoError(t, err)
	require.Equal(t, 301, f.From)
	f, err = k.Read(t.Context(), byID, w.head.Pos-1)
	require.NoError(t, err)
	require.Zero(t, f.From)
	require.Equal(t, uint64(1), f.Frames[0].Pos)
}

// away is an unavailable store.
type away struct{ kv.Store }

func (away) Get(context.Context, string) (kv.Entry, error) {
	return kv.Entry{}, fmt.Errorf("%w: away", kv.ErrUnavailable)
}

func TestRead_DoesWithoutAStore(t *testing.T) {
	t.Parallel()
	log, s, _ := long(t)
	want, _ := whole(t, log.Log)
	got, done := results()
	for _, k := range []*snapshot.Keeper{keeper(t, log, away{s}, done), snapshot.Disabled(log)} {
		f, err := k.Read(t.Context(), byID, snapshot.Latest)
		require.NoError(t, err)
		require.Equal(t, want, f.State)
	}
	require.Equal(t, []snapshot.Result{snapshot.Unavailable}, *got)
}

func TestRead_FailsAsTheLogDoes(t *testing.T) {
	t.Parallel()
	log, s, _ := long(t)
	k := keeper(t, log, s, nil)
	_, err := k.Read(t.Context(), subject.Run{Tenant: "acme", RunID: "none"}, snapshot.Latest)
	require.ErrorIs(t, err, runlog.ErrNotFound)
	log.FailReads(runlog.ErrUnavailable)
	_, err = k.Read(t.Context(), byID, snapshot.Latest)
	require.ErrorIs(t, err, runlog.ErrUnavailable)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("stopped")
	cancel(why)
	_, err = k.Read(ctx, byID, snapshot.Latest)
	require.ErrorIs(t, err, why)
}
