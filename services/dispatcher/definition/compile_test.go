package definition_test

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/expr"
)

func object(t testing.TB, doc string) map[string]json.RawMessage {
	t.Helper()
	var o map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(doc), &o))
	return o
}

func condition(t testing.TB, doc string) *definition.Condition {
	t.Helper()
	c, found := workflow.ReadCondition([]byte(doc))
	require.Empty(t, found)
	out, err := definition.CompileCondition(c, expr.Condition, "outputs")
	require.NoError(t, err)
	return out
}

// The semantics of conditions, OpenWOP host contract §5.2.
func TestCondition_Holds(t *testing.T) {
	t.Parallel()
	outputs := object(t, `{"output":{"n":1.0,"list":["a",{"b":2}],"text":"hello world","deep":{"x":[{"y":null}]},"yes":true},"result":true,"score":7}`)
	variables := object(t, `{"limit":5}`)
	for doc, want := range map[string]bool{
		`{}`: true,
		`{"expression":"outputs.score > variables.limit"}`:                  true,
		`{"type":"expression","expression":"outputs.output.n == 1"}`:        true,
		`{"type":"equals","left":"output.n","right":1}`:                     true,
		`{"type":"equals","left":"output.n","right":1e0}`:                   true,
		`{"type":"equals","left":"output.n","right":"1"}`:                   false,
		`{"type":"equals","left":"result","right":true}`:                    true,
		`{"type":"equals","left":"output.result","right":true}`:             true, // no such member of port output: the leading part is tolerated
		`{"type":"equals","left":"output.deep","right":{"x":[{"y":null}]}}`: true,
		`{"type":"equals","left":"output.deep.x.0.y","right":null}`:         true,
		`{"type":"equals","left":"output.deep.x.1.y","right":null}`:         false,
		`{"type":"equals","left":"nowhere","right":null}`:                   false,
		`{"type":"notEquals","left":"output.n","right":1}`:                  false,
		`{"type":"notEquals","left":"nowhere","right":1}`:                   true,
		`{"type":"contains","left":"output.text","right":"lo wo"}`:          true,
		`{"type":"contains","left":"output.text","right":"nope"}`:           false,
		`{"type":"contains","left":"output.text","right":1}`:                false,
		`{"type":"contains","left":"output.list","right":{"b":2.0}}`:        true,
		`{"type":"contains","left":"output.list","right":"b"}`:              false,
		`{"type":"contains","left":"score","right":7}`:                      false,
		`{"type":"regex","left":"output.text","right":"^hello\\s\\w+$"}`:    true,
		`{"type":"regex","left":"output.text","right":"^world"}`:            false,
		`{"type":"regex","left":"score","right":"7"}`:                       false,
		`{"type":"regex","left":"nowhere","right":".*"}`:                    false,
	} {
		t.Run(doc, func(t *testing.T) {
			t.Parallel()
			holds, err := condition(t, doc).Holds(outputs, variables)
			require.NoError(t, err)
			require.Equal(t, want, holds)
		})
	}
}

func TestCondition_FailsWithoutRepeatingAValue(t *testing.T) {
	t.Parallel()
	outputs := object(t, `{"secret":"hunter2hunter2","long":"`+strings.Repeat("x", 2_000_000)+`"}`)
	for doc, want := range map[string]string{
		`{"expression":"outputs.nope"}`:                        "no member of that name",
		`{"expression":"outputs.secret"}`:                      "gave a string, want true or false",
		`{"expression":"int(outputs.secret) > 1"}`:             "cannot be converted",
		`{"type":"regex","left":"long","right":"(a|b){40}"}`:   "too long for the pattern",
		`{"expression":"outputs.long.matches(\"(a|b){40}\")"}`: "exceeds the limit",
	} {
		_, err := condition(t, doc).Holds(outputs, nil)
		require.ErrorContains(t, err, want, doc)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

// Numbers are equal by value, however they are written.
func TestEquals_ComparesNumbersByValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Filter(func(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }).Draw(t, "f")
		form := rapid.SampledFrom([]byte{'e', 'E', 'f', 'g'}).Draw(t, "form")
		a, b := strconv.FormatFloat(f, form, -1, 64), strconv.FormatFloat(f, 'f', -1, 64)
		c, err := definition.CompileCondition(&workflow.EdgeCondition{
			Type:  workflow.ConditionEquals,
			Left:  "v",
			Right: json.RawMessage(a),
		}, expr.Condition, "outputs")
		require.NoError(t, err)
		holds, err := c.Holds(map[string]json.RawMessage{"v": json.RawMessage(b)}, nil)
		require.NoError(t, err)
		require.True(t, holds, "%s == %s", a, b)
	})
	for pair, want := range map[[2]string]bool{
		{"1", "1.0"}: true, {"100", "1e2"}: true, {"0", "-0.0"}: true, {"0.1", "1E-1"}: true, {"-1", "1"}: false,
		{"12345678901234567890", "12345678901234567891"}: false, {"1e999999999999999999", "1e999999999999999998"}: false,
		{"1e1000000000", "10e999999999"}: true, {"0.10", "0.1"}: true, {"10", "1"}: false,
	} {
		c, err := definition.CompileCondition(&workflow.EdgeCondition{
			Type:  workflow.ConditionEquals,
			Left:  "v",
			Right: json.RawMessage(pair[0]),
		}, expr.Condition, "outputs")
		require.NoError(t, err)
		holds, err := c.Holds(map[string]json.RawMessage{"v": json.RawMessage(pair[1])}, nil)
		require.NoError(t, err)
		require.Equal(t, want, holds, "%v", pair)
	}
}

func TestCompile_FindsWhatCannotBeUsedAndWhere(t *testing.T) {
	t.Parallel()
	def, problems := workflow.Parse([]byte(`{"id":"wf","name":"wf","version":"1","triggers":[],"variables":[],"metadata":{},"settings":{},
		"nodes":[{"id":"a","typeId":"core.noop","name":"a","position":{"x":0,"y":0},"config":{},"inputs":{}},
		         {"id":"b","typeId":"core.noop","name":"b","position":{"x":0,"y":0},"config":{},"inputs":{"p/q":{"type":"expression","expression":"inputs."}}}],
		"edges":[{"id":"e1","sourceNodeId":"a","targetNodeId":"b","condition":{"expression":"output > 1"}},
		         {"id":"e2","sourceNodeId":"a","targetNodeId":"b","condition":{"type":"regex","left":"x","right":"(a{1000}b{1000})"}}]}`))
	require.Empty(t, problems)
	f, found := definition.Compile(def)
	require.Len(t, found, 3)
	require.Equal(t, "/edges/0/condition/expression", found[0].Path)
	require.Equal(t, definition.RuleExpression, found[0].Rule)
	require.Contains(t, found[0].Message, "an expression here sees outputs, variables")
	require.Equal(t, "/edges/1/condition/right", found[1].Path)
	require.Equal(t, definition.RuleRegex, found[1].Rule)
	require.Equal(t, "/nodes/1/inputs/p~1q/expression", found[2].Path)
	_, err := f.Condition("e1").Holds(nil, nil)
	require.Error(t, err, "one that cannot be used can only fail")
	_, err = f.Port("b", "p/q")
	require.Error(t, err)
	require.Nil(t, f.Condition("none"))
}

// A definition's expressions are compiled once for all its runs.
func TestExpression_IsCompiledOnceForADefinition(t *testing.T) {
	t.Parallel()
	f, _ := definition.Compile(&workflow.Definition{})
	one, err := f.Expression(expr.Node, "inputs.a == 1", true)
	require.NoError(t, err)
	two, err := f.Expression(expr.Node, "inputs.a == 1", true)
	require.NoError(t, err)
	require.Same(t, one, two)
}
