package runlogtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Writer appends frames to a run that other writers may append to as well.
type Writer struct {
	Log  runlog.Log
	Run  subject.Run
	Name string

	head frame.Head
	// Stored maps the hashes of acknowledged frames to their positions.
	Stored map[string]uint64
	// Lost counts the appends that another writer won.
	Lost int
}

// Add appends n frames, each after the run's current last frame.
func (w *Writer) Add(ctx context.Context, n int) error {
	if w.Stored == nil {
		w.Stored = map[string]uint64{}
	}
	for len(w.Stored) < n {
		f := frame.NewOpen(w.Run, record(w.Run)).By(w.Name)
		if w.head.Pos > 0 {
			e := wire.Draft{Type: wire.EventLogAppended, Payload: []byte(`{"level":"info","message":"m"}`)}
			f = frame.New(w.Run, subject.Step, w.head, []wire.Event{e.Place(w.Run.RunID, w.head.Next, time.Now())}).By(w.Name)
		}
		pos, err := w.Log.Append(ctx, f, w.head.Pos)
		switch {
		case errors.Is(err, runlog.ErrConflict):
			w.Lost++
			last, err := w.Log.Last(ctx, w.Run)
			if err != nil {
				return err
			}
			w.head = last.Head()
		case err != nil:
			return err
		default:
			f.Pos = pos
			w.head = f.Head()
			w.Stored[f.Hash] = pos
		}
	}
	return nil
}

// Unbroken checks that a run has exactly the frames acknowledged to its writers, each once, at the
// returned position, and correctly chained.
func Unbroken(t *testing.T, log runlog.Log, run subject.Run, stored map[string]uint64) {
	t.Helper()
	frames, err := log.Run(within(t), run)
	require.NoError(t, err)
	at := make(map[string]uint64, len(frames))
	prev := ""
	for i, f := range frames {
		require.Equal(t, prev, f.Prev, "frame %d of run %s", i, run.RunID)
		prev = f.Hash
		at[f.Hash] = f.Pos
	}
	require.Len(t, at, len(frames), "each once")
	for hash, pos := range stored {
		require.Equal(t, pos, at[hash], "a frame of run %s", run.RunID)
	}
	require.Len(t, at, len(stored))
}

// appendServesMany has 64 writers, half of which share their runs with another.
func appendServesMany(t *testing.T, l Full) {
	const writers, runs, each = 64, 48, 20
	all := make([]*Writer, writers)
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range all {
		run := subject.Run{Tenant: "acme", WorkflowID: "flow-1", RunID: fmt.Sprint("run-", i%runs)}
		all[i] = &Writer{Log: l, Run: run, Name: fmt.Sprint("writer-", i)}
		wg.Go(func() { errs[i] = all[i].Add(within(t), each) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	stored, run := map[string]map[string]uint64{}, map[string]subject.Run{}
	for _, w := range all {
		if stored[w.Run.RunID] == nil {
			stored[w.Run.RunID], run[w.Run.RunID] = map[string]uint64{}, w.Run
		}
		for hash, pos := range w.Stored {
			stored[w.Run.RunID][hash] = pos
		}
	}
	require.Len(t, stored, runs)
	for id, frames := range stored {
		Unbroken(t, l, run[id], frames)
	}
}
