package machine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
)

func TestRecovery_RepeatsACallAsAFreshAttempt(t *testing.T) {
	t.Parallel()
	g := graph{nodes: []string{"a:core.ai.callPrompt"}}
	_, m, _ := trace(t, g)
	before, _ := m.Pending()

	hidden := machine.New(g.plan(t), limits, runstate.Fold(record(), before))
	require.Equal(t, 1, hidden.Advance(at)[0].Attempt)
	require.Equal(t, "node.retried@a node.started@a", strings.Join(names(hidden), " "), "the repeated call is recorded")

	chunk := wire.Draft{
		Type:    wire.EventOutputChunk,
		NodeID:  "a",
		Payload: json.RawMessage(`{"nodeId":"a","chunk":"x"}`),
	}
	shown := machine.New(g.plan(t), limits, runstate.Fold(record(), append(before, chunk.Place("run_1", len(before), at))))
	effects := shown.Advance(at)
	require.Equal(t, "node.retried@a node.started@a", strings.Join(names(shown), " "))
	require.Len(t, effects, 1)
	require.Equal(t, 1, effects[0].Attempt)

	artifact := wire.Draft{
		Type: wire.EventArtifactCreated, NodeID: "a", CausationID: "c",
		Payload: json.RawMessage(`{"artifactId":"env","artifactType":"k","payload":{"x":1}}`),
	}
	answered := machine.New(g.plan(t), limits, runstate.Fold(record(),
		append(before, chunk.Place("run_1", len(before), at), artifact.Place("run_1", len(before)+1, at))))
	require.Equal(t, 0, answered.Advance(at)[0].Attempt, "an answer in the log keeps its attempt and its ids")
}
