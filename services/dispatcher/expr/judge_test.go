package expr_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/expr"
)

// shapes are the outputs of the tests.
func shapes(path []string) expr.Shape {
	return map[string]expr.Shape{
		"outputs.kind":  {Types: []string{"string"}, Values: []string{"bug", "question"}},
		"outputs.score": {Types: []string{"number"}},
		"outputs.text":  {Types: []string{"string", "null"}},
		"outputs.tags":  {Types: []string{"array"}},
		"outputs.ok":    {Types: []string{"boolean"}},
	}[strings.Join(path, ".")]
}

func TestJudge_FindsWhatEveryRunGives(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]expr.Verdict{
		`true`:                    expr.Always,
		`1 < 2`:                   expr.Always,
		`size("a") > 1`:           expr.Never,
		`outputs.any || true`:     expr.Always,
		`outputs.any && false`:    expr.Never,
		`!(outputs.any && false)`: expr.Always,
		`outputs.kind == "bug" && outputs.kind == "x"`: expr.Never,
		`outputs.kind != "bug" || outputs.kind != "x"`: expr.Always,
		`outputs.score > 5 && outputs.score < 3`:       expr.Never,
		`outputs.score > 5 && 5 >= outputs.score`:      expr.Never,
		`outputs.score <= 5 || outputs.score > 3`:      expr.Always,
		`outputs.score == 4 && outputs.score > 4`:      expr.Never,
		`outputs.score == 4 && outputs.score != 4`:     expr.Never,
		`outputs.score > 5 && outputs.score < 7`:       expr.Depends,
		`outputs.score >= 5 && outputs.score <= 5`:     expr.Depends,
		`outputs.kind == "bug" || outputs.kind == "x"`: expr.Depends,
		`outputs.kind != "bug" && outputs.kind != "x"`: expr.Depends,
		`outputs.any`:                                    expr.Depends,
		`[1, 2].exists(x, x == outputs.score)`:           expr.Depends,
		`outputs.a == "x" && variables.a == "y"`:         expr.Depends,
		`(outputs.any ? 1 : 2) == 1`:                     expr.Depends,
		`outputs.score > 1 && (outputs.ok || 1 == 2)`:    expr.Depends,
		`!(outputs.score > 5) && outputs.score > 6`:      expr.Never,
		`outputs["kind"] == "bug" && outputs.kind == ""`: expr.Never,
	} {
		p, err := expr.CompileBool(expr.Condition, source)
		require.NoError(t, err, source)
		got, _ := p.Judge(shapes)
		require.Equal(t, want, got, source)
	}
}

func TestJudge_DoubtsComparisonsThatCannotSucceed(t *testing.T) {
	t.Parallel()
	for source, says := range map[string]string{
		`outputs.kind == "Bug"`:                   `outputs.kind is never "Bug", did you mean bug? its values are "bug", "question"`,
		`outputs.kind in ["bug", "feature"]`:      `outputs.kind is never "feature"`,
		`"x" != outputs.kind`:                     `outputs.kind is never "x"`,
		`outputs.score == "5"`:                    "outputs.score is of type number, and never equal to a string; compare it with a number",
		`outputs.score < "5"`:                     "the comparison with a string fails",
		`outputs.text == 5`:                       "compare it with a string",
		`size(outputs.score) > 0`:                 "size fails",
		`outputs.tags.contains("a")`:              "write VALUE in outputs.tags",
		`"a" in outputs.text`:                     "write outputs.text.contains",
		`outputs.ok && outputs.text`:              "neither true nor false; compare it, as in size(outputs.text) > 0",
		`!outputs.kind`:                           `compare it, as in outputs.kind == "bug"`,
		`outputs.score + "a" == "5a"`:             "the calculation with a string fails",
		`outputs.text == outputs.text`:            "compares outputs.text with itself",
		`outputs.ok ? outputs.score > "1" : true`: "the comparison with a string fails",
	} {
		p, err := expr.CompileBool(expr.Condition, source)
		require.NoError(t, err, source)
		_, doubts := p.Judge(shapes)
		require.Len(t, doubts, 1, source)
		require.Contains(t, doubts[0], says, source)
	}
	for _, source := range []string{
		`outputs.kind == "bug"`, `outputs.kind in ["bug", "question"]`, `outputs.text == null`, `outputs.text == "a"`,
		`size(outputs.tags) > 0 && outputs.score > 1.5`, `"a" in outputs.tags`, `outputs.text.contains("a")`, `outputs.any == 1`,
		`outputs.tags[0] == "a"`, `outputs.score == outputs.text`, `outputs.ok`, `outputs.kind.startsWith("b")`,
	} {
		p, err := expr.CompileBool(expr.Condition, source)
		require.NoError(t, err, source)
		_, doubts := p.Judge(shapes)
		require.Empty(t, doubts, source)
	}
}

func TestJudge_OfEveryCompiledExpressionReturns(t *testing.T) {
	t.Parallel()
	for _, source := range []string{`[]`, `{"a": outputs.x}`, `outputs`, `-outputs.score`, `outputs.?x.orValue(1)`, `timestamp("2026-01-01T00:00:00Z").getFullYear()`} {
		p, err := expr.Compile(expr.Condition, source)
		require.NoError(t, err, source)
		require.Empty(t, p.Doubts(shapes), source)
	}
}

// An approval that can only be rejected never completes: its action has no value.
func TestJudge_OfAValueThatCannotBe(t *testing.T) {
	t.Parallel()
	none := func([]string) expr.Shape { return expr.Shape{Types: []string{"string"}, Values: []string{}} }
	for _, source := range []string{`outputs.action`, `outputs.action == "accept"`, `outputs.action in ["accept"]`, `outputs.action.startsWith("a")`} {
		p, err := expr.CompileBool(expr.Condition, source)
		require.NoError(t, err, source)
		require.NotPanics(t, func() { p.Judge(none) }, source)
	}
}
