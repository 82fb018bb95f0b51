package workflow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/workflow"
)

// FuzzParse asserts that no document makes Parse panic, that a valid one can be compiled and
// seeded, and that an invalid one has problems with messages.
func FuzzParse(f *testing.F) {
	f.Add([]byte(rich))
	f.Add([]byte(`{}`))
	f.Add(small(f, func(doc map[string]any) { doc["edges"] = []any{edge("e", "a", "b"), edge("f", "b", "a")} }))
	f.Add([]byte(`{"id":"x","nodes":[{"id":1}],"edges":[{"condition":{"type":"regex"}}],"settings":{"timeout":1e-99999}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		d, problems := workflow.Parse(doc)
		require.Equal(t, d == nil, len(problems) > 0)
		for _, p := range problems {
			require.NotEmpty(t, p.Rule)
			require.NotEmpty(t, p.Message)
			require.True(t, p.Path == "" || p.Path[0] == '/')
		}
		if d == nil {
			return
		}
		require.True(t, json.Valid(d.Raw))
		g := workflow.Compile(d)
		require.Len(t, g.Steps, len(d.Nodes))
		d.Seed(nil)
		d.CheckConfigurable(nil)
	})
}
