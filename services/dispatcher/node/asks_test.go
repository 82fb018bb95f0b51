package node_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// An invalid question is reported at registration, with its path.
func TestReview_ChecksTheQuestionOfANode(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{"kind":"custom","data":{"customKind":"ui.a2ui-surface","payload":{"catalogVersion":"0.9.1","surface":{"components":[{"component":"script"}]}}}}`: "/nodes/0/config/data/payload/surface/components/0/component",
		`{"kind":"custom","data":{"customKind":"any"},"resumeSchema":{"type":"nonsense"}}`:                                                                 "/nodes/0/config/resumeSchema/type",
		`{"kind":"custom","data":{"customKind":"any"}}`:                                                                                                    "",
	} {
		def, problems := workflow.Parse([]byte(`{"id":"wf","name":"wf","version":"1","nodes":[{"id":"a","typeId":"core.interrupt","name":"n","position":{"x":0,"y":0},"config":` + config +
			`,"inputs":{}}],"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`))
		require.Empty(t, problems)
		problems, _ = node.Builtin().Review(def, nil)
		if want == "" {
			require.Empty(t, problems)
			continue
		}
		require.NotEmpty(t, problems)
		require.Equal(t, want, problems[0].Path)
	}
}
