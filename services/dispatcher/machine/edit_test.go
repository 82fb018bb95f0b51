package machine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// edited is a branch from the start with edited nodes.
func edited(edits ...wire.NodeEdit) func(*wire.RunRecord) {
	return func(r *wire.RunRecord) {
		r.RunID = "run_2"
		r.Fork = &wire.Fork{SourceRunID: "run_1", Mode: wire.ForkBranch, Edited: &wire.Edited{Nodes: edits}}
	}
}

func outputs(id, object string) wire.NodeEdit {
	e := wire.NodeEdit{NodeID: id}
	if err := json.Unmarshal([]byte(object), &e.Outputs); err != nil {
		panic(err)
	}
	return e
}

var askThenEcho = graph{
	nodes:  []string{"ask:core.ai.callPrompt", "echo:core.identity"},
	edges:  []string{"ask>echo"},
	inputs: map[string]string{"echo": `{"said":{"type":"connection","nodeId":"ask","outputKey":"output"}}`},
}

func TestEdit_OutputsReplaceTheExecution(t *testing.T) {
	t.Parallel()
	events, m, effects := trace(t, askThenEcho, edited(outputs("ask", `{"output":"edited"}`)))
	require.Empty(t, effects, "no model is called")
	require.Equal(t, []string{
		"run.started", "node.started@ask", "node.completed@ask",
		"node.started@echo", "variable.changed@echo", "variable.changed@echo", "node.completed@echo", "run.completed",
	}, events)
	require.JSONEq(t, `"edited"`, string(m.State().Variables["said"]))
	require.Equal(t, wire.Trusted, m.State().Nodes["echo"].Trust)
}

// A pure node is executed again in a replay, so its edit must be part of the replay's record.
func TestEdit_AReplayHasTheEditedOutputs(t *testing.T) {
	t.Parallel()
	plan := askThenEcho.plan(t)
	for _, own := range []wire.NodeEdit{outputs("echo", `{"said":"edited"}`), outputs("echo", `{}`)} {
		rec := record(edited(outputs("ask", `{"output":"x"}`), own))
		m := machine.New(plan, limits, runstate.New(rec))
		require.Empty(t, m.Advance(at))
		log, _ := m.Pending()
		require.Equal(t, wire.StatusCompleted, m.State().Status)
		for from := range log {
			for _, lost := range []bool{false, true} {
				require.Equal(t, facts(log), facts(replayOf(t, plan, rec, log, from, lost)), "from %d", from)
			}
		}
	}
}

// replayOf returns the log of a replay. With lost, each executor is lost after one event.
func replayOf(t *testing.T, plan machine.Plan, source *wire.RunRecord, events []wire.Event, from int, lost bool) []wire.Event {
	t.Helper()
	rec, now := *source, at.Add(100*time.Hour)
	rec.RunID = "run_3"
	rec.Fork = &wire.Fork{SourceRunID: source.RunID, Mode: wire.ForkReplay, FromSeq: from, Head: len(events), Edited: source.Fork.Edited}
	var log []wire.Event
	for _, e := range events[:from] {
		log = append(log, machine.CopyEvent(&rec, e, now))
	}
	for {
		m := machine.NewReplay(plan, limits, runstate.Fold(&rec, log), machine.NewHistory(*rec.Fork, events, log))
		require.Empty(t, m.Advance(now), "a replay has no effects")
		next, _ := m.Pending()
		if lost && len(next) > 1 {
			log = append(log, next[0])
			continue
		}
		return append(log, next...)
	}
}

// A crash leaves any prefix of the frames; the next dispatcher ends the run as the first would have.
func TestEdit_ContinuesAfterACrash(t *testing.T) {
	t.Parallel()
	rec := record(edited(outputs("ask", `{"output":"edited"}`)))
	plan := askThenEcho.plan(t)
	m := machine.New(plan, limits, runstate.New(rec))
	m.Advance(at)
	want, _ := m.Pending()
	again := machine.New(plan, limits, runstate.New(rec))
	again.Advance(at)
	got, _ := again.Pending()
	require.Equal(t, facts(want), facts(got))
	after := machine.New(plan, limits, runstate.Fold(rec, want))
	require.Empty(t, after.Advance(at), "nothing is executed after the end")
}

func TestEdit_KeepsTheTrustOfWhatItReplaces(t *testing.T) {
	t.Parallel()
	edit := outputs("ask", `{"output":"edited"}`)
	edit.Untrusted = true
	_, m, _ := trace(t, askThenEcho, edited(edit))
	require.Equal(t, wire.Untrusted, m.State().Nodes["ask"].Trust)
	require.True(t, m.State().Tainted["said"])

	g := graph{nodes: []string{"ask:core.ai.callPrompt"}, inputs: map[string]string{"ask": `{"mail":{"type":"static","value":"m"},"tone":{"type":"static","value":"t"}}`}}
	_, _, effects := trace(t, g, edited(wire.NodeEdit{NodeID: "ask", UntrustedInputs: []string{"mail"}}))
	require.Len(t, effects, 1)
	require.Equal(t, map[string]bool{"mail": true}, effects[0].Input.UntrustedPorts)
	require.Equal(t, wire.Untrusted, effects[0].Trust)
}

func TestEdit_CountsAgainstTheLimitOfExecutions(t *testing.T) {
	t.Parallel()
	g := askThenEcho
	events, _, _ := trace(t, g, edited(outputs("ask", `{}`)), func(r *wire.RunRecord) { r.MaxExecutions = 1 })
	require.Contains(t, events, "cap.breached@echo")
	events, _, _ = trace(t, graph{nodes: []string{"a:core.noop", "b:core.noop"}, edges: []string{"a>b"}}, edited(outputs("b", `{}`)), func(r *wire.RunRecord) { r.MaxExecutions = 1 })
	require.NotContains(t, events, "node.started@b")
}
