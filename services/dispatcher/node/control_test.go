package node_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

func do(typ, config string, ports map[string]string, mod ...func(*node.Input)) (node.Output, *wire.NodeError) {
	in := node.Input{
		Config:    json.RawMessage(config),
		Ports:     raw(ports),
		Variables: raw(map[string]string{"limit": "5", "set": "[1]"}),
	}
	for _, m := range mod {
		m(&in)
	}
	return node.Builtin()[typ].Do(in)
}

func TestFlowTypes_PutOut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		typ, config string
		ports, want map[string]string
	}{
		"end hands on": {
			node.TypeEnd, `{}`,
			map[string]string{"input": "1", "b": "2"},
			map[string]string{"input": "1", "b": "2", "output": "1"},
		},
		"parallel hands on": {
			node.TypeParallel, `{}`,
			map[string]string{"input": "1"},
			map[string]string{"input": "1", "output": "1"},
		},
		"conditional, expression": {
			node.TypeConditional, `{"expression":"inputs.input > variables.limit"}`,
			map[string]string{"input": "7"},
			map[string]string{"result": "true", "output": "7"},
		},
		"conditional, no input": {
			node.TypeConditional, `{"expression":"has(inputs.input)"}`, nil,
			map[string]string{"result": "false"},
		},
		"conditional, condition": {
			node.TypeConditional, `{"condition":{"type":"equals","left":"input.a","right":1}}`,
			map[string]string{"input": `{"a":1.0}`},
			map[string]string{"result": "true", "output": `{"a":1.0}`},
		},
		"conditional, condition as text": {
			node.TypeConditional, `{"condition":{"expression":"inputs.input == 1"}}`,
			map[string]string{"input": "2"},
			map[string]string{"result": "false", "output": "2"},
		},
		"merge": {
			node.TypeMerge, `{}`,
			map[string]string{"b": "2", "a": "1"},
			map[string]string{"output": `{"a":1,"b":2}`},
		},
		"merge, array": {
			node.TypeMerge, `{"mode":"array"}`,
			map[string]string{"b": "2", "a": "1"},
			map[string]string{"output": `[1,2]`},
		},
		"merge, members": {
			node.TypeMerge, `{"mode":"members"}`,
			map[string]string{"b": `{"x":2}`, "a": `{"x":1,"y":1}`},
			map[string]string{"output": `{"x":2,"y":1}`},
		},
		"merge, nothing": {node.TypeMerge, `{"mode":"array"}`, nil, map[string]string{"output": `[]`}},
		"getVariable":    {node.TypeGetVariable, `{"name":"limit"}`, nil, map[string]string{"output": "5"}},
		"getVariable, by the long name": {
			node.TypeGetVariable, `{"variableName":"limit"}`, nil,
			map[string]string{"output": "5"},
		},
		"getVariable, default": {
			node.TypeGetVariable, `{"name":"nope","default":null}`, nil,
			map[string]string{"output": "null"},
		},
		"loop over a port": {
			node.TypeLoop, `{"expression":"item * 2"}`,
			map[string]string{"items": "[1,2]"},
			map[string]string{"output": "[2,4]", "last": "4", "count": "2"},
		},
		"loop over what comes in": {
			node.TypeLoop, `{"expression":"{\"i\": index, \"v\": item}"}`,
			map[string]string{"input": `["a"]`},
			map[string]string{"output": `[{"i":0,"v":"a"}]`, "last": `{"i":0,"v":"a"}`, "count": "1"},
		},
		"loop over nothing": {
			node.TypeLoop, `{"items":[],"expression":"item"}`, nil,
			map[string]string{"output": "[]", "last": "null", "count": "0"},
		},
		"loop a number of times": {
			node.TypeLoop, `{"count":3,"expression":"index"}`, nil,
			map[string]string{"output": "[0,1,2]", "last": "2", "count": "3"},
		},
		"loop that adds up": {
			node.TypeLoop, `{"items":[1,2,3],"initial":0,"expression":"acc + item"}`, nil,
			map[string]string{"output": "6", "last": "6", "count": "3"},
		},
		"loop until": {
			node.TypeLoop, `{"initial":1,"expression":"acc * 3","until":"acc > 20"}`, nil,
			map[string]string{"output": "27", "last": "27", "count": "3"},
		},
		"loop until, over items": {
			node.TypeLoop, `{"items":[1,2,3,4,5,6,7],"expression":"item","until":"item == 2"}`, nil,
			map[string]string{"output": "[1,2]", "last": "2", "count": "2"},
		},
		"loop with a bound of its own": {
			node.TypeLoop, `{"count":7,"maxIterations":7,"expression":"0"}`, nil,
			map[string]string{"output": "[0,0,0,0,0,0,0]", "last": "0", "count": "7"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Empty(t, lintOf(tt.typ, tt.config))
			out, bad := do(tt.typ, tt.config, tt.ports)
			require.Nil(t, bad)
			require.Equal(t, raw(tt.want), out.Ports)
			require.Empty(t, out.Writes)
			require.False(t, out.Untrusted)
		})
	}
}

func lintOf(typ, config string) []workflow.Problem {
	return node.Builtin()[typ].LintConfig(json.RawMessage(config))
}

func TestStart_PutsOutTheRunsInputs(t *testing.T) {
	t.Parallel()
	out, bad := do(node.TypeStart, `{}`, nil, func(in *node.Input) { in.RunInputs = raw(map[string]string{"mail": `"x"`}) })
	require.Nil(t, bad)
	require.Equal(t, raw(map[string]string{"mail": `"x"`, "output": `{"mail":"x"}`}), out.Ports)
}

func TestSetVariable_TakesItsValueFromThePortsFirst(t *testing.T) {
	t.Parallel()
	for want, ports := range map[string]map[string]string{
		"1": {"value": "1", "input": "2"}, "2": {"input": "2"}, "3": nil,
	} {
		out, bad := do(node.TypeSetVariable, `{"name":"v","value":3}`, ports)
		require.Nil(t, bad)
		require.Equal(t, raw(map[string]string{"v": want}), out.Writes)
		require.Equal(t, raw(map[string]string{"output": want}), out.Ports)
	}
}

func TestFlowTypes_FailWithARemedy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		typ, config string
		ports       map[string]string
		want        string
	}{
		"conditional": {node.TypeConditional, `{"expression":"inputs.nope"}`, nil, "no member of that name"},
		"conditional gives no": {
			node.TypeConditional, `{"expression":"inputs.input"}`,
			map[string]string{"input": "1"},
			"want true or false",
		},
		"merge": {
			node.TypeMerge, `{"mode":"members"}`,
			map[string]string{"a": "1"},
			"port a: want an object",
		},
		"setVariable":          {node.TypeSetVariable, `{"name":"v"}`, nil, "gets no value"},
		"setVariable, no name": {node.TypeSetVariable, `{"value":1}`, nil, "/config/name"},
		"getVariable":          {node.TypeGetVariable, `{"name":"nope"}`, nil, "/config/default would be used"},
		"loop, no items":       {node.TypeLoop, `{"expression":"1"}`, nil, "nothing says how often"},
		"loop, items are none": {
			node.TypeLoop, `{"expression":"1"}`,
			map[string]string{"items": `{"a":1}`},
			"port items: want an array",
		},
		"loop, count is none": {
			node.TypeLoop, `{"expression":"1"}`,
			map[string]string{"count": `-1`},
			"port count: want an integer",
		},
		"loop, a round": {
			node.TypeLoop, `{"items":[1,0],"expression":"1 / item"}`, nil,
			"/config/expression, round 1: line 1, column 3: division by zero",
		},
		"loop, too long a result": {
			node.TypeLoop, `{"items":[1,2],"expression":"inputs.input"}`,
			map[string]string{"input": `"` + strings.Repeat("x", 700_000) + `"`},
			"bytes of JSON together",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, bad := do(tt.typ, tt.config, tt.ports)
			require.NotNil(t, bad)
			require.Equal(t, "validation_error", bad.Code)
			require.Contains(t, bad.Message, tt.want)
		})
	}
}

func TestLoop_IteratesUpToItsLimit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config string
		max    int64
		want   *node.Loop
	}{
		"the default of 5":           {`{"count":5,"expression":"0"}`, 0, nil},
		"one more":                   {`{"count":6,"expression":"0"}`, 0, &node.Loop{Limit: 5, Observed: 6}},
		"the workflow's":             {`{"count":9,"expression":"0"}`, 8, &node.Loop{Limit: 8, Observed: 9}},
		"the node's wins":            {`{"count":9,"maxIterations":9,"expression":"0"}`, 8, nil},
		"the host's":                 {`{"count":1001,"expression":"0"}`, 5000, &node.Loop{Limit: 1000, Observed: 1001}},
		"until, that never comes":    {`{"expression":"index","until":"false"}`, 3, &node.Loop{Limit: 3, Observed: 4}},
		"until, in the last round":   {`{"expression":"index","until":"index == 2"}`, 3, nil},
		"items that until cuts down": {`{"items":[1,2,3,4],"expression":"item","until":"item == 2"}`, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, bad := do(node.TypeLoop, tt.config, nil, func(in *node.Input) { in.MaxLoop = tt.max })
			require.Equal(t, tt.want, out.Loop)
			if tt.want == nil {
				require.Nil(t, bad)
				return
			}
			require.Equal(t, "loop_limit_exceeded", bad.Code)
			require.Contains(t, bad.Message, "raise maxIterations")
		})
	}
}

// The cost limit applies to all rounds of a loop together.
func TestLoop_BoundsItsRoundsTogether(t *testing.T) {
	t.Parallel()
	hard := strings.Repeat("[0,1,2,3,4,5,6,7,8,9].all(x, ", 3) + "true" + strings.Repeat(")", 3)
	config, err := json.Marshal(map[string]any{"count": 1000, "maxIterations": 1000, "expression": hard})
	require.NoError(t, err)
	_, bad := do(node.TypeLoop, string(config), nil)
	require.NotNil(t, bad)
	require.Contains(t, bad.Message, "steps together")
}

// A value that a node selects keeps its trust.
func TestFlowTypes_KeepTheTrustOfAVariable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ typ, config string }{
		{node.TypeGetVariable, `{"name":"limit"}`},
		{node.TypeConditional, `{"expression":"variables.limit > 1"}`},
		{node.TypeConditional, `{"condition":{"expression":"variables[?\"limit\"].hasValue()"}}`},
		{node.TypeLoop, `{"count":1,"expression":"variables"}`},
		{node.TypeLoop, `{"expression":"1","until":"variables.limit == 5"}`},
	} {
		for _, untrusted := range []bool{true, false} {
			out, bad := do(tt.typ, tt.config, nil, func(in *node.Input) { in.UntrustedVariables = map[string]bool{"limit": untrusted} })
			require.Nil(t, bad)
			require.Equal(t, untrusted, out.Untrusted, "%s %s", tt.typ, tt.config)
		}
	}
}

func TestLint_FindsWhatIsWrongAndWhere(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ typ, config, path, rule string }{
		{node.TypeConditional, `{}`, "", node.RuleConfig},
		{node.TypeConditional, `{"expression":"inputs."}`, "/expression", node.RuleExpression},
		{node.TypeConditional, `{"expression":"1"}`, "/expression", node.RuleExpression},
		{node.TypeConditional, `{"expression":1}`, "/expression", "type"},
		{node.TypeConditional, `{"expression":"true","condition":{}}`, "/condition", workflow.RuleExclusive},
		{node.TypeConditional, `{"condition":{"type":"equals","left":"a"}}`, "/condition", workflow.RuleCondition},
		{node.TypeConditional, `{"condition":{"type":"like"}}`, "/condition/type", workflow.RuleCondition},
		{node.TypeConditional, `{"condition":{"nope":1}}`, "/condition/nope", workflow.RuleCondition},
		{node.TypeConditional, `{"condition":{"expression":"outputs.a"}}`, "/condition", node.RuleExpression},
		{node.TypeMerge, `{"mode":"zip"}`, "/mode", "enum"},
		{node.TypeMerge, `{"modus":"array"}`, "/modus", workflow.RuleUnknownMember},
		{node.TypeSetVariable, `{"value":1}`, "/name", node.RuleConfig},
		{node.TypeGetVariable, `{"name":7}`, "/name", "type"},
		{node.TypeLoop, `{"count":1}`, "", "required"},
		{node.TypeLoop, `{"expression":"1","until":"1"}`, "/until", node.RuleExpression},
		{node.TypeLoop, `{"expression":"1","items":{}}`, "/items", "type"},
		{node.TypeLoop, `{"expression":"1","count":1.5}`, "/count", "type"},
		{node.TypeLoop, `{"expression":"1","count":1,"items":[]}`, "/count", workflow.RuleExclusive},
		{node.TypeLoop, `{"expression":"1","maxIterations":1001}`, "/maxIterations", "maximum"},
	} {
		found := lintOf(tt.typ, tt.config)
		require.Len(t, found, 1, "%s %s", tt.typ, tt.config)
		require.Equal(t, tt.path, found[0].Path, "%s %s", tt.typ, tt.config)
		require.Equal(t, tt.rule, found[0].Rule)
		require.NotEmpty(t, found[0].Message)
	}
}

func definitionOf(t *testing.T, nodes, edges string) *workflow.Definition {
	t.Helper()
	def, problems := workflow.Parse([]byte(`{"id":"wf","name":"wf","version":"1","triggers":[],"variables":[],"metadata":{},"settings":{},"nodes":[` + nodes + `],"edges":[` + edges + `]}`))
	require.Empty(t, problems)
	return def
}

func nodeJSON(id, typ, rest string) string {
	return `{"id":"` + id + `","typeId":"` + typ + `","name":"n","position":{"x":0,"y":0}` + rest + `}`
}

const bare = `,"config":{},"inputs":{}`

func TestProblems_AreThoseOfConditionsPortsAndConfigs(t *testing.T) {
	t.Parallel()
	def := definitionOf(t, nodeJSON("a", "core.loop", bare)+","+nodeJSON("b", "core.noop", `,"config":{},"inputs":{"x":{"type":"expression","expression":"("}}`)+","+nodeJSON("c", "vendor.unknown", bare),
		`{"id":"e","sourceNodeId":"a","targetNodeId":"b","condition":{"expression":"x"}}`)
	var paths []string
	found, _ := node.Builtin().Review(def, nil)
	for _, p := range found {
		paths = append(paths, p.Path)
	}
	require.Equal(t, []string{
		"/edges/0/condition/expression", "/nodes/0/config", "/nodes/1/inputs/x/expression",
	}, paths)
}

func TestWarnings_FindProbableMistakes(t *testing.T) {
	t.Parallel()
	edge := func(id, from, to, rest string) string {
		return `{"id":"` + id + `","sourceNodeId":"` + from + `","targetNodeId":"` + to + `"` + rest + `}`
	}
	noop := func(id string) string { return nodeJSON(id, "core.noop", bare) }
	decide := nodeJSON("d", "core.conditional", `,"config":{"expression":"true"},"inputs":{}`)
	model := nodeJSON("m", "core.ai.callPrompt", `,"config":{"prompt":"x"},"inputs":{}`)
	off := nodeJSON("off", "core.noop", bare+`,"disabled":true`)
	for name, tt := range map[string]struct {
		nodes, edges string
		path, rule   string
	}{
		"sound":                  {noop("a") + "," + noop("b"), edge("e", "a", "b", ""), "", ""},
		"behind a disabled node": {off + "," + noop("b"), edge("e", "off", "b", ""), "/nodes/1", node.RuleNeverRuns},
		"behind one, whatever comes": {
			off + "," + noop("b"),
			edge("e", "off", "b", `,"triggerRule":"all_complete"`), "", "",
		},
		"linked to nothing": {
			noop("a") + "," + noop("b") + "," + noop("c"),
			edge("e", "a", "b", ""), "/nodes/2", node.RuleUnlinked,
		},
		"parallel to the start": {
			nodeJSON("s", "core.start", bare) + "," + noop("a") + "," + noop("b"),
			edge("e", "s", "b", "") + "," + edge("f", "a", "b", ""),
			"/nodes/1", node.RuleUnlinked,
		},
		"a port that is": {decide + "," + noop("b"), edge("e", "d", "b", `,"sourceOutput":"result"`), "", ""},
		"a condition on a port": {
			decide + "," + noop("b"),
			edge("e", "d", "b", `,"condition":{"type":"equals","left":"output.result","right":true}`), "",
			"",
		},
		"a connection with no edge": {
			nodeJSON("a", "core.end", bare) + "," + nodeJSON("b", "core.end", `,"config":{},"inputs":{"x":{"type":"connection","nodeId":"a","outputKey":"output"}}`) + "," + noop("c"),
			edge("e", "a", "c", "") + "," + edge("f", "b", "c", ""),
			"/nodes/1/inputs/x/nodeId", node.RuleNotBefore,
		},
		"an expression over no node": {
			noop("a") + "," + nodeJSON("b", "core.end", `,"config":{},"inputs":{"x":{"type":"expression","expression":"nodes.ghost.output"}}`),
			edge("e", "a", "b", ""), "/nodes/1/inputs/x/expression", node.RuleNotBefore,
		},
		"two edges into one input": {
			decide + "," + nodeJSON("m", "core.merge", bare) + "," + nodeJSON("z", "core.conditional", `,"config":{"expression":"true"},"inputs":{}`),
			edge("e", "d", "m", "") + "," + edge("f", "z", "m", ""),
			"/edges/1/targetInput", node.RuleOverlap,
		},
		"a timeout where none can be": {
			nodeJSON("a", "core.noop", bare+`,"settings":{"timeoutMs":5}`),
			"", "/nodes/0/settings/timeoutMs", node.RuleNoTimeout,
		},
		"questions where no model asks": {
			nodeJSON("a", "core.noop", bare+`,"settings":{"questions":{"timeoutMs":5}}`),
			"", "/nodes/0/settings/questions", workflow.RuleQuestions,
		},
		"questions of a model": {
			nodeJSON("a", "core.ai.callPrompt", `,"config":{"prompt":"x"},"inputs":{},"settings":{"questions":{"timeoutMs":5}}`),
			"", "", "",
		},
		"a route by reasoning": {
			model + "," + noop("b"),
			edge("e", "m", "b", `,"condition":{"type":"regex","left":"output.reasoning","right":"yes"}`),
			"/edges/0/condition", node.RuleReasoning,
		},
		"a route by an expression over reasoning": {
			model + "," + noop("b"),
			edge("e", "m", "b", `,"condition":{"expression":"outputs.output[\"reasoning\"].contains(\"yes\")"}`),
			"/edges/0/condition", node.RuleReasoning,
		},
		"a conditional over reasoning": {
			model + "," + nodeJSON("d", "core.conditional", `,"config":{"expression":"inputs.input.?reasoning.hasValue()"},"inputs":{}`),
			edge("e", "m", "d", ""), "/nodes/1/config/expression", node.RuleReasoning,
		},
		"a route by another member": {
			model + "," + noop("b"),
			edge("e", "m", "b", `,"condition":{"expression":"outputs.output.reasoningless && outputs.output.text == \"reasoning\""}`), "", "",
		},
		"reasoning of no model": {
			noop("a") + "," + noop("b"),
			edge("e", "a", "b", `,"condition":{"expression":"outputs.output.reasoning == 1"}`), "", "",
		},
		"a policy where no call is": {
			nodeJSON("a", "core.noop", bare+`,"settings":{"onUnknownOutcome":"retry"}`),
			"", "/nodes/0/settings/onUnknownOutcome", workflow.RuleUnknownOutcome,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, found := node.Builtin().Review(definitionOf(t, tt.nodes, tt.edges), nil)
			if tt.rule == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, tt.path, found[0].Path)
			require.Equal(t, tt.rule, found[0].Rule)
		})
	}
}

// A registration compiles all expressions of a definition, so their total size is limited.
func TestReview_BoundsTheExpressionsOfADefinition(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 3900) + `"`
	var ports []string
	for i := range 20 {
		ports = append(ports, fmt.Sprintf(`"p%d":{"type":"expression","expression":%q}`, i, long))
	}
	found, _ := node.Builtin().Review(definitionOf(t, nodeJSON("a", "core.end", `,"config":{},"inputs":{`+strings.Join(ports, ",")+`}`), ""), nil)
	require.Len(t, found, 1)
	require.Contains(t, found[0].Message, "20 expressions of 78040 bytes together")
	found, _ = node.Builtin().Review(definitionOf(t, nodeJSON("a", "core.end", `,"config":{},"inputs":{`+strings.Join(ports[:16], ",")+`}`), ""), nil)
	require.Empty(t, found)
}
