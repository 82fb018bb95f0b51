package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// forkEdited appends the start frame of a fork with edited nodes.
func (r *rig) forkEdited(t *testing.T, of, fork subject.Run, mode wire.ForkMode, from int, edited *wire.Edited) {
	t.Helper()
	last, err := r.log.Last(t.Context(), of)
	require.NoError(t, err)
	rec, err := json.Marshal(&wire.RunRecord{
		RunID: fork.RunID, WorkflowID: "wf", Owner: wire.Owner{Tenant: "acme"}, EngineVersion: 1, CreatedAt: wire.FormatTime(time.Now()),
		Fork: &wire.Fork{SourceRunID: of.RunID, Mode: mode, FromSeq: from, Head: last.Last + 1, Edited: edited},
	})
	require.NoError(t, err)
	_, err = r.log.Append(t.Context(), frame.NewStart(fork, rec), 0)
	require.NoError(t, err)
}

// A second dispatcher makes the edits of the record, wherever the first one died, and so does a replay.
func TestEdit_OutlivesTheDispatcher(t *testing.T) {
	t.Parallel()
	edited := &wire.Edited{Nodes: []wire.NodeEdit{{NodeID: "a", Outputs: map[string]json.RawMessage{"output": json.RawMessage(`"edited"`)}}}}
	theReplay := subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "run_3"}
	for appends := range 4 {
		r, forbidden := source(t, 3)
		*forbidden = true
		r.forkEdited(t, theRun, theFork, wire.ForkBranch, 1, edited)
		dying := r.executorOn(&breaking{r.log, appends}, r.defs, talker(0, forbidden))
		d, err := r.log.Next(t.Context())
		require.NoError(t, err)
		r.log.SetRetryDelay(0)
		dying.Execute(t.Context(), d)
		if st, _, _ := r.eventsOf(t, theFork); !st.Status.Terminal() {
			r.next(t)
		}
		st, branch, _ := r.eventsOf(t, theFork)
		require.Equal(t, wire.StatusCompleted, st.Status)
		require.JSONEq(t, `"edited"`, string(st.Variables["input"]))
		require.Len(t, typesAt(branch, "a", wire.EventNodeCompleted), 1)
		require.Empty(t, typesAt(branch, "a", wire.EventOutputChunk), "nothing of the model's answer is copied")

		r.forkEdited(t, theFork, theReplay, wire.ForkReplay, 0, edited)
		r.next(t)
		_, again, _ := r.eventsOf(t, theReplay)
		require.Equal(t, render(branch), render(again))
	}
}

func typesAt(events []wire.Event, node string, typ wire.EventType) (out []wire.Event) {
	for _, e := range events {
		if e.NodeID == node && e.Type == typ {
			out = append(out, e)
		}
	}
	return out
}

func TestNodeStart_IsWhatTheLastAttemptWasGiven(t *testing.T) {
	t.Parallel()
	r, _ := source(t, 3)
	at, err := r.exec.NodeStart(t.Context(), "acme", "run_1", "b")
	require.NoError(t, err)
	require.Equal(t, "core.identity", at.TypeID)
	require.JSONEq(t, `"done"`, string(at.Inputs["input"]))
	_, events, _ := r.eventsOf(t, theRun)
	require.Equal(t, wire.EventNodeStarted, events[at.First].Type)
	require.Equal(t, "b", events[at.First].NodeID)
	for _, missing := range [][2]string{{"run_1", "ghost"}, {"run_9", "b"}} {
		_, err := r.exec.NodeStart(t.Context(), "acme", missing[0], missing[1])
		require.Contains(t, []fault.Code{fault.NotFound, fault.RunNotFound}, fault.CodeOf(err))
	}
	_, err = r.exec.NodeStart(t.Context(), "other", "run_1", "b")
	require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
}
