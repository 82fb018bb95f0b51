package model_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// kindList has kinds of several forms.
type kindList map[string]string

func (c kindList) Kind(_ context.Context, name string) (model.Kind, bool, error) {
	source, ok := c[name]
	return model.Kind{Name: name, Version: 1, Schema: json.RawMessage(source)}, ok, nil
}

func (kindList) Limits(context.Context) (model.Limits, error) {
	return model.Limits{EnvelopesPerTurn: 5, SchemaRounds: 2, ClarificationRounds: 3}, nil
}

var kindsOfForms = kindList{
	"vendor.x.task":  `{"type":"object","additionalProperties":false,"required":["title"],"properties":{"title":{"type":"string"}}}`,
	"vendor.x.other": `{"type":"object","required":["v"],"properties":{"v":{"type":"integer"}}}`,
	"vendor.x.order": `{"type":"object","additionalProperties":false,"required":["type","payload"],
		"properties":{"type":{"enum":["created"]},"payload":{"type":"object","required":["id"]}}}`,
	"vendor.x.any":   `{"type":"object","required":["type","payload"],"properties":{"type":{"type":"string"},"payload":{"type":"object"}}}`,
	"vendor.x.level": `{"enum":["low","high"]}`,
	"vendor.x.count": `{"type":"integer"}`,
	"vendor.x.pairs": `{"type":"array","items":{"type":"object","required":["type","payload"],"properties":{"type":{"enum":["a"]}}}}`,
	"vendor.x.list":  `{"type":"array","items":{"type":"string"}}`,
	"vendor.x.open":  `{"type":"object"}`,
	"vendor.x.free":  `{}`,
	"vendor.x.nest":  `{"type":"object","required":["envelopes"],"properties":{"envelopes":{"type":"array","items":{"type":"integer"}}}}`,
	"error":          `{"type":"object"}`,
	"clarification.request": `{"type":"object","required":["questions"],
		"properties":{"questions":{"type":"array"}}}`,
	"schema.request": `{"type":"object"}`,
}

// accepted is an envelope as the pipeline got it.
type accepted struct {
	Type    string
	Payload json.RawMessage
	Meta    map[string]json.RawMessage
}

// answerKind runs a node that asks for a kind; its model gives these answers.
func answerKind(t *testing.T, config string, answers ...string) (rig, []accepted) {
	t.Helper()
	var script []mock.Entry
	for _, text := range answers {
		script = append(script, mock.Entry{Content: text})
	}
	scripts := newScripts()
	p := &spy{Provider: mock.New(scripts)}
	require.NoError(t, scripts.Program(t.Context(), "acme", "n", script))
	reg, err := provider.NewRegistry(p)
	require.NoError(t, err)
	loop := model.New(model.Config{
		MaxAttempts: 3, Multiplier: 2, Timeout: 5 * time.Second,
		Defaults: model.Defaults{Provider: "mock", Model: "m", MaxTokens: 100},
	}, model.Deps{Models: reg, Schemas: kindsOfForms, Clock: func() time.Time { return time.Unix(1_700_000_000, 0) }})
	var seen []accepted
	j := &journal{accept: func(req model.AcceptRequest) (model.Outcome, error) {
		var e accepted
		require.NoError(t, json.Unmarshal(req.Envelope, &e))
		seen = append(seen, e)
		return acceptAll(req)
	}}
	res := loop.Run(t.Context(), model.Task{
		Tenant: "acme", RunID: "run_1", TypeID: node.TypeCallPrompt,
		Input: node.Input{NodeID: "n", Config: json.RawMessage(config), Ports: map[string]json.RawMessage{}},
	}, j)
	require.NoError(t, res.Interrupted)
	return rig{journal: j, spy: p, result: res}, seen
}

// What the node asks for decides whether an answer is an envelope or a payload, then the schema does
// (RFC 0031 §A, OpenWOP envelope contract §2.2).
func TestChoose_WhatWasAskedForDecides(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind, answer string
		want         []string // type and payload of each envelope
	}{
		"a payload":                              {"vendor.x.task", `{"title":"a"}`, []string{"vendor.x.task", `{"title":"a"}`}},
		"an envelope":                            {"vendor.x.task", `{"type":"vendor.x.task","payload":{"title":"a"}}`, []string{"vendor.x.task", `{"title":"a"}`}},
		"an error":                               {"vendor.x.task", `{"type":"error","payload":{"code":"c"}}`, []string{"error", `{"code":"c"}`}},
		"a payload with type and payload":        {"vendor.x.order", `{"type":"created","payload":{"id":"7"}}`, []string{"vendor.x.order", `{"type":"created","payload":{"id":"7"}}`}},
		"such a payload in its envelope":         {"vendor.x.order", `{"type":"vendor.x.order","payload":{"type":"created","payload":{"id":"7"}}}`, []string{"vendor.x.order", `{"type":"created","payload":{"id":"7"}}`}},
		"an error beside such a kind":            {"vendor.x.order", `{"type":"error","payload":{"code":"c"}}`, []string{"error", `{"code":"c"}`}},
		"a payload like an error":                {"vendor.x.any", `{"type":"error","payload":{"code":"E1","message":"disk full"}}`, []string{"vendor.x.any", `{"type":"error","payload":{"code":"E1","message":"disk full"}}`}},
		"an open kind":                           {"vendor.x.open", `{"type":"created","payload":{"id":"7"}}`, []string{"vendor.x.open", `{"type":"created","payload":{"id":"7"}}`}},
		"an open kind, like an error":            {"vendor.x.open", `{"type":"error","payload":{"code":"E1","message":"disk full"}}`, []string{"vendor.x.open", `{"type":"error","payload":{"code":"E1","message":"disk full"}}`}},
		"an open kind, like a foreign kind":      {"vendor.x.open", `{"type":"vendor.x.task","payload":{"title":"a"}}`, []string{"vendor.x.open", `{"type":"vendor.x.task","payload":{"title":"a"}}`}},
		"an open kind in its envelope":           {"vendor.x.open", `{"type":"vendor.x.open","payload":{"id":"7"}}`, []string{"vendor.x.open", `{"id":"7"}`}},
		"its envelope with meta":                 {"vendor.x.open", `{"type":"vendor.x.open","payload":{},"meta":{"label":"l"}}`, []string{"vendor.x.open", `{}`}},
		"more members than an envelope has":      {"vendor.x.open", `{"type":"vendor.x.open","payload":{},"id":7}`, []string{"vendor.x.open", `{"type":"vendor.x.open","payload":{},"id":7}`}},
		"a question and an open kind":            {"vendor.x.open", `{"type":"clarification.request","payload":{"questions":[{"id":"q"}]}}`, []string{"clarification.request", `{"questions":[{"id":"q"}]}`}},
		"an open kind, like a bad question":      {"vendor.x.open", `{"type":"clarification.request","payload":{"q":1}}`, []string{"vendor.x.open", `{"type":"clarification.request","payload":{"q":1}}`}},
		"a kind without a schema":                {"vendor.x.free", `{"type":"x","payload":null}`, []string{"vendor.x.free", `{"type":"x","payload":null}`}},
		"a list of a kind without a schema":      {"vendor.x.free", `[{"type":"x","payload":null}]`, []string{"vendor.x.free", `[{"type":"x","payload":null}]`}},
		"a payload that names its own kind":      {"vendor.x.any", `{"type":"vendor.x.any","payload":{"type":"a","payload":{}}}`, []string{"vendor.x.any", `{"type":"vendor.x.any","payload":{"type":"a","payload":{}}}`}},
		"a payload with a member envelopes":      {"vendor.x.nest", `{"envelopes":[1,2]}`, []string{"vendor.x.nest", `{"envelopes":[1,2]}`}},
		"an unknown type with the payload":       {"vendor.x.task", `{"type":"info","payload":"x"}` + "\n" + `{"title":"a"}`, []string{"vendor.x.task", `{"title":"a"}`}},
		"an error amid prose":                    {"vendor.x.task", `Not {"type":"error","payload":{}} but:` + "\n" + `{"title":"a"}`, []string{"vendor.x.task", `{"title":"a"}`}},
		"a text":                                 {"vendor.x.level", `"high"`, []string{"vendor.x.level", `"high"`}},
		"a fenced text":                          {"vendor.x.level", "```json\n\"high\"\n```", []string{"vendor.x.level", `"high"`}},
		"a number":                               {"vendor.x.count", `42`, []string{"vendor.x.count", `42`}},
		"a list":                                 {"vendor.x.list", `["a","b"]`, []string{"vendor.x.list", `["a","b"]`}},
		"an empty list":                          {"vendor.x.list", `[]`, []string{"vendor.x.list", `[]`}},
		"a list whose items look like envelopes": {"vendor.x.pairs", `[{"type":"a","payload":1}]`, []string{"vendor.x.pairs", `[{"type":"a","payload":1}]`}},
		"several envelopes":                      {"vendor.x.task", `[{"type":"vendor.x.task","payload":{"title":"a"}},{"type":"error","payload":{}}]`, []string{"vendor.x.task", `{"title":"a"}`, "error", `{}`}},
		"a remark beside an envelope":            {"vendor.x.task", "As of [1]: {\"type\":\"vendor.x.task\",\"payload\":{\"title\":\"a\"}}", []string{"vendor.x.task", `{"title":"a"}`}},
		"a draft, then the payload":              {"vendor.x.task", `{"title":"draft"} no: {"title":"a"}`, []string{"vendor.x.task", `{"title":"a"}`}},
		"another object, then the payload":       {"vendor.x.task", `{"note":"x"} {"title":"a"}`, []string{"vendor.x.task", `{"title":"a"}`}},
		"the payload, then another object":       {"vendor.x.task", `{"title":"a"} {"note":"x"}`, []string{"vendor.x.task", `{"title":"a"}`}},
		"a payload as JSON text":                 {"vendor.x.task", `"{\"title\":\"a\"}"`, []string{"vendor.x.task", `{"title":"a"}`}},
		"a payload amid prose alone":             {"vendor.x.task", `I say {"title":"a"} to that`, []string{"vendor.x.task", `{"title":"a"}`}},
		"an envelope as JSON text":               {"vendor.x.task", `"{\"type\":\"error\",\"payload\":{}}"`, []string{"error", `{}`}},
		"a payload within an envelope as text":   {"vendor.x.task", `{"type":"vendor.x.task","payload":"{\"title\":\"a\"}"}`, []string{"vendor.x.task", `{"title":"a"}`}},
		"a text that is JSON and wanted as text": {"vendor.x.list", `["{\"title\":\"a\"}"]`, []string{"vendor.x.list", `["{\"title\":\"a\"}"]`}},
		"a payload under the name of its kind":   {"vendor.x.task", `{"vendor.x.task":{"title":"a"}}`, []string{"vendor.x.task", `{"title":"a"}`}},
		"a wrapped text":                         {"vendor.x.level", `{"value":"high"}`, []string{"vendor.x.level", `"high"`}},
		"a wrapped list":                         {"vendor.x.list", `{"value":["a"]}`, []string{"vendor.x.list", `["a"]`}},
		"a list of one payload":                  {"vendor.x.task", `[{"title":"a"}]`, []string{"vendor.x.task", `{"title":"a"}`}},
		"a payload under the end of the name":    {"vendor.x.task", `{"Task":{"title":"a"}}`, []string{"vendor.x.task", `{"title":"a"}`}},
		"a wrapped payload":                      {"vendor.x.task", `{"result":{"title":"a"}}`, []string{"vendor.x.task", `{"title":"a"}`}},
		"a call with the payload":                {"vendor.x.task", `{"name":"vendor.x.task","arguments":{"title":"a"}}`, []string{"vendor.x.task", `{"title":"a"}`}},
		"a wrapped envelope":                     {"vendor.x.task", `{"result":{"type":"error","payload":{"code":"c"}}}`, []string{"error", `{"code":"c"}`}},
		"a wrapped envelope of another kind":     {"vendor.x.open", `[{"type":"error","payload":{"code":"c"}}]`, []string{"error", `{"code":"c"}`}},
		"a payload without its type":             {"vendor.x.task", `{"payload":{"title":"a"}}`, []string{"vendor.x.task", `{"title":"a"}`}},
		"a list of one such payload":             {"vendor.x.order", `[{"type":"created","payload":{"id":"7"}}]`, []string{"vendor.x.order", `{"type":"created","payload":{"id":"7"}}`}},
		"an open kind with a member result":      {"vendor.x.open", `{"result":{}}`, []string{"vendor.x.open", `{"result":{}}`}},
		"a list under a general name":            {"vendor.x.list", `{"items":["a"]}`, []string{"vendor.x.list", `["a"]`}},
		"a list as text":                         {"vendor.x.list", `{"items":"[\"a\"]"}`, []string{"vendor.x.list", `["a"]`}},
		"a list of one list":                     {"vendor.x.list", `[["a"]]`, []string{"vendor.x.list", `["a"]`}},
		"a text in a call":                       {"vendor.x.level", `{"type":"function","name":"answer","arguments":{"value":"high"}}`, []string{"vendor.x.level", `"high"`}},
		"a number in a list":                     {"vendor.x.count", `[42]`, []string{"vendor.x.count", `42`}},
		"an open kind with a member value":       {"vendor.x.open", `{"value":{}}`, []string{"vendor.x.open", `{"value":{}}`}},
		"a payload, then a question after prose": {"vendor.x.task", `{"title":"a"}` + "\n" + `{"type":"error","payload":{}}`, []string{"vendor.x.task", `{"title":"a"}`, "error", `{}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, seen := answerKind(t, `{"envelopeType":"`+tc.kind+`","expectsStreaming":false}`, tc.answer)
			require.Nil(t, r.result.Err)
			var got []string
			for _, e := range seen {
				got = append(got, e.Type, string(e.Payload))
			}
			require.Equal(t, tc.want, got)
			require.Len(t, r.spy.reqs, 1)
		})
	}
}

// A list of envelopes that was asked for is also read without the list, as text, or under another name.
func TestChoose_ReadsListsOfEnvelopes(t *testing.T) {
	t.Parallel()
	const one = `{"type":"vendor.x.task","payload":{"title":"a"}}`
	for _, answer := range []string{
		`{"envelopes":[` + one + `]}`, `{"envelopes":` + one + `}`, `{"envelope":` + one + `}`, `{"envelope":[` + one + `]}`,
		`{"envelopes":"[{\"type\":\"vendor.x.task\",\"payload\":{\"title\":\"a\"}}]"}`, one, `[` + one + `]`, `{"title":"a"}`,
		`{"envelopes":[{"title":"a"}]}`, `{"envelopes":[{"type":"vendor.x.task","payload":"{\"title\":\"a\"}"}]}`,
		`[{"envelopes":[` + one + `]}]`, `{"result":{"envelopes":[` + one + `]}}`, `{"name":"answer","arguments":{"envelopes":[` + one + `]}}`,
		`{"result":` + one + `}`, `{"result":{"title":"a"}}`, `[{"title":"a"}]`,
	} {
		r, seen := answerKind(t, `{"envelopeType":"vendor.x.task","turn":"envelopes","expectsStreaming":false}`, answer)
		require.Nil(t, r.result.Err, answer)
		require.Len(t, r.spy.reqs, 1, answer)
		require.Len(t, seen, 1, answer)
		require.Equal(t, "vendor.x.task", seen[0].Type)
		require.JSONEq(t, `{"title":"a"}`, string(seen[0].Payload), answer)
	}
}

// A value under the name of its schema, or in another wrapper, is the output, and the log has how it was found.
// Nothing is asked for again.
func TestChoose_TakesTheWrapperOffAValue(t *testing.T) {
	t.Parallel()
	const config = `{"outputSchema":{"title":"DinnerPlan","type":"object","additionalProperties":false,"required":["dish"],"properties":{
		"dish":{"type":"string"},"steps":{"type":"array","items":{"type":"string"}}}}}`
	for answer, want := range map[string]string{
		`{"dinner_plan":{"dish":"soup"}}`:                                     `{"dish":"soup"}`,
		`{"DinnerPlan":{"dish":"soup"}}`:                                      `{"dish":"soup"}`,
		`{"name":"dinner_plan","arguments":"{\"dish\":\"soup\"}"}`:            `{"dish":"soup"}`,
		`[{"dish":"soup"}]`:                                                   `{"dish":"soup"}`,
		`{"dish":"soup","steps":"[\"boil\"]"}`:                                `{"dish":"soup","steps":["boil"]}`,
		"```json\n" + `{"dinner-plan":{"dish":"[1]","steps":null}}` + "\n```": `{"dish":"[1]"}`,
	} {
		r := execute(t, node.TypeStructuredOutput, config, acceptAll, mock.Entry{Content: answer})
		require.Nil(t, r.result.Err, answer)
		require.Len(t, r.spy.reqs, 1, answer)
		require.JSONEq(t, want, string(r.result.Output.Ports["output"]), answer)
		require.Contains(t, r.payload(t, wire.EventEnvelopeRecovery), `"path":"custom"`, answer)
	}
	for _, answer := range []string{`{"lunch":{"dish":"soup"}}`, `[{"dish":"soup"},{"dish":"salad"}]`, `{"dish":"soup","steps":"boil"}`} {
		r := execute(t, node.TypeStructuredOutput, config, acceptAll, mock.Entry{Content: answer}, mock.Entry{Content: `{"dish":"rice"}`})
		require.Nil(t, r.result.Err, answer)
		require.JSONEq(t, `{"dish":"rice"}`, string(r.result.Output.Ports["output"]), answer)
	}
}

// Without a contract a node accepts the kind that it asks for and the universal ones. Any other answer
// is asked for again, and nothing of it is recorded.
func TestChoose_AnotherKindIsAskedForAgain(t *testing.T) {
	t.Parallel()
	const other = `{"type":"vendor.x.other","payload":{"v":1}}`
	for _, answer := range []string{other, `[{"type":"vendor.x.task","payload":{"title":"a"}},` + other + `]`} {
		r, seen := answerKind(t, `{"envelopeType":"vendor.x.task","expectsStreaming":false}`, answer, `{"title":"b"}`)
		require.Nil(t, r.result.Err)
		require.Len(t, seen, 1, "nothing of the first answer")
		require.JSONEq(t, `{"nodeId":"n","attempt":2,"reason":"type-drift",
			"previousError":"it is an envelope of type vendor.x.other; want vendor.x.task"}`, r.payload(t, wire.EventEnvelopeRetryAttempted))
	}
	r, seen := answerKind(t, `{"envelopeType":"vendor.x.task","expectsStreaming":false,"envelopeContract":{"accepts":["vendor.x.task","vendor.x.other"]}}`, other)
	require.Nil(t, r.result.Err, "its contract accepts it")
	require.Len(t, seen, 1)
}

// Bad hints are dropped and noted; they never make an envelope invalid (OpenWOP envelope contract §13).
func TestHints_NeverKill(t *testing.T) {
	t.Parallel()
	for meta, want := range map[string]struct{ kept, noted string }{
		`{"rendering":{"display":"card","title":"a"}}`:     {`{"display":"card","title":"a"}`, ``},
		`{"rendering":{"display":"hologram","title":"a"}}`: {`{"title":"a"}`, `["/meta/rendering/display"]`},
		`{"rendering":{"display":7}}`:                      {``, `["/meta/rendering/display"]`},
		`{"rendering":{"colour":"red"}}`:                   {``, `["/meta/rendering/*"]`},
		`{"rendering":{"display":"code","lang":null}}`:     {`{"display":"code"}`, ``},
		`{"rendering":"card"}`:                             {``, `["/meta/rendering"]`},
		`{"rendering":null,"label":null}`:                  {``, ``},
		`{"label":7}`:                                      {``, `["/meta/label"]`},
		`{"acme":{"k":1},"confidence":0.5}`:                {``, `["/meta/*"]`},
		`"card"`:                                           {``, `["/meta"]`},
		`null`:                                             {``, ``},
		`{"source":"user","contentTrust":"trusted","ts":5,"traceparent":"x"}`: {``, ``},
	} {
		r, seen := answerKind(t, `{"envelopeType":"vendor.x.task","expectsStreaming":false}`,
			`{"type":"vendor.x.task","payload":{"title":"a"},"meta":`+meta+`}`)
		require.Nil(t, r.result.Err, meta)
		require.Len(t, r.spy.reqs, 1, meta)
		require.Equal(t, want.kept, string(seen[0].Meta["rendering"]), meta)
		require.Equal(t, `"ai-generation"`, string(seen[0].Meta["source"]))
		if want.noted == "" {
			require.NotContains(t, r.names(), "log.appended", meta)
			continue
		}
		require.Contains(t, r.payload(t, wire.EventLogAppended), `"fields":{"paths":`+want.noted+`}`, meta)
	}
}

// The limits of questions and schema rounds count within the turn (OpenWOP envelope contract §8).
func TestTurn_CountsWithinTheTurn(t *testing.T) {
	t.Parallel()
	for kind, count := range map[string]func(model.AcceptRequest) int{
		"clarification.request": func(r model.AcceptRequest) int { return r.Clarifications },
		"schema.request":        func(r model.AcceptRequest) int { return r.SchemaRounds },
	} {
		one := `{"type":"` + kind + `","payload":{"questions":[],"envelopeType":"vendor.x.ticket"}}`
		var counts []int
		execute(t, node.TypeCallPrompt, `{"envelopeType":"vendor.x.ticket","expectsStreaming":false}`,
			func(r model.AcceptRequest) (model.Outcome, error) {
				counts = append(counts, count(r))
				return acceptAll(r)
			}, mock.Entry{Content: "[" + one + "," + one + "," + one + "]"})
		require.GreaterOrEqual(t, len(counts), 3)
		require.Equal(t, []int{0, 1, 2}, counts[:3], kind)
	}
}

// A model that is asked for a list of envelopes gives drafts before it, and a node with a contract alone
// does not take broken JSON as text.
func TestTurn_TheLastListIsTheAnswer(t *testing.T) {
	t.Parallel()
	const config = `{"envelopeType":"vendor.x.task","turn":"envelopes","expectsStreaming":false}`
	list := func(title string) string {
		return `{"envelopes":[{"type":"vendor.x.task","payload":{"title":"` + title + `"}}]}`
	}
	for _, answer := range []string{list("a"), list("draft") + " On reflection: " + list("a"), "```json\n" + list("draft") + "\n```\n```json\n" + list("a") + "\n```"} {
		r, seen := answerKind(t, config, answer)
		require.Nil(t, r.result.Err)
		require.Len(t, seen, 1, answer)
		require.JSONEq(t, `{"title":"a"}`, string(seen[0].Payload))
	}
	for _, answer := range []string{`{"envelopes":[`, `{"envelopes":[]}`, "<think>hm</think>"} {
		r, _ := answerKind(t, `{"envelopeContract":{"accepts":["vendor.x.task"]},"expectsStreaming":false}`, answer, list("a"))
		require.Nil(t, r.result.Err)
		require.Len(t, r.spy.reqs, 2, answer)
	}
}

// A model that was asked for a list gets its items read as envelopes, whatever their payloads look like.
func TestTurn_ReadsTheItemsOfAListAsEnvelopes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind, answer string
		want         []string
	}{
		"of a kind with type and payload": {"vendor.x.any", `{"envelopes":[{"type":"vendor.x.any","payload":{"type":"a","payload":{}}}]}`, []string{"vendor.x.any", `{"type":"a","payload":{}}`}},
		"of an open kind, an error":       {"vendor.x.open", `{"envelopes":[{"type":"error","payload":{"code":"c"}}]}`, []string{"error", `{"code":"c"}`}},
		"several":                         {"vendor.x.open", `{"envelopes":[{"type":"vendor.x.open","payload":{}},{"type":"vendor.x.open","payload":{"n":2}}]}`, []string{"vendor.x.open", `{}`, "vendor.x.open", `{"n":2}`}},
		"a bare payload":                  {"vendor.x.task", `{"title":"a"}`, []string{"vendor.x.task", `{"title":"a"}`}},
		"a bare envelope":                 {"vendor.x.task", `{"type":"error","payload":{}}`, []string{"error", `{}`}},
		"bare payloads in the list":       {"vendor.x.task", `{"envelopes":[{"title":"a"},{"title":"b"}]}`, []string{"vendor.x.task", `{"title":"a"}`, "vendor.x.task", `{"title":"b"}`}},
		"a payload with that member":      {"vendor.x.nest", `{"envelopes":[1,2]}`, []string{"vendor.x.nest", `{"envelopes":[1,2]}`}},
		"a bad list, then a good one":     {"vendor.x.task", `{"envelopes":[{"type":"vendor.x.task","payload":{"title":"a"}}]}` + "\n" + `{"envelopes":[{"type":"x","payload":{}}]}`, []string{"vendor.x.task", `{"title":"a"}`}},
		"a list amid prose":               {"vendor.x.task", `{"envelopes":[{"type":"vendor.x.task","payload":{"title":"a"}}]}` + "\nNot " + `{"envelopes":[{"type":"vendor.x.task","payload":{"title":"b"}}]} as before`, []string{"vendor.x.task", `{"title":"a"}`}},
	} {
		r, seen := answerKind(t, `{"envelopeType":"`+tc.kind+`","turn":"envelopes","expectsStreaming":false}`, tc.answer)
		require.Nil(t, r.result.Err, name)
		var got []string
		for _, e := range seen {
			got = append(got, e.Type, string(e.Payload))
		}
		require.Equal(t, tc.want, got, name)
		require.Len(t, r.spy.reqs, 1, name)
	}
}

// An error of the model has its own port, and the port of the payload is null.
func TestOutput_AnErrorIsNotThePayload(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"type":"error","payload":{"code":"c"}}`:                                                    `{"output":null,"error":{"code":"c"}}`,
		`[{"type":"error","payload":{"code":"c"}},{"type":"vendor.x.task","payload":{"title":"a"}}]`: `{"output":{"title":"a"},"error":{"code":"c"}}`,
		`{"title":"a"}`: `{"output":{"title":"a"}}`,
	} {
		r, _ := answerKind(t, `{"envelopeType":"vendor.x.task","expectsStreaming":false}`, answer)
		require.Nil(t, r.result.Err)
		ports := map[string]json.RawMessage{}
		for name, raw := range r.result.Output.Ports {
			if name != "envelopes" {
				ports[name] = raw
			}
		}
		got, err := json.Marshal(ports)
		require.NoError(t, err)
		require.JSONEq(t, want, string(got), answer)
	}
}

// The choice of turn auto is recorded at the end of the node; a form that the node names is not.
func TestTurn_RecordsTheChoice(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{"envelopeType":"vendor.x.task","expectsStreaming":false}`:                    "payload",
		`{"envelopeType":"vendor.x.task","turn":"auto","expectsStreaming":false}`:      "payload",
		`{"envelopeType":"vendor.x.task","turn":"payload","expectsStreaming":false}`:   "",
		`{"envelopeType":"vendor.x.task","turn":"envelopes","expectsStreaming":false}`: "",
		`{"envelopeContract":{"accepts":["vendor.x.task"]},"expectsStreaming":false}`:  "",
		`{"expectsStreaming":false}`: "",
	} {
		r, _ := answerKind(t, config, "no", `{"type":"vendor.x.task","payload":{"title":"a"}}`)
		require.Nil(t, r.result.Err)
		require.Equal(t, want, r.result.Output.Turn, config)
	}
	r, _ := answerKind(t, `{"envelopeType":"vendor.x.task","expectsStreaming":false}`, "{", "{", "{")
	require.Equal(t, "payload", r.result.Err.Turn)
}
