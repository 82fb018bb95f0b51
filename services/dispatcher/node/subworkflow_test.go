package node_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/node"
)

func TestParseSubWorkflow_DefaultsWaitFailAndCascade(t *testing.T) {
	t.Parallel()
	got, bad := node.ParseSubWorkflow(json.RawMessage(`{"workflowId":"child"}`))
	require.Nil(t, bad)
	require.Equal(t, node.SubWorkflow{WorkflowID: "child", Wait: true, Cascade: true}, got)
}

func TestParseSubWorkflow_TakesWhatIsSet(t *testing.T) {
	t.Parallel()
	got, bad := node.ParseSubWorkflow(json.RawMessage(`{"workflowId":"child","waitForCompletion":false,"onChildFailure":"absorb",
		"inputMapping":{"to":"from"},"outputMapping":{"mine":"its"},"propagateCancellation":false,"note":"anything"}`))
	require.Nil(t, bad)
	require.Equal(t, node.SubWorkflow{
		WorkflowID: "child", Absorb: true, Inputs: map[string]string{"to": "from"}, Outputs: map[string]string{"mine": "its"},
	}, got)
}

func TestParseSubWorkflow_NamesThePlaceOfWhatIsWrong(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{}`:               "/config/workflowId: want the id",
		`{"workflowId":7}`: "/config/workflowId: want a string",
		`{"workflowId":"c","waitForCompletion":"yes"}`:       "/config/waitForCompletion: want true or false",
		`{"workflowId":"c","onChildFailure":"ignore"}`:       "/config/onChildFailure: want fail-parent or absorb",
		`{"workflowId":"c","inputMapping":["a"]}`:            "/config/inputMapping: want an object",
		`{"workflowId":"c","inputMapping":{"a":1}}`:          "/config/inputMapping",
		`{"workflowId":"c","outputMapping":{"a":""}}`:        "/config/outputMapping: want the name",
		`{"workflowId":"c","propagateCancellation":"never"}`: "/config/propagateCancellation: want true or false",
		`[]`: "/config: want an object",
	} {
		_, bad := node.ParseSubWorkflow(json.RawMessage(config))
		require.NotNil(t, bad, config)
		require.Equal(t, "validation_error", bad.Code)
		require.Contains(t, bad.Message, want, config)
	}
}
