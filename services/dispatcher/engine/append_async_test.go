package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// syncTime is the duration of an fsync.
const syncTime = 10 * time.Millisecond

// disked is a log that accepts frames immediately and writes them to its disk later.
type disked struct {
	*memory.Log

	mu sync.Mutex // guards the fields below
	// kept is the last position that survives a power failure.
	kept   uint64
	broken bool
	// failures is how often a sync fails from now on.
	failures int
}

// breakFor makes the next syncs fail.
func (d *disked) breakFor(syncs int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures = syncs
}

func (d *disked) Stage(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	return d.Log.Append(ctx, f, after)
}

var errDisk = errors.New("the disk is broken")

func (d *disked) Keep(_ context.Context, pos uint64) error {
	time.Sleep(syncTime) //nolint:forbidigo // in a bubble
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failures > 0 {
		d.failures--
		return errors.Join(runlog.ErrUnavailable, errDisk)
	}
	if d.broken {
		return errors.Join(runlog.ErrUnavailable, errDisk)
	}
	d.kept = max(d.kept, pos)
	return nil
}

func (d *disked) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	pos, err := d.Stage(ctx, f, after)
	if err != nil {
		return 0, err
	}
	return pos, d.Keep(ctx, pos)
}

// onDisk returns the run as it is after a power failure.
func (d *disked) onDisk(t *testing.T) []*frame.Frame {
	t.Helper()
	frames, err := d.Run(t.Context(), theRun)
	require.NoError(t, err)
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, f := range frames {
		if f.Pos > d.kept {
			return frames[:i]
		}
	}
	return frames
}

// stateOnDisk returns the status of a node on the disk.
func (d *disked) stateOnDisk(t *testing.T, id string) runstate.NodeStatus {
	t.Helper()
	st, _, err := machine.Load(d.onDisk(t))
	require.NoError(t, err)
	if n := st.Nodes[id]; n != nil {
		return n.Status
	}
	return runstate.NodeNever
}

// asked records when each node's effect started, and the node's status on the disk then.
type asked struct {
	mu   sync.Mutex
	when map[string]time.Time
	disk map[string]runstate.NodeStatus
}

// diskRig has a run of consecutive effects.
func diskRig(t *testing.T, nodes string, edges ...string) (rigged *rig, disk *disked, calls *asked) {
	t.Helper()
	r := newRig(t, nil, nil)
	r.moreTypes = node.Catalog{node.TypeSideEffect: {
		ID: node.TypeSideEffect, Class: node.Effect, Idempotent: func(json.RawMessage) bool { return true },
	}}
	d := &disked{Log: r.log}
	a := &asked{when: map[string]time.Time{}, disk: map[string]runstate.NodeStatus{}}
	r.exec = r.executorOn(d, define(t, nodes, edges...), models(func(_ context.Context, task model.Task, _ model.Journal) model.Result {
		id := task.Input.NodeID
		a.mu.Lock()
		a.when[id], a.disk[id] = time.Now(), d.stateOnDisk(t, id)
		a.mu.Unlock()
		return model.Result{Output: node.Output{Ports: map[string]json.RawMessage{"output": json.RawMessage(`1`)}}}
	}))
	r.create(t)
	d.kept = 1 // created
	return r, d, a
}

const edgeAB = `{"id":"e","sourceNodeId":"a","targetNodeId":"b"}`

// A model call starts once no other dispatcher can make it, before the fsync.
func TestExecute_AModelCallStartsBeforeTheSync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, d, a := diskRig(t, nodeJSON("a", node.TypeCallPrompt, "{}")+","+nodeJSON("b", node.TypeStructuredOutput, "{}"), edgeAB)
		began := time.Now()
		r.next(t)
		require.Equal(t, began, a.when["a"])
		require.Equal(t, began, a.when["b"])
		require.Equal(t, began.Add(syncTime), time.Now(), "the end is fsynced before the delivery ends")
		require.Len(t, d.onDisk(t), 4, "the record, the two call starts, the end")
		st, _ := r.state(t)
		require.Equal(t, wire.StatusCompleted, st.Status)
	})
}

func TestExecute_AnyOtherEffectWaitsForTheSync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _, a := diskRig(t, nodeJSON("a", node.TypeCallPrompt, "{}")+","+nodeJSON("b", node.TypeSideEffect, "{}"), edgeAB)
		r.next(t)
		require.Equal(t, runstate.NodeNever, a.disk["a"])
		require.Equal(t, runstate.NodeRunning, a.disk["b"])
	})
}

// The wake of a sleeping run depends on its log, so the log is fsynced before the run leaves the
// queue.
func TestExecute_SyncsTheLogBeforeARunSleeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, d, _ := diskRig(t, nodeJSON("a", node.TypeCallPrompt, "{}")+","+nodeJSON("b", "core.delay", `{"ms":60000}`), edgeAB)
		r.next(t)
		require.Len(t, r.sleep, 1)
		_, frames := r.state(t)
		require.Len(t, d.onDisk(t), len(frames))
	})
}

// If the fsync fails, the run is delivered again instead of waiting for a wake.
func TestExecute_ARunWhoseSyncFailsIsRedelivered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, d, _ := diskRig(t, nodeJSON("a", node.TypeCallPrompt, "{}")+","+nodeJSON("b", "core.delay", `{"ms":60000}`), edgeAB)
		d.broken = true
		r.next(t)
		require.Empty(t, r.sleep)
		d.broken = false
		r.next(t) // delivered again
		require.Len(t, r.sleep, 1)
	})
}

// The result of a tool is fsynced before the next model call, so that the tool is not called again.
func TestExecute_AToolResultIsSyncedBeforeTheNextModelCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := nodeJSON("a", node.TypeSideEffect, "{}") + "," + nodeJSON("b", node.TypeCallPrompt, "{}")
		r, _, a := diskRig(t, nodes, edgeAB)
		r.next(t)
		require.Equal(t, runstate.NodeRunning, a.disk["b"])
	})
}

// The power fails during a model call whose start is not on the disk. The next dispatcher continues
// from the disk and calls the model again, and the run completes.
func TestExecute_APowerCutDuringAModelCallRepeatsTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := nodeJSON("a", node.TypeCallPrompt, "{}") + "," + nodeJSON("b", node.TypeCallPrompt, "{}")
		r, d, a := diskRig(t, nodes, edgeAB)
		ctx, cut := context.WithCancel(t.Context())
		var left []*frame.Frame
		exec := r.executorOn(d, define(t, nodes, edgeAB), models(func(ctx context.Context, task model.Task, _ model.Journal) model.Result {
			if task.Input.NodeID == "b" {
				left = d.onDisk(t)
				cut()
				<-ctx.Done()
				return model.Result{Interrupted: ctx.Err()}
			}
			return model.Result{}
		}))
		delivery, err := r.log.Next(t.Context())
		require.NoError(t, err)
		exec.Execute(ctx, delivery)
		require.Len(t, left, 1, "the record")

		again := memory.New()
		c := *left[0]
		_, err = again.Append(t.Context(), &c, 0)
		require.NoError(t, err)
		r.log, d.Log = again, again
		r.next(t)
		st, _ := r.state(t)
		require.Equal(t, wire.StatusCompleted, st.Status)
		require.Contains(t, a.when, "a")
		require.Contains(t, a.when, "b")
	})
}

// A session that continues after frames of another session waits for their fsync, too.
func TestExecute_AnEffectFoundInTheLogWaitsForTheSync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, d, a := diskRig(t, nodeJSON("a", node.TypeCallPrompt, "{}")+","+nodeJSON("b", node.TypeSideEffect, "{}"), edgeAB)
		d.broken = true
		r.next(t)
		_, frames := r.state(t)
		require.Greater(t, len(frames), len(d.onDisk(t)))
		d.broken = false
		r.next(t)
		require.Equal(t, runstate.NodeRunning, a.disk["b"])
		st, _ := r.state(t)
		require.Equal(t, wire.StatusCompleted, st.Status)
	})
}
