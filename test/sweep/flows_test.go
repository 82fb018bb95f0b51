package sweep

import (
	"strings"

	"github.com/stretchr/testify/require"
)

// Values written to channels, and results of expressions.

// channelKinds lists the required reducers.
var channelKinds = []string{"replace", "append", "merge", "votes", "feedback", "message"}

// ofObjects has a workflow take an object as its text.
func ofObjects(doc string) string {
	return strings.Replace(doc, `"name":"text","type":"string"`, `"name":"text","type":"object"`, 1)
}

// channelsFlow writes its text to a channel of each kind. The last write fails, because a counter
// adds only numbers.
func channelsFlow() string {
	value := `{"value":{"type":"variable","variableName":"text"}}`
	var nodes, edges []string
	for i, kind := range append(append([]string{}, channelKinds...), "counter") {
		nodes = append(nodes, node("to-"+kind, "core.channelWrite", `{"channelName":"of-`+kind+`","reducer":"`+kind+`"}`, value))
		if i > 0 {
			edges = append(edges, follows("to-"+kind, "to-"+channelKinds[i-1]))
		}
	}
	return ofObjects(graph("channels", edges, nodes...))
}

// channels plants in values and names written to each kind of channel.
func (r *rig) channels(b batch) {
	r.t.Helper()
	runID := r.begin(map[string]any{"workflowId": "channels", "tags": []string{hookTag}, "inputs": map[string]any{"text": map[string]any{
		b.at("name in a channel"): b.at("written"), "voter": b.short(), "messageId": b.short(), "text": b.at("feedback"),
	}}})
	shown := r.finish(runID)
	for _, kind := range channelKinds {
		_, written, found := strings.Cut(shown, `"channel":"of-`+kind+`"`)
		require.True(r.t, found, "%s: nothing was written to the channel of %s", b.name, kind)
		r.prove(b, written, "written", "name in a channel", "feedback")
	}
	require.Contains(r.t, shown, "reducer counter adds numbers")
	r.delivered(b, runID, "written", "name in a channel")
}

// Expressions that return something, and failing ones whose error could quote the value.
var (
	made  = []string{`variables.text.value + variables.text.value`, `variables.text`, `{variables.text.value: [variables.text.value]}`, `[variables.text.value].map(x, x + "!")`}
	fails = []string{
		`{"a": 1}[variables.text.value]`, `int(variables.text.value)`, `double(variables.text.value)`, `timestamp(variables.text.value)`, `duration(variables.text.value)`,
		`bytes(variables.text.value)`, `bool(variables.text.value)`, `variables.text.value + 1`, `variables[variables.text.value]`, `variables.text.value.nothing`,
		`variables.text.value < 1`, `1 in variables.text.value`, `{variables.text.value: 1, variables.text.value: 2}`,
	}
)

// expressionsFlow evaluates them in ports, conditions and configs. Each failure is isolated.
func expressionsFlow() string {
	var nodes, edges []string
	add := func(id, node, when string) {
		edge := follows(id, "begin")
		if when != "" {
			edge = strings.Replace(edge, `{`, `{"condition":{"type":"expression","expression":`+mustJSON(when)+`},`, 1)
		}
		nodes, edges = append(nodes, node), append(edges, edge)
	}
	for i, e := range append(append([]string{}, made...), fails...) {
		id := "port-" + string(rune('a'+i))
		add(id, node(id, "core.identity", "{}", `{"text":{"type":"expression","expression":`+mustJSON(e)+`}}`), "")
		if i >= len(made) {
			id = "edge-" + string(rune('a'+i))
			add(id, node(id, "core.noop", "{}", "{}"), `dyn(`+e+`) == "x"`)
		}
	}
	text := `{"text":{"type":"variable","variableName":"text"}}`
	add("decides", node("decides", "core.conditional", `{"expression":"inputs.text.value.contains('(at ')"}`, text), `variables.text.value != "x"`)
	add("fails-to-decide", node("fails-to-decide", "core.conditional", `{"expression":"int(inputs.text.value) > 1"}`, text), "")
	add("repeats", node("repeats", "core.loop", `{"count":3,"expression":"inputs.text.value + string(index)"}`, text), "")
	add("fails-to-repeat", node("fails-to-repeat", "core.loop", `{"count":3,"expression":"int(inputs.text.value)"}`, text), "")
	add("merges", node("merges", "core.merge", `{"mode":"members"}`, text), "")
	add("fails-to-merge", node("fails-to-merge", "core.merge", `{"mode":"members"}`, `{"text":{"type":"expression","expression":"variables.text.value"}}`), "")
	return ofObjects(graph("expressions", edges, append([]string{node("begin", "core.noop", "{}", "{}")}, nodes...)...))
}

// expressions plants in the inputs of expressions that succeed and that fail.
func (r *rig) expressions(b batch) {
	r.t.Helper()
	shown := r.run(map[string]any{"workflowId": "expressions", "inputs": map[string]any{"text": map[string]any{
		"value": b.at("value of an expression"), b.at("name in an expression"): 1,
	}}})
	r.prove(b, shown, "value of an expression", "name in an expression")
}
