package expr_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/expr"
)

func object(t testing.TB, doc string) expr.Object {
	t.Helper()
	var o expr.Object
	require.NoError(t, json.Unmarshal([]byte(doc), &o))
	return o
}

// sample are the values of the tests.
func sample(t testing.TB, p *expr.Program) *expr.Values {
	t.Helper()
	return expr.NewValues(map[string]expr.Object{
		"inputs":    object(t, `{"input":{"score":0.9,"n":3,"big":9007199254740993,"name":"Ada","tags":["a","b"],"none":null,"one":1.0}}`),
		"variables": object(t, `{"limit":5,"list":[3,1,2],"map":{"z":1,"a":2,"m":3},"secret":"hunter2hunter2"}`),
	}, map[string]expr.Object{"fetch": object(t, `{"output":{"ok":true}}`)}, p)
}

func TestEval_GivesJSON(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`1 + 2`:                                               `3`,
		`inputs.input.score > 0.5`:                            `true`,
		`inputs.input.n * 2`:                                  `6`,
		`inputs.input.big`:                                    `9007199254740993`,
		`inputs.input.one == 1`:                               `true`,
		`inputs.input.n > 2.5`:                                `true`,
		`inputs.input.name + "!"`:                             `"Ada!"`,
		`"<b>" + "&"`:                                         `"<b>&"`,
		`inputs.input.none`:                                   `null`,
		`"a" in inputs.input.tags`:                            `true`,
		`size(variables.list)`:                                `3`,
		`variables.list.map(x, x * x)`:                        `[9,1,4]`,
		`variables.list.filter(x, x>1)`:                       `[3,2]`,
		`variables.map.map(k, k)`:                             `["a","m","z"]`,
		`{"b": 1, "a": [inputs.input.n]}`:                     `{"a":[3],"b":1}`,
		`{"b": 1, "a": 2}.map(k, k)`:                          `["a","b"]`,
		`has(inputs.input.nope) ? 1 : 2`:                      `2`,
		`variables[?"nope"].orValue("d")`:                     `"d"`,
		`inputs.input.?nope.orValue([])`:                      `[]`,
		`nodes.fetch.output.ok`:                               `true`,
		`nodes["fetch"].output == {"ok": true}`:               `true`,
		`inputs.input.name.matches("^A[a-z]+$")`:              `true`,
		`inputs.input.name.startsWith("A") || 1/0>0`:          `true`,
		`timestamp("2026-05-01T12:00:00Z") + duration("60s")`: `"2026-05-01T12:01:00Z"`,
		`timestamp("2026-05-01T12:00:00Z").getHours()`:        `12`,
		`duration("1500ms")`:                                  `"1.5s"`,
		`double(1) / 4.0`:                                     `0.25`,
		`variables.list != []`:                                `true`,
		`[1, 2.0] == [1.0, 2]`:                                `true`,
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			p, err := expr.Compile(expr.Port, source)
			require.NoError(t, err)
			for range 5 { // objects are walked in one order
				got, cost, err := p.Eval(sample(t, p))
				require.NoError(t, err)
				require.Equal(t, want, string(got))
				require.Less(t, int(cost), 1000)
			}
		})
	}
}

func TestCompile_RefusesWithPlaceAndRemedy(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		``:                                    "mismatched input",
		`1 +`:                                 "line 1, column",
		`foo > 1`:                             "an expression here sees outputs, variables",
		`nodes.a.b`:                           "an expression here sees outputs, variables",
		`"a" + 1`:                             "no matching overload",
		`variables.a.matches(variables.b)`:    "has to be written in the expression",
		`variables.a.matches("(")`:            "RE2",
		`variables.a.matches(".{999}.{999}")`: "too large",
		strings.Repeat("a", 5000):             "want at most 4096",
		strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200):         "too large",
		strings.Repeat("[", 120) + strings.Repeat("]", 120):               "too large",
		"1" + strings.Repeat("+1", 1500):                                  "too large",
		"true" + strings.Repeat("&&true", 600):                            "too large",
		"\xff":                                                            "UTF-8",
		`timestamp("2026-05-01T12:00:00Z").getHours("Europe/Berlin") > 1`: "no matching overload",
		`variables.t.getDate("America/New_York") > 1`:                     "no matching overload",
		`now()`:  "undeclared",
		`__work`: "undeclared",
	} {
		t.Run(source[:min(len(source), 30)], func(t *testing.T) {
			t.Parallel()
			_, err := expr.Compile(expr.Condition, source)
			require.ErrorContains(t, err, want)
			var e *expr.Error
			require.ErrorAs(t, err, &e)
			require.NotContains(t, e.Message, "\n")
			require.Less(t, len(e.Message), 500)
		})
	}
}

func TestCompileBool_RefusesWhatCannotBeTrueOrFalse(t *testing.T) {
	t.Parallel()
	_, err := expr.CompileBool(expr.Condition, `1 + 1`)
	require.EqualError(t, err, "the expression gives int, want true or false")
	p, err := expr.CompileBool(expr.Port, `variables.limit`)
	require.NoError(t, err, "what it gives is known once it has a value")
	_, _, err = p.Holds(sample(t, p))
	require.EqualError(t, err, "the expression gave a number, want true or false")
}

// No message of an evaluation repeats a value.
func TestEval_NamesWhatIsWrongAndNoValue(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`variables.nope`:                        "no member of that name",
		`variables[variables.secret]`:           "no member of that name",
		`int(variables.secret)`:                 "cannot be converted",
		`double(variables.secret)`:              "",
		`timestamp(variables.secret)`:           "",
		`duration(variables.secret)`:            "",
		`bool(variables.secret)`:                "",
		`variables.secret + 1`:                  "types it does not take",
		`variables.list[9]`:                     "no element of that index",
		`1 / (variables.limit - 5)`:             "division by zero",
		`9223372036854775807 + variables.limit`: "out of range",
		`1.0 / 0.0`:                             "no form for",
		`b"abc"`:                                "no form for",
		`{1: 2}`:                                "want strings",
		`variables.?nope.value()`:               "",
		`nodes[variables.secret].x`:             "no member",
		`variables.secret.all(x, true)`:         "",
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			p, err := expr.Compile(expr.Port, source)
			require.NoError(t, err)
			_, _, err = p.Eval(sample(t, p))
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

// The cost limit stops expensive expressions early.
func TestEval_EndsHostileExpressionsSoon(t *testing.T) {
	t.Parallel()
	doubling, nested := "[0]", ""
	for range 30 {
		doubling += ".map(x,[x,x])"
	}
	for i := range 15 {
		nested += "[[x" + strings.Repeat("x", i) + ",x" + strings.Repeat("x", i) + "]].exists(x" + strings.Repeat("x", i+1) + ", "
	}
	nested = "[0].exists(x, " + nested + "xx==xx" + strings.Repeat(")", 16)
	many := "[1,2,3,4,5,6,7,8,9,10]"
	loops := "true"
	for _, v := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		loops = many + ".all(" + v + ", " + loops + ")"
	}
	strs := "['aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa']"
	for range 20 {
		strs += ".map(x,x+x)"
	}
	lists := "[[1]]"
	for range 30 {
		lists += ".map(x,x+x)"
	}
	long := json.RawMessage(`"` + strings.Repeat("ab", 400_000) + `"`)
	rows := json.RawMessage("[" + strings.Repeat(`{"a":[1,2,3],"b":"x"},`, 20_000) + "0]")
	for name, source := range map[string]string{
		"doubling": doubling, "nested": nested, "loops": loops, "strings": strs, "lists": lists,
		"doubled and compared": doubling + " == " + "[1]",
		"sizes":                many + ".all(a, variables.rows.all(b, size(variables.long) > 0))",
		"pattern":              `variables.long.matches("(a|b|ab){200}c")`,
		"many patterns":        `variables.rows.all(r, variables.long.matches("(a|b)*c") || true)`,
		"compare all":          `variables.rows.all(a, variables.rows.exists(b, a == variables.rows))`,
		"within":               `variables.rows.all(a, variables.rows in [variables.rows])`,
		"copies":               `variables.rows.map(a, variables.rows)`,
		"sum":                  `variables.rows.map(a, [variables.rows, variables.rows, variables.rows])`,
		"find":                 `variables.rows.all(a, variables.long.contains("abc") || true)`,
	} {
		t.Run(name, func(t *testing.T) {
			p, err := expr.Compile(expr.Port, source)
			if err != nil {
				return // refused is soon enough
			}
			v := expr.NewValues(map[string]expr.Object{"variables": {"long": long, "rows": rows}}, nil, p)
			start := time.Now()
			_, _, err = p.Eval(v)
			took := time.Since(start)
			require.Error(t, err)
			t.Log(name, took, err)
			require.Less(t, took, 10*time.Second, "the bound is far below; this machine may be busy")
		})
	}
}

func TestReads_TellsWhatAnExpressionLooksAt(t *testing.T) {
	t.Parallel()
	p, err := expr.Compile(expr.Port, `variables.a + variables["b"] + variables[?"c"].orValue(nodes.x.y) + (has(variables.d) ? 1 : 2) + inputs[variables.a]`)
	require.NoError(t, err)
	require.Equal(t, expr.Reads{
		"variables": {Names: []string{"a", "b", "c", "d"}}, "nodes": {Names: []string{"x"}}, "inputs": {All: true},
	}, p.Reads())
	p, err = expr.Compile(expr.Port, `variables.map(k, k)`)
	require.NoError(t, err)
	require.True(t, p.Reads()["variables"].Has("anything"))
}

func FuzzCompileAndEval(f *testing.F) {
	for _, s := range []string{
		`1`, `variables.a.map(x, [x,x])`, `inputs == variables`, `"a".matches("(a*)*")`,
		`[[1]].all(x, x+x==x)`, `variables.?a.orValue({})`, `{1:2}.map(k,k)`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := expr.Compile(expr.Port, source)
		if err != nil {
			var e *expr.Error
			require.ErrorAs(t, err, &e)
			return
		}
		start := time.Now()
		one, _, err := p.Eval(sample(t, p))
		require.Less(t, time.Since(start), 2*time.Second, "far beyond the bound, on a busy machine, too")
		two, _, again := p.Eval(sample(t, p))
		require.Equal(t, err, again)
		require.Equal(t, string(one), string(two), "the same on every replay")
		require.NotContains(t, message(err), "hunter2")
		if err == nil {
			require.True(t, json.Valid(one))
		}
	})
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
