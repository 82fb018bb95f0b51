package conformance

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// feature is a workflow for one feature of the host. test/golden stores its run, so that later
// builds are compared with it.
type feature struct {
	rule      string
	doc       string
	with      string // further members of the request
	says      map[string][]string
	want      string // see path()
	code      string
	variables map[string]string
}

// more adds members to a node or an edge.
func more(doc, members string) string { return strings.TrimSuffix(doc, "}") + "," + members + "}" }

// when returns an edge with a condition.
func when(from, to, condition string) string { return more(edge(from, to), `"condition":`+condition) }

// rule returns an edge with a trigger rule.
func rule(from, to, name string) string { return more(edge(from, to), `"triggerRule":"`+name+`"`) }

// into returns an edge into a port.
func into(from, to, port string) string { return more(edge(from, to), `"targetInput":"`+port+`"`) }

func join(docs ...string) string { return strings.Join(docs, ",") }

func noop(id string) string { return node(id, "core.noop", "{}", "{}") }

func set(id, name, value string) string {
	return node(id, "core.setVariable", `{"name":"`+name+`"}`, `{"value":{"type":"static","value":`+value+`}}`)
}

func write(id, channel, value string) string {
	return node(id, "core.channelWrite", `{"channelName":"`+channel+`","value":`+value+`}`, "{}")
}

// chain connects each node to the next.
func chain(ids ...string) string {
	var out []string
	for i := 1; i < len(ids); i++ {
		out = append(out, edge(ids[i-1], ids[i]))
	}
	return join(out...)
}

// register deploys a workflow that is not shared by all tests.
func register(t *testing.T, c *harness.Client, doc string) (id string) {
	t.Helper()
	a := do(t, c, http.MethodPost, "/v1/workflows", doc)
	require.Contains(t, []int{http.StatusCreated, http.StatusOK}, a.Status, "%s", a.Body) // it exists if the tests run repeatedly
	var d struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(doc), &d))
	return d.ID
}

// path lists the completed nodes and the other node events.
func path(events []harness.Event) string {
	var out []string
	for _, e := range events {
		switch e.Type {
		case "node.completed":
			out = append(out, e.NodeID)
		case "node.started", "output.chunk", "agent.reasoning.delta", "provider.usage", "variable.changed", "channel.written": // on every path
		default:
			if e.NodeID != "" {
				out = append(out, e.Type+"@"+e.NodeID)
			}
		}
	}
	return strings.Join(out, " ")
}

// shows runs a feature and checks the run against the contract.
func (f feature) shows(t *testing.T, c *harness.Client) []harness.Event {
	t.Helper()
	id := register(t, c, f.doc)
	for node, answers := range f.says {
		program(t, c, node, answers...)
	}
	body := `{"workflowId":"` + id + `"`
	if f.with != "" {
		body += "," + f.with
	}
	runID, events := run(t, c, body+"}")
	require.Equal(t, f.want, path(events))
	s := read(t, c, runID)
	if f.code != "" {
		require.Equal(t, "failed", s.Status)
		require.Equal(t, f.code, s.Error.Code)
	} else {
		require.Equal(t, "completed", s.Status)
	}
	for name, want := range f.variables {
		require.JSONEq(t, want, string(s.Variables[name]), name)
	}
	return events
}

func TestFeatures_OfTheFlow(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for _, f := range flowFeatures {
		t.Run(f.rule, func(t *testing.T) {
			t.Parallel()
			f.shows(t, c)
		})
	}
}

var flowFeatures = []feature{
	{
		rule: "§5.2 an edge whose condition does not hold skips what is behind it",
		doc: definition("feature-conditions", join(
			node("a", "core.identity", "{}", `{"n":{"type":"static","value":1.0},"text":{"type":"static","value":"hello world"},"list":{"type":"static","value":["x",{"y":2}]}}`),
			noop("always"), noop("equals"), noop("differs"), noop("contains"), noop("matches"), noop("computed"), noop("after"),
		), join(
			when("a", "always", `{}`), when("a", "equals", `{"type":"equals","left":"n","right":1}`), when("a", "differs", `{"type":"notEquals","left":"n","right":1}`),
			when("a", "contains", `{"type":"contains","left":"list","right":{"y":2}}`), when("a", "matches", `{"type":"regex","left":"text","right":"^world"}`),
			when("a", "computed", `{"expression":"outputs.n > variables.limit"}`), edge("matches", "after"),
		), `{"name":"limit","type":"number","defaultValue":0.5}`, ""),
		want: "a always computed contains node.skipped@differs equals node.skipped@matches node.skipped@after",
	},
	{
		rule: "§5.6 a conditional decides, and the branch that is not taken is skipped",
		doc: definition("feature-branches", join(
			node("start", "core.start", "{}", "{}"), more(node("decide", "core.conditional", `{"expression":"inputs.total > variables.limit"}`, "{}"), `"notes":"n"`),
			node("again", "core.conditional", `{"condition":{"type":"contains","left":"input","right":"x"}}`, `{"input":{"type":"static","value":["x"]}}`),
			set("large", "size", `"large"`), set("small", "size", `"small"`), node("end", "core.end", "{}", "{}"),
		), join(
			more(into("start", "decide", "total"), `"sourceOutput":"total"`), edge("start", "again"), when("decide", "large", `{"type":"equals","left":"result","right":true}`),
			when("decide", "small", `{"expression":"!outputs.result"}`), rule("large", "end", "any_success"), rule("small", "end", "any_success"),
		), `{"name":"limit","type":"number","defaultValue":10}`, ""),
		with:      `"inputs":{"total":11}`,
		variables: map[string]string{"size": `"large"`},
		want:      "start again decide large node.skipped@small end",
	},
	{
		rule: "§5.6 what ran in parallel is joined",
		doc: definition("feature-parallel", join(
			node("start", "core.start", "{}", "{}"), node("fork", "core.parallel", "{}", "{}"), set("left", "l", `{"a":1,"b":1}`), set("right", "r", `{"b":2}`),
			node("object", "core.merge", "{}", "{}"), node("array", "core.merge", `{"mode":"array"}`, "{}"), node("members", "core.merge", `{"mode":"members"}`, "{}"),
			node("all", "core.setVariable", `{"name":"all"}`, `{"value":{"type":"expression","expression":"[nodes.object.output, nodes.array.output, nodes.members.output]"}}`),
			node("end", "core.end", "{}", "{}"),
		), join(
			chain("start", "fork"), edge("fork", "left"), edge("fork", "right"), into("left", "object", "one"), into("right", "object", "two"),
			into("left", "array", "one"), into("right", "array", "two"), into("left", "members", "one"), into("right", "members", "two"),
			edge("object", "all"), into("array", "all", "b"), into("members", "all", "c"), edge("all", "end"),
		), "", ""),
		variables: map[string]string{"all": `[{"one":{"a":1,"b":1},"two":{"b":2}},[{"a":1,"b":1},{"b":2}],{"a":1,"b":2}]`},
		want:      "start fork left right array members object all end",
	},
	{
		rule: "§5.6 a loop goes round its items, a number of times, or until it is enough",
		doc: definition("feature-loops", join(
			node("items", "core.loop", `{"expression":"item * 2 + index"}`, `{"items":{"type":"static","value":[1,2,3]}}`),
			node("fold", "core.loop", `{"expression":"acc + item","initial":0,"items":[1,2,3]}`, "{}"), node("times", "core.loop", `{"expression":"index","count":2}`, "{}"),
			node("until", "core.loop", `{"expression":"acc * 2","initial":1,"until":"acc > 50","maxIterations":10}`, "{}"),
			node("all", "core.setVariable", `{"name":"all"}`, `{"value":{"type":"expression","expression":"[nodes.items.output, nodes.fold.output, nodes.times.count, nodes.until.last]"}}`),
		), chain("items", "fold", "times", "until", "all"), "", ""),
		variables: map[string]string{"all": `[[2,5,8],6,2,64]`},
		want:      "items fold times until all",
	},
	{
		rule: "§5.6 a loop that would go round too often fails at its limit",
		doc: strings.Replace(definition("feature-loop-limit", node("loop", "core.loop", `{"expression":"index","count":3}`, "{}"), "", "", ""),
			`"settings":{}`, `"settings":{"maxLoopbackIterations":2}`, 1),
		code: "loop_limit_exceeded",
		want: "workflow.loopback-limit@loop cap.breached@loop node.failed@loop",
	},
	{
		rule: "§5.3 a port takes its value from where its form says",
		doc: definition("feature-ports", join(
			node("a", "core.identity", "{}", `{"said":{"type":"static","value":{"deep":[1,2]}},"named":{"type":"variable","variableName":"word"}}`),
			node("b", "core.identity", "{}", `{"linked":{"type":"connection","nodeId":"a","outputKey":"said"},"computed":{"type":"expression","expression":"nodes.a.said.deep[1] + size(variables.word)"},
				"absent":{"type":"variable","variableName":"nowhere","optional":true}}`),
			node("c", "core.getVariable", `{"name":"nowhere","default":"else"}`, "{}"), node("d", "core.identity", "{}", "{}"),
		), chain("a", "b", "c", "d"), `{"name":"word","type":"string","defaultValue":"five5"}`, ""),
		variables: map[string]string{"linked": `{"deep":[1,2]}`, "computed": "7", "named": `"five5"`, "input": `"else"`},
		want:      "a b c d",
	},
	{
		rule: "§5.2 a trigger rule says after what a node starts",
		doc: definition("feature-rules", join(
			node("bad", "core.fail", `{"code":"boom","message":"m"}`, "{}"), noop("good"),
			noop("all-success"), noop("any-success"), noop("all-complete"), noop("none-failed"), noop("any-failed"), noop("after-skipped"), noop("good-only"),
		), join(
			edge("bad", "all-success"), edge("good", "all-success"), rule("bad", "any-success", "any_success"), rule("good", "any-success", "any_success"),
			rule("bad", "all-complete", "all_complete"), rule("good", "all-complete", "all_complete"), rule("bad", "none-failed", "none_failed"), rule("good", "none-failed", "none_failed"),
			rule("bad", "any-failed", "any_failed"), rule("good", "any-failed", "any_failed"), rule("all-success", "after-skipped", "none_failed"), rule("good", "good-only", "none_failed"),
		), "", ""),
		want: "node.failed@bad good all-complete node.skipped@all-success after-skipped any-failed any-success good-only node.skipped@none-failed",
	},
	{
		rule: "§5.2 a disabled node is skipped, and what only it leads to",
		doc:  definition("feature-disabled", join(noop("a"), more(noop("off"), `"disabled":true`), noop("behind"), noop("b")), join(chain("a", "off", "behind"), edge("a", "b")), "", ""),
		want: "a b node.skipped@off node.skipped@behind",
	},
	{
		rule: "§5.3 inputs win over the defaults of variables",
		doc: definition("feature-defaults", node("n", "core.noop", "{}", "{}"), "",
			`{"name":"given","type":"string","defaultValue":"own"},{"name":"left","type":"object","defaultValue":{"a":[1,null]}},{"name":"bare","type":"number"}`, ""),
		with:      `"inputs":{"given":"other"}`,
		variables: map[string]string{"given": `"other"`, "left": `{"a":[1,null]}`},
		want:      "n",
	},
	{
		rule: "§5.9 each reducer makes its own of what is written",
		doc: definition("feature-channels", join(
			write("r1", "last", `1`), write("r2", "last", `2`), write("a1", "log", `"a"`), write("a2", "log", `"b"`), write("a3", "log", `"c"`), write("f1", "notes", `{"n":1}`),
			write("v1", "votes", `{"voter":"ann","for":"x"}`), write("v2", "votes", `{"voter":"ann","for":"y"}`), write("m1", "messages", `{"messageId":"1","content":"once"}`),
			write("m2", "messages", `{"messageId":"1","content":"twice"}`), write("o1", "merged", `{"a":1}`), write("o2", "merged", `{"b":2}`), write("c1", "count", `2`), write("c2", "count", `3`),
			node("copy", "core.setVariable", `{"name":"sum"}`, `{"value":{"type":"variable","variableName":"count"}}`),
		), chain("r1", "r2", "a1", "a2", "a3", "f1", "v1", "v2", "m1", "m2", "o1", "o2", "c1", "c2", "copy"), "",
			`,"channels":{"last":{"reducer":"replace"},"log":{"reducer":"append","maxSize":2},"notes":{"reducer":"feedback"},"votes":{"reducer":"votes"},"messages":{"reducer":"message"},
			"merged":{"reducer":"merge","default":{"z":0}},"count":{"reducer":"counter","default":1}}`),
		variables: map[string]string{
			"last": `2`, "log": `["b","c"]`, "notes": `[{"n":1}]`, "votes": `[{"voter":"ann","for":"y"}]`, "messages": `[{"messageId":"1","content":"once"}]`,
			"merged": `{"z":0,"a":1,"b":2}`, "sum": `6`,
		},
		want: "r1 r2 a1 a2 a3 f1 v1 v2 m1 m2 o1 o2 c1 c2 copy",
	},
	{
		rule: "§10.3 what is sensitive is masked before it is recorded",
		doc: definition("feature-masked", join(
			node("copy", "core.identity", "{}", `{"text":{"type":"variable","variableName":"born"},"open":{"type":"static","value":"told"}}`),
			node("keep", "core.channelWrite", `{"channelName":"log"}`, `{"value":{"type":"connection","nodeId":"copy","outputKey":"text"}}`),
		), chain("copy", "keep"), `{"name":"born","type":"string","sensitive":true}`, `,"channels":{"log":{"reducer":"append"}}`),
		with:      `"inputs":{"born":"on a monday"}`,
		variables: map[string]string{"born": `"[REDACTED]"`, "text": `"[REDACTED]"`, "log": `"[REDACTED]"`},
		want:      "copy keep",
	},
	{
		rule: "§5.9 a message that is said twice is heard once",
		doc: definition("feature-messages", node("talker", "core.identity", `{"emitDuplicateMessageId":true}`, "{}"), "", "",
			`,"channels":{"messages":{"reducer":"message"}}`),
		variables: map[string]string{"messages": `[{"messageId":"talker-1","role":"assistant","content":"once"}]`},
		want:      "talker",
	},
	{
		rule: "§10.2 listed costs are recorded; a wait without other members",
		doc: definition("feature-costs", join(node("cost", "conformance.cost.emit", `{"attrs":{"openwop.cost.usd":0.5,"openwop.cost.evil":"x"}}`, "{}"),
			node("hold", "core.conformance.hold", "{}", `{"delayMs":{"type":"static","value":20}}`), node("effect", "core.conformance.side-effect", "{}", "{}")), chain("cost", "hold", "effect"), "", ""),
		want: "log.appended@cost cost hold log.appended@effect effect",
	},
	{
		rule: "§5.7 what the host does not provide is refused before the node starts",
		doc:  definition("feature-unprovided", node("n", "conformance.requiresMissing", "{}", "{}"), "", "", ""),
		code: "capability_not_provided",
		want: "node.failed@n",
	},
	{
		rule: "RFC 0029 §B each reference of a prompt is resolved, then composed",
		doc: definition("feature-resolved", node("asks", "local.sample.demo.mock-ai",
			`{"systemPromptRef":"prompt:conformance.prompt.writer-system@1.0.0","fewShotPromptRefs":["prompt:conformance.prompt.few-shot@1.0.0"]}`, "{}"), "", "", ""),
		want: "agent.promptResolved@asks prompt.composed@asks agent.promptResolved@asks prompt.composed@asks asks",
	},
	{
		rule:      "§5.6 a secret is proven and not disclosed",
		doc:       definition("feature-secret", node("echo", "conformance.secret.echo", `{"secretId":"`+harness.CanaryID+`"}`, "{}"), "", "", ""),
		variables: map[string]string{"echo": `{"secretSha256":"5287f1b38d0ccce1205c4e85b5fed7d7f2fc27e0ff63612da89c7f4aa4da252e","secretLength":23}`},
		want:      "echo",
	},
}
