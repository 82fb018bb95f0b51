package execute_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/completion"
	"waybill.dev/waybill/services/dispatcher/node"
)

// slowDisk takes its time for each append.
type slowDisk struct {
	*memory.Log
	before func()
}

func (s slowDisk) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	time.Sleep(10 * time.Millisecond) //nolint:forbidigo // in a bubble
	s.before()
	return s.Log.Append(ctx, f, after)
}

func wide(t *testing.T) oneDefinition {
	t.Helper()
	var nodes []string
	for i := range 4 {
		nodes = append(nodes, nodeJSON(fmt.Sprint("n", i), "core.ai.callPrompt", "{}"))
	}
	return define(t, strings.Join(nodes, ","))
}

func chunk(nodeID string) wire.Draft {
	return wire.Draft{Type: wire.EventOutputChunk, NodeID: nodeID, Payload: json.RawMessage(`{"nodeId":"` + nodeID + `","chunk":"words of it"}`)}
}

// What effects tell while the disk is busy goes into one frame, and so do their ends: a
// wide run does not wait for the disk once for each.
func TestExecute_AppendsTogetherWhatIsReadyTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, nil)
		r.exec = r.executorOn(slowDisk{r.log, func() {}}, wide(t), models(func(ctx context.Context, task completion.Task, j completion.Journal) completion.Result {
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // in a bubble
			if err := j.Record(ctx, chunk(task.Input.NodeID)); err != nil {
				return completion.Result{Interrupted: err}
			}
			return completion.Result{Output: node.Output{Ports: map[string]json.RawMessage{"output": json.RawMessage(`1`)}}}
		}))
		r.create(t)
		r.next(t)
		st, frames := r.state(t)
		require.Equal(t, wire.StatusCompleted, st.Status)
		require.Equal(t, 1+4+4+4+1, st.Next, "run.started, four nodes that start, tell and end, run.completed")
		// The record, the start; what one tells, what three tell; the ends, as they come.
		require.LessOrEqual(t, len(frames), 6)
	})
}

// An effect that is told that its words are recorded finds them in the log, also where
// somebody else had written in between.
func TestExecute_TellsTogetherAfterSomebodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, nil)
		appends, other := 0, r.executor(wide(t), nil)
		between := func() {
			if appends++; appends != 3 { // the second of what is told
				return
			}
			_, err := other.Pause(t.Context(), "acme", "run_1", wire.DrainCurrent, "", "key")
			require.NoError(t, err)
		}
		r.exec = r.executorOn(slowDisk{r.log, between}, wide(t), models(func(ctx context.Context, task completion.Task, j completion.Journal) completion.Result {
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // in a bubble
			if err := j.Record(ctx, chunk(task.Input.NodeID)); err != nil {
				return completion.Result{Interrupted: err}
			}
			_, frames := r.state(t)
			told := 0
			for _, f := range frames[1:] {
				events, err := f.Events()
				require.NoError(t, err)
				for _, e := range events {
					if e.Type == wire.EventOutputChunk && e.NodeID == task.Input.NodeID {
						told++
					}
				}
			}
			require.Equal(t, 1, told, task.Input.NodeID)
			return completion.Result{}
		}))
		r.create(t)
		r.next(t)
		st, _ := r.state(t)
		require.Equal(t, wire.StatusCompleted, st.Status, "nothing was left that a pause would have kept from starting")
		require.NotNil(t, st.Pausing)
		require.Equal(t, 1+4+4+4+1, st.Next)
	})
}
