package lint_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A run goes on without an output of a node that passes its ports on.
func TestCheck_WarnsAboutMissingOutputsOfPassingNodes(t *testing.T) {
	t.Parallel()
	for _, typeID := range []string{"core.identity", "core.parallel", "core.end"} {
		r := host().Check(fmt.Appendf(nil, `{"id":"w","name":"w","version":"1","nodes":[{"id":"a","typeId":%q},{"id":"b","typeId":"core.noop"}],
			"edges":[{"id":"e","sourceNodeId":"a","targetNodeId":"b","sourceOutput":"mail"}]}`, typeID))
		require.Empty(t, r.Problems, typeID)
		require.Contains(t, paths(r.Warnings), "/edges/0/sourceOutput port", typeID)
	}
}

// Without a host, a template may exist there. A host without it rejects the node.
func TestCheck_FindsTemplatesThatNoHostHas(t *testing.T) {
	t.Parallel()
	h := host()
	require.Contains(t, paths(h.Check(doc(`{"promptId":"greeting"}`)).Problems), "/nodes/0/config/promptId prompt")
	h.Complete, h.Providers = false, nil
	r := h.Check(doc(`{"promptId":"greeting"}`))
	require.Empty(t, r.Problems)
	require.Contains(t, paths(r.Warnings), "/nodes/0/config/promptId prompt")
}

// A schema with alternatives, or with the members of an answer, allows answers.
func TestCheck_AcceptsSchemasThatAllowAnAnswer(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`{"type":"object"}`,
		`{"type":"object","required":["action","comment"],"properties":{"action":{"enum":["accept"]},"comment":{"type":"string"}},"additionalProperties":false}`,
		`{"anyOf":[{"type":"string"},{"type":"object","required":["action","reason"]}]}`,
	} {
		r := host().Check([]byte(`{"id":"w","name":"w","version":"1","nodes":[{"id":"g","typeId":"core.approvalGate","config":{"title":"t","actions":["accept","reject"],"resumeSchema":` + schema + `}}]}`))
		require.Empty(t, r.Problems, schema)
		require.Empty(t, r.Warnings, schema)
	}
}
