package host

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/eventlog/project"
)

// throughRun: as an input, a variable and an output of a run, read from a client's snapshot.
func throughRun(t *testing.T, doc []byte, want any) {
	t.Helper()
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	given := map[string]json.RawMessage{"in": doc, "In": []byte(`"another"`), "IN": doc}
	record, err := json.Marshal(wire.RunRecord{
		RunID:        readersRun.RunID,
		WorkflowID:   readersRun.WorkflowID,
		Owner:        wire.Owner{Tenant: readersRun.Tenant},
		CreatedAt:    wire.FormatTime(at),
		Inputs:       given,
		Metadata:     doc,
		Configurable: doc,
	})
	require.NoError(t, err)
	first := frame.NewStart(readersRun, record)
	run, err := project.Begin(first)
	require.NoError(t, err)

	outputs := `{"output":` + string(doc) + `,"Output":"another"}`
	var events []wire.Event
	for i, d := range []wire.Draft{
		{Type: wire.EventRunStarted},
		{Type: wire.EventNodeStarted, NodeID: "n", Payload: []byte(`{"nodeId":"n","typeId":"core.identity","attempt":1}`)},
		{Type: wire.EventVariableChanged, NodeID: "n", Payload: []byte(`{"name":"var","next":` + string(doc) + `}`)},
		{Type: wire.EventNodeCompleted, NodeID: "n", Payload: []byte(`{"nodeId":"n","outputs":` + outputs + `}`)},
		{Type: wire.EventRunCompleted, Payload: []byte(`{"outputs":` + outputs + `}`)},
	} {
		events = append(events, d.Place(readersRun.RunID, i, at))
	}
	last := frame.New(readersRun, subject.End, first.Head(), events)
	last.Pos = 1
	require.NoError(t, run.Apply(last))
	b, err := json.Marshal(run.State.Snapshot())
	require.NoError(t, err)
	snapshot, _ := meaning(t, b).(map[string]any)
	require.Equal(t, map[string]any{"in": want, "In": "another", "IN": want}, snapshot["inputs"])
	require.Equal(t, want, snapshot["variables"].(map[string]any)["var"])
	require.Equal(t, want, snapshot["metadata"])
	require.Equal(t, want, snapshot["configurable"])
	out := map[string]any{"output": want, "Output": "another"}
	require.Equal(t, out, snapshot["outputs"])
	require.Equal(t, out, snapshot["nodeStates"].(map[string]any)["n"].(map[string]any)["outputs"])
}

// throughDefinition: as the config of a node, and as a constant of one of its ports.
func throughDefinition(t *testing.T, doc []byte, want any) {
	t.Helper()
	if depth(doc) > strictjson.Default.MaxDepth-6 { // the definition around it counts
		return
	}
	def, problems := workflow.Parse([]byte(`{"id":"w","name":"w","version":"1.0.0","nodes":[{"id":"n","typeId":"core.noop","name":"n","position":{"x":0,"y":0},` +
		`"config":{"in":` + string(doc) + `,"In":1},"inputs":{"p":{"type":"static","value":` + string(doc) + `}}}],` +
		`"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`))
	if len(problems) > 0 { // a number too long to compare, or more members than a check may cost
		require.Contains(t, []string{schema.KeywordNumber, schema.KeywordBudget}, problems[0].Rule)
		return
	}
	config, _ := meaning(t, def.Nodes[0].Config).(map[string]any)
	require.Equal(t, map[string]any{"in": want, "In": json.Number("1")}, config)
	require.Equal(t, want, meaning(t, def.Nodes[0].Inputs["p"].Value))
}
