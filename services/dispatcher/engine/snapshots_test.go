package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine/snapshot"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// readsOf is a log that counts the reads of whole runs.
type readsOf struct {
	*memory.Log
	mu    sync.Mutex
	whole int
}

func (l *readsOf) Run(ctx context.Context, r subject.Run) ([]*frame.Frame, error) {
	l.mu.Lock()
	l.whole++
	l.mu.Unlock()
	return l.Log.Run(ctx, r)
}

func (l *readsOf) wholeReads() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.whole
}

// kept is a rig whose executors have snapshots, and the log that they read.
func kept(t *testing.T, m models) (rigged *rig, reads *readsOf, snapshots *kvmemory.Store, keeper *snapshot.Keeper) {
	t.Helper()
	s := kvmemory.New()
	r := newRig(t, define(t, nodeJSON("a", "core.ai.callPrompt", "{}")), m)
	log := &readsOf{Log: r.log}
	store, err := snapshot.NewStore(s, []byte(strings.Repeat("s", 32)))
	require.NoError(t, err)
	r.snapshots = snapshot.New(snapshot.Deps{Log: log, Store: store, Logger: slog.New(slog.DiscardHandler)})
	r.exec = r.executorOn(log, r.defs, m)
	return r, log, s, r.snapshots
}

func spoken(i int) wire.Draft {
	return wire.Draft{
		Type:    wire.EventOutputChunk,
		NodeID:  "a",
		Payload: fmt.Appendf(nil, `{"nodeId":"a","runId":"run_1","chunk":"%d","isLast":false}`, i),
	}
}

// say records n chunks.
func say(ctx context.Context, j model.Journal, n int) error {
	for i := range n {
		if err := j.Record(ctx, spoken(i)); err != nil {
			return err
		}
	}
	return nil
}

func entries(t *testing.T, s kv.Store) int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n, ready := map[string]bool{}, make(chan struct{})
	go func() { <-ready; cancel() }()
	_ = s.Watch(ctx, "", ready, func(e kv.Entry) { n[e.Key] = e.Value != nil })
	live := 0
	for _, there := range n {
		if there {
			live++
		}
	}
	return live
}

// keeping runs a keeper while do runs.
func keeping(t *testing.T, k *snapshot.Keeper, do func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- k.Run(ctx) }()
	do()
	cancel()
	require.NoError(t, <-over)
}

// A dispatcher dies during a long run. Another one continues from the snapshot, with the same
// result as without one, and the run's end removes the snapshot.
func TestExecute_TakesALongRunOverFromItsSnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		model := func(ctx context.Context, _ model.Task, j model.Journal) model.Result {
			if calls++; calls > 1 {
				return model.Result{Output: node.Output{Ports: map[string]json.RawMessage{"output": json.RawMessage(`"done"`)}}}
			}
			if err := say(ctx, j, snapshot.Every+50); err != nil {
				return model.Result{Interrupted: err}
			}
			<-ctx.Done()
			return model.Result{Interrupted: ctx.Err()}
		}
		r, log, s, k := kept(t, model)
		r.log.SetRetryDelay(0)
		r.create(t)
		keeping(t, k, func() {
			d, err := r.log.Next(t.Context())
			require.NoError(t, err)
			ctx, crash := context.WithCancel(t.Context())
			over := make(chan struct{})
			go func() { defer close(over); r.exec.Execute(ctx, d) }()
			synctest.Wait()
			require.Equal(t, 1, entries(t, s))
			crash()
			<-over

			first := log.wholeReads()
			require.Equal(t, 1, first, "the keeper reads a run without a snapshot")
			r.exec = r.executorOn(log, r.defs, models(model))
			r.next(t)
			synctest.Wait()
			require.Equal(t, first, log.wholeReads(), "the log was read from the snapshot on")
			require.Zero(t, entries(t, s))
		})
		st, _ := r.state(t)
		require.Equal(t, wire.StatusCompleted, st.Status)
		require.Equal(t, 2, calls)
	})
}

// A snapshot has no redacted value, and the session continues from it without reading the whole
// log.
func TestExecute_ReloadsALongRunFromItsSnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const secret = "hunter2-hunter2"
		var seen int
		var log *readsOf
		model := func(ctx context.Context, _ model.Task, j model.Journal) model.Result {
			if err := say(ctx, j, snapshot.Every+50); err != nil {
				return model.Result{Interrupted: err}
			}
			synctest.Wait()
			seen = log.wholeReads()
			return model.Result{Output: node.Output{Ports: map[string]json.RawMessage{"output": json.RawMessage(`"` + secret + `"`)}}}
		}
		r, l, s, k := kept(t, model)
		log, r.red.secret = l, secret
		r.create(t)
		keeping(t, k, func() {
			r.next(t)
			require.Equal(t, seen, log.wholeReads())
			synctest.Wait()
			require.Zero(t, entries(t, s))
		})
		st, _ := r.state(t)
		require.Equal(t, wire.StatusCompleted, st.Status)
		require.JSONEq(t, `"[REDACTED:s]"`, string(st.Nodes["a"].Outputs["output"]))
	})
}

// A session adopts the frames of another writer in a long run without reading the whole log.
func TestExecute_AdoptsChangesOfALongRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var (
			r    *rig
			log  *readsOf
			seen int
		)
		model := func(ctx context.Context, _ model.Task, j model.Journal) model.Result {
			if err := say(ctx, j, snapshot.Every+50); err != nil {
				return model.Result{Interrupted: err}
			}
			synctest.Wait() // the snapshot is written
			seen = log.wholeReads()
			other := r.executor(r.defs, r.models) // its reads are not counted
			if _, err := other.Pause(ctx, "acme", "run_1", wire.DrainCurrent, "later", "ops"); err != nil {
				return model.Result{Interrupted: err}
			}
			return model.Result{Output: node.Output{}}
		}
		var k *snapshot.Keeper
		r, log, _, k = kept(t, model)
		r.create(t)
		keeping(t, k, func() { r.next(t) })
		require.Equal(t, seen, log.wholeReads())
		st, frames := r.state(t)
		require.Equal(t, wire.StatusPaused, st.Status)
		require.Contains(t, frames[len(frames)-2].Writer, frame.ExternalPrefix)
	})
}

// A run whose log is damaged before its snapshot is not readmitted.
func TestReadmit_ReadsTheWholeLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := func(ctx context.Context, _ model.Task, j model.Journal) model.Result {
			_ = say(ctx, j, snapshot.Every+50)
			return model.Result{Interrupted: context.Canceled}
		}
		r, _, s, k := kept(t, model)
		r.create(t)
		keeping(t, k, func() { r.next(t); synctest.Wait() })
		require.Equal(t, 1, entries(t, s))
		r.log.Damage(5)
		_, err := r.exec.Readmit(t.Context(), theRun)
		require.ErrorIs(t, err, frame.ErrDamaged)
		r.log.Damage(5)
		back, err := r.exec.Readmit(t.Context(), theRun)
		require.NoError(t, err)
		require.True(t, back)
	})
}
