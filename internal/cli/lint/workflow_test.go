package lint

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/exit"
)

func flowDoc(edge string) string {
	return `{"id":"wf","name":"wf","version":"1","triggers":[],"variables":[],"metadata":{},"settings":{},
		"nodes":[{"id":"a","typeId":"core.noop","name":"a","position":{"x":0,"y":0},"config":{},"inputs":{},"disabled":true},
		         {"id":"b","typeId":"core.noop","name":"b","position":{"x":0,"y":0},"config":{},"inputs":{}}],
		"edges":[{"id":"e","sourceNodeId":"a","targetNodeId":"b"` + edge + `}]}`
}

func delayDoc(ms string) string {
	return `{"id":"wf","name":"wf","version":"1","triggers":[],"variables":[],"metadata":{},"settings":{},
		"nodes":[{"id":"a","typeId":"core.delay","name":"a","position":{"x":0,"y":0},"config":{"delayMs":` + ms + `},"inputs":{}}],"edges":[]}`
}

func TestWorkflowLint_FindsWhatAHostFinds(t *testing.T) {
	t.Parallel()
	out, err := command(t, flowDoc(`,"triggerRule":"all_complete"`), "workflow", "lint", "-")
	require.NoError(t, err)
	require.Empty(t, out)

	out, err = command(t, flowDoc(""), "workflow", "lint", "-")
	require.NoError(t, err, "a warning is not an error")
	require.Contains(t, out, "-: /nodes/1: warning: never-runs: no run gets to this node")

	out, err = command(t, flowDoc(`,"condition":{"expression":"output > 1"}`), "workflow", "lint", "-o", "json", "-")
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, `"path": "/edges/0/condition/expression"`)
	require.Contains(t, out, `"rule": "expression"`)
	require.Contains(t, out, "an expression here sees outputs, variables")

	out, err = command(t, `{"id":"wf"}`, "workflow", "lint", "-")
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, "-: ")

	out, err = command(t, delayDoc("40000000000"), "workflow", "lint", "-")
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, "-: /nodes/0/config/delayMs: limit: is 40000000000; want a number of milliseconds from 0 to 31622400000 (366 days)")

	out, err = command(t, flowDoc(`,"triggerRule":"all_complete"`), "workflow", "lint", "--max-node-executions", "0", "-")
	require.ErrorIs(t, err, exit.ErrUsage, out)

	_, err = command(t, "{}", "workflow", "lint", "no-such-file.json")
	require.ErrorIs(t, err, exit.ErrUsage)
}

// What a vendor gets in another form: a warning if the model answers in another shape, the rest with
// --rewrites.
func TestWorkflowLint_NamesWhatIsRewritten(t *testing.T) {
	t.Parallel()
	doc := `{"id":"wf","name":"wf","version":"1","triggers":[],"variables":[],"metadata":{},"settings":{},"edges":[],
		"nodes":[{"id":"a","typeId":"core.ai.structuredOutput","name":"a","position":{"x":0,"y":0},"inputs":{},"config":{"provider":"anthropic","prompt":"p",
			"outputSchema":{"type":"object","additionalProperties":false,"required":["a b"],"properties":{"a b":{"type":"number","minimum":1}}}}}]}`
	const renamed = `-: /nodes/0/config/outputSchema/properties/a b: warning: renamed-property: rewritten for anthropic at "/properties/a b": ` +
		"sent as a_b, because names of properties must match ^[a-zA-Z0-9_.-]{1,64}$\n"
	out, err := command(t, doc, "workflow", "lint", "-")
	require.NoError(t, err)
	require.Equal(t, renamed, out)
	out, err = command(t, doc, "workflow", "lint", "--rewrites", "-")
	require.NoError(t, err)
	require.Equal(t, renamed+`-: /nodes/0/config/outputSchema/properties/a b/minimum: warning: described: rewritten for anthropic at "/properties/a b/minimum": `+
		"minimum is put into the description, because it is not enforced\n", out)
}
