package projection_test

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/projection"
	"waybill.dev/waybill/protocol/schema"
)

// cases is how many pairs of a schema and a value each vendor is held to.
func cases(t *testing.T) int {
	const name = "WAYBILL_PROJECTION_CASES"
	text := os.Getenv(name)
	if text == "" {
		return 10_000
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

// limits are the only reasons why a drawn schema may have no projection.
var limits = map[string]bool{schema.RuleMaxNestingDepth: true, schema.RuleMaxProperties: true, schema.RuleRecursiveRef: true}

// valuesPerSchema is how many values are drawn for each schema.
const valuesPerSchema = 5

// For every schema of the generator and every vendor: the projection keeps the
// vendor's rules, compiles, and is always the same; every value of the schema has
// an answer under it, and Restore finds the value again.
func TestProjection_LosesNoValueOfTheSchema(t *testing.T) {
	t.Parallel()
	for _, v := range projection.Vendors() {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			want, done, refused := cases(t), 0, 0
			for done < want && !t.Failed() {
				rapid.Check(t, func(t *rapid.T) {
					n := holdsFor(t, v)
					done += n
					if n == 0 {
						refused++
					}
				})
			}
			require.Less(t, refused*valuesPerSchema, done, "most drawn schemas must have a projection")
			t.Logf("%d values, %d schemas beyond the vendor's limits", done, refused)
		})
	}
}

// holdsFor checks one schema; 0 if it is beyond the vendor's limits.
func holdsFor(t *rapid.T, v projection.Vendor) int {
	var m maker
	root := m.document(t)
	source, err := schema.Compile("source", []byte(root.schema))
	require.NoError(t, err, root.schema)
	p, problems := projection.Compile(json.RawMessage(root.schema), v)
	for _, problem := range problems {
		require.True(t, limits[problem.Rule], "%s\n%v", root.schema, problem)
	}
	if len(problems) > 0 {
		require.Nil(t, p)
		return 0
	}
	require.Empty(t, projection.LintFor(v, p.Schema()), "%s\n%s", root.schema, p.Schema())
	projected, err := schema.Compile("projected", p.Schema())
	require.NoError(t, err, "%s\n%s", root.schema, p.Schema())
	again, _ := projection.Compile(json.RawMessage(root.schema), v)
	require.Equal(t, string(p.Schema()), string(again.Schema()))
	for range valuesPerSchema {
		instance := root.draw(t, 0)
		require.Empty(t, source.Validate([]byte(instance)), "the generator: %s\n%s", root.schema, instance)
		answer, err := p.Lift(json.RawMessage(instance))
		require.NoError(t, err, "%s\n%s\n%s", root.schema, p.Schema(), instance)
		require.Empty(t, projected.Validate(answer), "%s\n%s\n%s", root.schema, p.Schema(), answer)
		restored, err := p.Restore(answer)
		require.NoError(t, err, "%s\n%s", p.Schema(), answer)
		require.Empty(t, source.Validate(restored), "%s\n%s", answer, restored)
		x, y := decoded(t, instance), decoded(t, string(restored))
		if m.vague {
			x, y = withoutNulls(x), withoutNulls(y)
		}
		require.Equal(t, x, y, "%s\n%s\n%s", root.schema, p.Schema(), answer)
	}
	return valuesPerSchema
}

// withoutNulls drops members that are null: where a schema takes both null and
// absence, they are the same to a reader (OpenWOP envelope contract §5).
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, item := range v {
			if item != nil {
				out[name] = withoutNulls(item)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = withoutNulls(item)
		}
		return out
	}
	return v
}
