package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

var theFork = subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "run_2"}

// fork appends the start frame of a fork of the rig's run.
func (r *rig) fork(t testing.TB, mode wire.ForkMode, from int) {
	t.Helper()
	last, err := r.log.Last(t.Context(), theRun)
	require.NoError(t, err)
	rec, err := json.Marshal(&wire.RunRecord{
		RunID:         "run_2",
		WorkflowID:    "wf",
		Owner:         wire.Owner{Tenant: "acme"},
		EngineVersion: 1,
		CreatedAt:     wire.FormatTime(time.Now()),
		Fork:          &wire.Fork{SourceRunID: "run_1", Mode: mode, FromSeq: from, Head: last.Last + 1},
	})
	require.NoError(t, err)
	_, err = r.log.Append(t.Context(), frame.NewStart(theFork, rec), 0)
	require.NoError(t, err)
}

func (r *rig) eventsOf(t testing.TB, of subject.Run) (st *runstate.State, events []wire.Event, frames []*frame.Frame) {
	t.Helper()
	frames, err := r.log.Run(t.Context(), of)
	require.NoError(t, err)
	require.NoError(t, frame.VerifyChain(frames))
	st, _, err = machine.Load(frames)
	require.NoError(t, err)
	for _, f := range frames {
		more, err := f.Events()
		require.NoError(t, err)
		events = append(events, more...)
	}
	return st, events, frames
}

func render(events []wire.Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, fmt.Sprintf("%s@%s %s %s", e.Type, e.NodeID, e.Payload, e.ContentTrust))
	}
	return out
}

// talker records many pieces, many per frame. It panics if forbidden is set.
func talker(pieces int, forbidden *bool) models {
	return func(ctx context.Context, task model.Task, j model.Journal) model.Result {
		if *forbidden {
			panic("a replay called a model")
		}
		for i := 0; i < pieces; {
			var batch []wire.Draft
			for ; i < pieces && len(batch) < 100; i++ {
				p := fmt.Sprintf(`{"nodeId":"a","runId":"run_1","chunk":"%d","isLast":false}`, i)
				batch = append(batch, wire.Draft{Type: wire.EventOutputChunk, NodeID: "a", Payload: json.RawMessage(p)})
			}
			if err := j.Record(ctx, batch...); err != nil {
				return model.Result{Interrupted: err}
			}
		}
		return model.Result{Output: node.Output{Ports: map[string]json.RawMessage{"output": json.RawMessage(`"done"`)}}}
	}
}

func source(t testing.TB, pieces int) (ended *rig, callsForbidden *bool) {
	t.Helper()
	forbidden := new(bool)
	r := newRig(t.(*testing.T), define(t.(*testing.T), nodeJSON("a", "core.ai.callPrompt", "{}")+","+nodeJSON("b", "core.identity", "{}"),
		`{"id":"e","sourceNodeId":"a","targetNodeId":"b"}`), talker(pieces, forbidden))
	r.create(t.(*testing.T))
	r.next(t.(*testing.T))
	return r, forbidden
}

// OpenWOP host contract §7.2: no effect of a replay is performed.
func TestFork_AReplayAsksNoQuestion(t *testing.T) {
	t.Parallel()
	for _, from := range []int{0, 1, 2, 700, 1000, 1006} {
		r, forbidden := source(t, 1000)
		*forbidden = true
		r.fork(t, wire.ForkReplay, from)
		r.next(t)
		_, want, _ := r.eventsOf(t, theRun)
		st, got, frames := r.eventsOf(t, theFork)
		require.Equal(t, wire.StatusCompleted, st.Status)
		require.Equal(t, render(want), render(got))
		require.Less(t, len(frames), 8)
		for i, e := range got {
			require.Equal(t, wire.EventID("run_2", i), e.EventID)
			require.Equal(t, "run_2", e.RunID)
		}
	}
}

func TestFork_ABranchExecutes(t *testing.T) {
	t.Parallel()
	r, _ := source(t, 10)
	r.fork(t, wire.ForkBranch, 2)
	r.next(t)
	_, want, _ := r.eventsOf(t, theRun)
	st, got, _ := r.eventsOf(t, theFork)
	require.Equal(t, wire.StatusCompleted, st.Status)
	require.Equal(t, render(want), render(got))
}

// breaking is a log that accepts a number of appends and then fails, as if the process had died.
type breaking struct {
	runlog.Log
	left int
}

var errDied = errors.New("died")

func (b *breaking) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	if b.left == 0 {
		return 0, errDied
	}
	b.left--
	return b.Log.Append(ctx, f, after)
}

// A dispatcher that dies while it copies leaves a prefix, and the next one continues there.
func TestFork_CopyingGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	for appends := range 5 {
		r, forbidden := source(t, 5000)
		*forbidden = true
		r.fork(t, wire.ForkReplay, 4500)
		defs := define(t, nodeJSON("a", "core.ai.callPrompt", "{}")+","+nodeJSON("b", "core.identity", "{}"), `{"id":"e","sourceNodeId":"a","targetNodeId":"b"}`)
		dying := r.executorOn(&breaking{r.log, appends}, defs, talker(0, forbidden))
		d, err := r.log.Next(t.Context())
		require.NoError(t, err)
		r.log.SetRetryDelay(0)
		dying.Execute(t.Context(), d)
		_, want, _ := r.eventsOf(t, theRun)
		_, part, _ := r.eventsOf(t, theFork)
		require.Equal(t, render(want[:len(part)]), render(part), "the copied events are a prefix")
		if appends < 3 {
			require.Len(t, part, appends*2000)
		}
		if len(part) < len(want) {
			r.next(t)
		}
		st, got, _ := r.eventsOf(t, theFork)
		require.Equal(t, wire.StatusCompleted, st.Status)
		require.Equal(t, render(want), render(got))
	}
}

// A fork can be cancelled before its first session: its history is copied first.
func TestFork_CanBeCancelledBeforeItsHistoryIsThere(t *testing.T) {
	t.Parallel()
	r, _ := source(t, 10)
	r.fork(t, wire.ForkBranch, 4)
	st, _, err := r.exec.Cancel(t.Context(), "acme", "run_2", "", "key")
	require.NoError(t, err)
	require.Equal(t, wire.StatusCancelled, st.Status)
	_, want, _ := r.eventsOf(t, theRun)
	_, got, _ := r.eventsOf(t, theFork)
	require.Equal(t, render(want[:4]), render(got[:4]))
	require.Equal(t, wire.EventNodeCancelled, got[4].Type)
	require.Equal(t, wire.EventRunCancelled, got[5].Type)
}

// A fork of a waiting run has the same open question, and its answer continues the fork.
func TestFork_OfAWaitingRunWaits(t *testing.T) {
	t.Parallel()
	for mode, ends := range map[wire.ForkMode]wire.Status{
		wire.ForkReplay: wire.StatusFailed,
		wire.ForkBranch: wire.StatusCompleted,
	} {
		forbidden := mode == wire.ForkReplay
		r := newRig(t, define(t, nodeJSON("gate", "core.approvalGate", approvalJSON)+","+nodeJSON("a", "core.ai.callPrompt", "{}"),
			`{"id":"e","sourceNodeId":"gate","targetNodeId":"a"}`), talker(1, &forbidden))
		r.create(t)
		r.next(t)
		r.fork(t, mode, 3)
		r.next(t)
		st, got, _ := r.eventsOf(t, theFork)
		require.Equal(t, wire.StatusWaitingApproval, st.Status)
		require.Len(t, got, 5)
		_, err := r.exec.Resolve(t.Context(), "acme", "run_2", engine.Answer{NodeID: "gate", Answer: interrupt.Answer{
			Value: json.RawMessage(`{"action":"accept"}`), By: interrupt.Responder{Principal: "key"},
		}})
		require.NoError(t, err)
		r.next(t)
		st, got, _ = r.eventsOf(t, theFork)
		require.Equal(t, ends, st.Status, "%v", render(got))
		if mode == wire.ForkReplay {
			require.Equal(t, "replay_source_missing", st.Error.Code)
		}
	}
}

// A replay of a run with a question uses the recorded answer.
func TestFork_AReplayHasTheAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, nodeJSON("gate", "core.approvalGate", approvalJSON)+","+nodeJSON("b", "core.noop", "{}"),
		`{"id":"e","sourceNodeId":"gate","targetNodeId":"b"}`), nil)
	r.create(t)
	r.next(t)
	_, err := r.exec.Resolve(t.Context(), "acme", "run_1", accept("key"))
	require.NoError(t, err)
	_, want, _ := r.eventsOf(t, theRun)
	r.fork(t, wire.ForkReplay, 0)
	r.next(t)
	st, got, _ := r.eventsOf(t, theFork)
	require.Equal(t, wire.StatusCompleted, st.Status)
	require.Equal(t, render(want), render(got))
}

// The source was erased before the fork had its history. The fork does not count as erased itself: it
// is delivered again, until it is quarantined.
func TestFork_OfAnErasedSourceIsNotForgotten(t *testing.T) {
	t.Parallel()
	r, forbidden := source(t, 10)
	*forbidden = true
	r.fork(t, wire.ForkReplay, 4)
	marked, err := r.log.Mark(t.Context(), theRun, frame.Expired)
	require.NoError(t, err)
	require.True(t, marked)
	r.log.SetRetryDelay(0)
	for try := range 3 {
		d, err := r.log.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, "run_2", d.Frame().Run.RunID)
		require.Equal(t, try+1, d.Tries())
		r.exec.Execute(t.Context(), d)
	}
	st, events, _ := r.eventsOf(t, theFork)
	require.Equal(t, wire.StatusPending, st.Status)
	require.Empty(t, events, "nothing is executed")
}
