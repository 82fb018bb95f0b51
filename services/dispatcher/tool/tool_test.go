package tool_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/untrusted"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// runner returns its name.
type runner string

func (r runner) Run(context.Context, model.Task, model.Journal) model.Result {
	return model.Result{Err: &wire.NodeError{Code: string(r)}}
}

func (r runner) Check(json.RawMessage) *wire.NodeError { return node.Invalid("%s", string(r)) }

func TestMux_GivesATaskToItsRunner(t *testing.T) {
	t.Parallel()
	m := tool.Router{Runners: tool.Runners{"core.b": runner("b"), "core.a": runner("a")}, Models: runner("models")}
	for typ, want := range map[string]string{"core.a": "a", "core.b": "b", "core.ai.callPrompt": "models"} {
		require.Equal(t, want, m.Run(t.Context(), model.Task{TypeID: typ}, nil).Err.Code)
	}
	types := m.Runners.Types()
	require.Equal(t, []string{"core.a", "core.b"}, []string{types[0].ID, types[1].ID})
	require.Equal(t, node.Effect, types[0].Class)
	require.Equal(t, "a", types[0].Check(nil).Message)
	require.Empty(t, tool.Runners(nil).Types(), "without configured peers there are no types")
}

// OpenWOP host contract §5.5: the key consists of what is the same in every attempt.
func TestInvocationID_IsThatOfTheLogicalCall(t *testing.T) {
	t.Parallel()
	task := func(tenant, run, id string, attempt int) model.Task {
		return model.Task{Tenant: tenant, RunID: run, Attempt: attempt, Input: node.Input{NodeID: id}}
	}
	key := tool.InvocationID(task("t", "r", "n", 0), "mcp:s:x")
	require.Equal(t, key, tool.InvocationID(task("t", "r", "n", 7), "mcp:s:x"))
	for _, other := range []string{
		tool.InvocationID(task("u", "r", "n", 0), "mcp:s:x"), tool.InvocationID(task("t", "s", "n", 0), "mcp:s:x"),
		tool.InvocationID(task("t", "r", "m", 0), "mcp:s:x"), tool.InvocationID(task("t", "r", "n", 0), "mcp:s:y"),
	} {
		require.NotEqual(t, key, other)
	}
	// sha256 of openwop:activity:v2, t, r, n, 0 and mcp:s:x, with a zero byte between them
	require.Equal(t, "1yugY_G63tki7GFiDYgJ9SjUnpxJePpf8eGyfyX2nzc", key)
}

func TestTimeout_IsBounded(t *testing.T) {
	t.Parallel()
	require.Equal(t, time.Minute, tool.Timeout(0, time.Minute))
	require.Equal(t, time.Second, tool.Timeout(1000, time.Minute))
	require.Equal(t, tool.MaxTimeout, tool.Timeout(1<<40, time.Minute))
	require.Nil(t, tool.CheckTimeout(0))
	require.Nil(t, tool.CheckTimeout(600_000))
	require.NotNil(t, tool.CheckTimeout(600_001))
}

func TestDone_RejectsResultsThatExceedAFrame(t *testing.T) {
	t.Parallel()
	most := make(json.RawMessage, tool.MaxResultBytes)
	require.Nil(t, tool.NewSuccess(map[string]json.RawMessage{"a": most, "b": most, "c": json.RawMessage("1")}).Err, "a text in two outputs counts once")
	res := tool.NewSuccess(map[string]json.RawMessage{"a": append(slices.Clone(most), ' '), "b": json.RawMessage("1")})
	require.Equal(t, "content_too_long", res.Err.Code)
	require.Equal(t, wire.Untrusted, res.Trust)
}

func TestNormalize_KeepsValues(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		` {"b": 9007199254740993, "a":[1.50,"<"]} `: `{"a":[1.50,"<"],"b":9007199254740993}`,
		`{"a":1,"a":2}`: `{"a":2}`,
		`"\ud800"`:      `"\ufffd"`,
		`null`:          `null`,
	} {
		got, err := tool.Normalize([]byte(doc))
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
		require.NotContains(t, string(got), `\u003c`)
	}
	for _, doc := range []string{``, `{`, `{} {}`, `{"a":1}x`, strings.Repeat("[", 20_000)} {
		_, err := tool.Normalize([]byte(doc))
		require.Error(t, err, doc)
	}
}

func TestTemplate_FencesForReadersThatMayBeModels(t *testing.T) {
	t.Parallel()
	in := node.Input{
		Ports:          map[string]json.RawMessage{"p": json.RawMessage(`"a"`)},
		Variables:      map[string]json.RawMessage{"v": json.RawMessage(`{"b":1}`)},
		UntrustedPorts: map[string]bool{"p": true}, UntrustedVariables: map[string]bool{"v": true},
		Origins: map[string]untrusted.Mark{"p": {Source: "a2a", Attributes: map[string]string{"agent": "desk"}}},
	}
	text, bad := (&node.Template{In: in, Fenced: true}).Text("/x", "{{p}}{{ v }}")
	require.Nil(t, bad)
	require.Equal(t, "<UNTRUSTED source=\"a2a\" type=\"input\" agent=\"desk\" name=\"p\">\na\n</UNTRUSTED>"+
		"<UNTRUSTED source=\"run-event\" type=\"variable\" name=\"v\">\n{\n  \"b\": 1\n}\n</UNTRUSTED>", text)
	text, _ = (&node.Template{In: in}).Text("/x", "{{p}}{{v}}")
	require.Equal(t, `a{"b":1}`, text)
}

// A document without placeholders is unchanged, and an inserted value stays a value.
func TestTemplate_ChangesNothingElse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.String().Draw(t, "value")
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		in := node.Input{Ports: map[string]json.RawMessage{"p": raw}}
		doc, bad := (&node.Template{In: in}).JSON("", json.RawMessage(`{"whole":"{{p}}","part":"<{{p}}>","list":[1e400,"}}"],"{{p}}":null}`))
		if bad != nil {
			t.Fatal(bad.Message)
		}
		var got map[string]json.RawMessage
		var whole, part string
		if json.Unmarshal(doc, &got) != nil || json.Unmarshal(got["whole"], &whole) != nil || json.Unmarshal(got["part"], &part) != nil {
			t.Fatalf("not JSON: %s", doc)
		}
		var want string
		_ = json.Unmarshal(raw, &want)
		if whole != want || part != "<"+want+">" || string(got["list"]) != `[1e400,"}}"]` || string(got["{{p}}"]) != "null" {
			t.Fatalf("got %s", doc)
		}
	})
}
