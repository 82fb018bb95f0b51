package sim_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/test/sim"
)

// appendedTypes matches the event types of a frame in the detail of a call.
var appendedTypes = regexp.MustCompile(`\[[^\]]*\]`)

// A completed model call appends two frames: its usage with the events its envelope causes, and the
// node's end.
func TestAppends_OfACallAreTwo(t *testing.T) {
	t.Parallel()
	const quiet = `{"provider":"mock","model":"mock-mini","prompt":"sort this mail","envelopeType":"vendor.waybill.ticket.triage","expectsStreaming":false}`
	v := simulate(t, sim.Stage(sim.Story{
		Name: "two models, one after the other", Workflow: "chain",
		Workflows: []json.RawMessage{flowOf("chain", nodeOf("a", "core.ai.callPrompt", quiet)+","+nodeOf("b", "core.ai.callPrompt", quiet), edge("a", "b"))},
		Says:      map[string][]mock.Entry{"a": {{Content: ticket}}, "b": {{Content: "```json\n" + ticket + "\n```"}}},
	}), sim.Options{})
	require.NoError(t, v.Err)
	var frames []string
	for _, c := range v.Calls {
		if c.At == "append" {
			frames = append(frames, appendedTypes.FindString(c.Detail))
		}
	}
	require.Equal(t, []string{
		"[]", "[run.started node.started]",
		"[provider.usage artifact.created]", "[node.completed node.started]",
		"[provider.usage envelope.recovery.applied artifact.created]", "[node.completed run.completed]",
	}, frames)
}
