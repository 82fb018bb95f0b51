package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// slowDisk delays each append.
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
	return wire.Draft{
		Type:    wire.EventOutputChunk,
		NodeID:  nodeID,
		Payload: json.RawMessage(`{"nodeId":"` + nodeID + `","chunk":"words of it"}`),
	}
}

// The events and results of effects that arrive during an append share the next frame: a wide run
// does not fsync once per effect.
func TestExecute_AppendsConcurrentResultsInOneFrame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, nil)
		r.exec = r.executorOn(slowDisk{r.log, func() {}}, wide(t), models(func(ctx context.Context, task model.Task, j model.Journal) model.Result {
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // in a bubble
			if err := j.Record(ctx, chunk(task.Input.NodeID)); err != nil {
				return model.Result{Interrupted: err}
			}
			return model.Result{Output: node.Output{Ports: map[string]json.RawMessage{"output": json.RawMessage(`1`)}}}
		}))
		r.create(t)
		r.next(t)
		st, frames := r.state(t)
		require.Equal(t, wire.StatusCompleted, st.Status)
		require.Equal(t, 1+4+4+4+1, st.Next, "run.started, start, chunk and end of four nodes, run.completed")
		// The record, the start, one effect's events, those of the other three, and the ends.
		require.LessOrEqual(t, len(frames), 6)
	})
}

// An effect whose drafts were recorded finds them in the log, also after frames of another writer.
func TestExecute_FindsItsDraftsBehindFramesOfAnotherWriter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, nil)
		appends, other := 0, r.executor(wide(t), nil)
		between := func() {
			if appends++; appends != 3 { // only before the second effect's drafts
				return
			}
			_, err := other.Pause(t.Context(), "acme", "run_1", wire.DrainCurrent, "", "key")
			require.NoError(t, err)
		}
		r.exec = r.executorOn(slowDisk{r.log, between}, wide(t), models(func(ctx context.Context, task model.Task, j model.Journal) model.Result {
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // in a bubble
			if err := j.Record(ctx, chunk(task.Input.NodeID)); err != nil {
				return model.Result{Interrupted: err}
			}
			_, frames := r.state(t)
			recorded := 0
			for _, f := range frames[1:] {
				events, err := f.Events()
				require.NoError(t, err)
				for _, e := range events {
					if e.Type == wire.EventOutputChunk && e.NodeID == task.Input.NodeID {
						recorded++
					}
				}
			}
			require.Equal(t, 1, recorded, task.Input.NodeID)
			return model.Result{}
		}))
		r.create(t)
		r.next(t)
		st, _ := r.state(t)
		require.Equal(t, wire.StatusPaused, st.Status, "no node is left to start")
		require.Equal(t, 1+4+4+4+1, st.Next)
	})
}

// unreachable is a log that fails some appends.
type unreachable struct {
	*memory.Log
	appends, fails int
}

func (u *unreachable) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	if u.appends++; u.appends == u.fails {
		return 0, runlog.ErrUnavailable
	}
	return u.Log.Append(ctx, f, after)
}

// An event whose append failed keeps its sequence: the events that the acceptor records for another
// node get later ones.
func TestExecute_KeepsTheSequenceOfAFailedAppend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, nil)
		log := &unreachable{Log: r.log, fails: 2} // of the appends after the rig's start frame and the first step
		failed := make(chan struct{})
		r.acceptor = acceptor(func(ctx context.Context, run subject.Run, head frame.Head, _ model.AcceptRequest) (engine.Accepted, error) {
			e := wire.Event{
				RunID: run.RunID, EventID: "e", Sequence: head.Next, Type: wire.EventArtifactCreated, NodeID: "n1",
				Payload: json.RawMessage(`{"nodeId":"n1"}`), Timestamp: wire.FormatTime(time.Now()),
			}
			f := frame.New(run, subject.Step, head, []wire.Event{e})
			pos, err := r.log.Append(ctx, f, head.Pos)
			f.Pos = pos
			return engine.Accepted{Head: f.Head(), Events: []wire.Event{e}, Outcome: model.Outcome{Status: "accepted"}}, err
		})
		two := define(t, nodeJSON("n0", "core.ai.callPrompt", "{}")+","+nodeJSON("n1", "core.ai.callPrompt", "{}"))
		r.exec = r.executorOn(log, two, models(func(ctx context.Context, task model.Task, j model.Journal) model.Result {
			if task.Input.NodeID == "n0" {
				err := j.Record(ctx, chunk("n0"))
				close(failed)
				return model.Result{Interrupted: err}
			}
			<-failed
			_, err := j.Accept(ctx, model.AcceptRequest{NodeID: "n1"})
			return model.Result{Interrupted: errors.Join(err, errors.New("this process ends"))}
		}))
		r.create(t)
		r.next(t)
		_, frames := r.state(t) // fails if the sequences have a gap
		var types []wire.EventType
		for _, f := range frames {
			types = append(types, f.Types...)
		}
		require.Contains(t, types, wire.EventArtifactCreated)
		require.Less(t, slices.Index(types, wire.EventOutputChunk), slices.Index(types, wire.EventArtifactCreated))
	})
}

// For an outcome that was recorded before, the acceptor returns the current head of the log. If
// another dispatcher claimed the run since, the session ends.
func TestExecute_EndsIfTheHeadIsOfAnotherDispatcher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, nil)
		var theirs frame.Head
		r.acceptor = acceptor(func(ctx context.Context, run subject.Run, head frame.Head, _ model.AcceptRequest) (engine.Accepted, error) {
			e := wire.Event{
				RunID: run.RunID, EventID: "e", Sequence: head.Next, Type: wire.EventOutputChunk, NodeID: "n0",
				Payload: json.RawMessage(`{"nodeId":"n0"}`), Timestamp: wire.FormatTime(time.Now()),
			}
			f := frame.New(run, subject.Step, head, []wire.Event{e}).By("another session")
			pos, err := r.log.Append(ctx, f, head.Pos)
			f.Pos = pos
			theirs = f.Head()
			return engine.Accepted{Head: theirs, Outcome: model.Outcome{Status: "accepted"}}, err
		})
		one := define(t, nodeJSON("n0", "core.ai.callPrompt", "{}"))
		r.exec = r.executorOn(r.log, one, models(func(ctx context.Context, _ model.Task, j model.Journal) model.Result {
			_, err := j.Accept(ctx, model.AcceptRequest{NodeID: "n0"})
			require.Error(t, err)
			return model.Result{Output: node.Output{}}
		}))
		r.create(t)
		r.next(t)
		_, frames := r.state(t)
		require.Equal(t, theirs, frames[len(frames)-1].Head(), "no frame follows the other dispatcher's")
	})
}
