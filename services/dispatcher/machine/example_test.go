package machine_test

import (
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/examples"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// The documented example of conditions and loops takes the documented path.
func TestExample_OrderDecides(t *testing.T) {
	t.Parallel()
	doc, err := fs.ReadFile(examples.FS, "order/workflow.json")
	require.NoError(t, err)
	def, problems := workflow.Parse(doc)
	require.Empty(t, problems)
	problems, warned := node.Builtin().Review(def, nil)
	require.Empty(t, problems)
	require.Empty(t, warned)
	f, _ := definition.Compile(def)
	plan := machine.Plan{Def: def, Graph: workflow.Compile(def), Flow: f, Types: node.Builtin()}
	const lines = `"lines":[{"sku":"pen","quantity":3,"cents":120},{"sku":"ink","quantity":1,"cents":850}]`
	for name, tt := range map[string]struct {
		inputs, want string
		skipped      string
	}{
		"small":   {`{` + lines + `}`, `{"summary":{"decision":"accepted","total":1210,"lines":2,"skus":["pen","ink"]}}`, "review"},
		"large":   {`{` + lines + `,"limit":1000}`, `{"summary":{"decision":"review","total":1210,"lines":2,"skus":["pen","ink"]}}`, "accept"},
		"express": {`{` + lines + `,"express":true}`, `{"summary":{"decision":"review at once","total":1210,"lines":2,"skus":["pen","ink"]}}`, "accept"},
		"empty":   {`{"lines":[]}`, `{"summary":{"decision":"accepted","total":0,"lines":0,"skus":[]}}`, "review"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var inputs map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(tt.inputs), &inputs))
			vars, wrong := def.Seed(inputs)
			require.Empty(t, wrong)
			m := machine.New(plan, limits, runstate.New(record(func(r *wire.RunRecord) { r.Inputs, r.Defaults = inputs, vars })))
			m.Advance(at)
			require.Equal(t, wire.StatusCompleted, m.State().Status)
			var out map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(m.State().Outputs, &out))
			require.Contains(t, out, "summary")
			require.JSONEq(t, tt.want, `{"summary":`+string(out["summary"])+`}`)
			require.Equal(t, runstate.NodeSkipped, m.State().Nodes[tt.skipped].Status)
		})
	}
}
