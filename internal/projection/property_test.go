package projection_test

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/schema"
)

// wanted is how many different schemas are checked for each vendor, and how many values of each;
// WAYBILL_PROJECTION_SCHEMAS overrides it. The short form is for the race detector, which has little to
// find in a package without goroutines.
func wanted(t *testing.T) (schemas, values int) {
	const name = "WAYBILL_PROJECTION_SCHEMAS"
	schemas, values = 600, 10
	if testing.Short() || raced {
		schemas, values = 200, 3
	}
	if text := os.Getenv(name); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err, name)
		schemas = n
	}
	return schemas, values
}

// limits are the only reasons why a drawn schema may have no projection.
var limits = map[string]bool{
	projection.RuleDepth:      true,
	projection.RuleProperties: true,
	schema.RuleRecursiveRef:   true,
}

// For every schema of the generator and every vendor: the projection keeps the
// vendor's rules, compiles, and is always the same; every value of the schema has
// an answer under it, and Restore finds the value again.
func TestProjection_LosesNoValueOfTheSchema(t *testing.T) {
	t.Parallel()
	const shards = 2
	schemas, values := wanted(t)
	want := (schemas + shards - 1) / shards
	for shard := range shards {
		t.Run(strconv.Itoa(shard), func(t *testing.T) {
			t.Parallel()
			seen := map[string]bool{} // the schemas, for a generator draws small ones again and again
			done, refused := map[projection.Vendor]int{}, map[projection.Vendor]int{}
			check := func(shape *int, most int) {
				rapid.Check(t, func(t *rapid.T) {
					m := maker{root: shape}
					if len(seen) >= most {
						return
					}
					root := m.document(t)
					if seen[root.schema] {
						return
					}
					source, err := schema.Compile("source", []byte(root.schema))
					require.NoError(t, err, root.schema)
					for _, v := range projection.Vendors() {
						if p := drawn(t, root, v); p != nil {
							losesNothing(t, p, root, source, m.vague, values)
							done[v]++
						} else {
							refused[v]++
						}
					}
					seen[root.schema] = true // now that it holds, or a failure could not be repeated
				})
			}
			for shape := range shapes { // each is the root of some schemas, however few are checked
				check(&shape, len(seen)+want/shapes+1)
			}
			for few(done, want) && !t.Failed() {
				check(nil, len(seen)+10)
			}
			for _, v := range projection.Vendors() {
				require.Less(t, refused[v], done[v], "most drawn schemas must have a projection")
			}
			t.Logf("schemas: %v, %d values each; beyond the vendor's limits: %v", done, values, refused)
		})
	}
}

// few reports whether a vendor was held to fewer schemas than wanted.
func few(done map[projection.Vendor]int, want int) bool {
	return slices.ContainsFunc(projection.Vendors(), func(v projection.Vendor) bool { return done[v] < want })
}

// drawn projects a drawn schema; nil if it is beyond the vendor's limits.
func drawn(t *rapid.T, root model, v projection.Vendor) *projection.Projection {
	p, problems := projection.Compile(json.RawMessage(root.schema), v)
	for _, problem := range problems {
		require.True(t, limits[problem.Rule], "%s\n%v", root.schema, problem)
	}
	if len(problems) > 0 {
		require.Nil(t, p)
		return nil
	}
	require.Empty(t, projection.LintFor(v, p.Schema()), "%s\n%s", root.schema, p.Schema())
	again, _ := projection.Compile(json.RawMessage(root.schema), v)
	require.Equal(t, string(p.Schema()), string(again.Schema()))
	return p
}

// losesNothing draws values and brings them there and back.
func losesNothing(
	t *rapid.T, p *projection.Projection, root model, source *schema.Schema, vague bool, values int,
) {
	projected, err := schema.Compile("projected", p.Schema())
	require.NoError(t, err, "%s\n%s", root.schema, p.Schema())
	for range values {
		instance := root.draw(t, 0)
		require.Empty(t, source.Validate([]byte(instance)), "the generator: %s\n%s", root.schema, instance)
		answer, err := p.Lift(json.RawMessage(instance))
		require.NoError(t, err, "%s\n%s\n%s", root.schema, p.Schema(), instance)
		require.Empty(t, projected.Validate(answer), "%s\n%s\n%s", root.schema, p.Schema(), answer)
		restored, err := p.Restore(answer)
		require.NoError(t, err, "%s\n%s", p.Schema(), answer)
		require.Empty(t, source.Validate(restored), "%s\n%s", answer, restored)
		x, y := decoded(t, instance), decoded(t, string(restored))
		if vague {
			x, y = withoutNulls(x), withoutNulls(y)
		}
		require.Equal(t, x, y, "%s\n%s\n%s", root.schema, p.Schema(), answer)
	}
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
