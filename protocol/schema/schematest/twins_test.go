package schematest_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/schema/schematest"
)

// rules has every keyword that mutants know about.
const rules = `{
  "type": "object", "additionalProperties": false, "required": ["id", "list"],
  "properties": {
    "id": {"type": "string", "minLength": 2, "maxLength": 4},
    "list": {"type": "array", "minItems": 1, "maxItems": 3, "uniqueItems": true, "items": {"type": "integer", "minimum": 1, "maximum": 9}},
    "mode": {"enum": ["on", "off"]},
    "yes": {"const": true},
    "url": {"type": "string", "format": "uri"},
    "code": {"type": "string", "pattern": "^[a-z]+$"},
    "open": {"type": "object"},
    "map": {"type": "object", "additionalProperties": {"type": "boolean"}},
    "one": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "object", "additionalProperties": false, "required": ["b"], "properties": {"b": {"enum": ["b"]}}}]}
  },
  "$defs": {"a": {"type": "object", "additionalProperties": false, "required": ["a"], "properties": {"a": {"type": "number", "exclusiveMinimum": -1}}}}
}`

var words = []string{"https://x.example/a", "abc"}

// differ reports whether a mutant distinguishes two schemas.
func differ(t *testing.T, one, other any) bool {
	t.Helper()
	a, err := schema.Compile("one", schematest.Document(t, one))
	require.NoError(t, err)
	b, err := schema.Compile("other", schematest.Document(t, other))
	require.NoError(t, err)
	found := false
	for _, sample := range schematest.Samples(one, words...) {
		require.Empty(t, a.Validate(schematest.Document(t, sample)))
		for m := range schematest.Mutants(sample, one) {
			found = found || (len(a.Validate(m.Document)) == 0) != (len(b.Validate(m.Document)) == 0)
		}
	}
	return found
}

// without gives v once for each keyword of a schema, which it leaves out; and each
// schema of it as the empty one.
func without(v any, path string, out func(path string, v any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			less := maps.Clone(v)
			delete(less, name)
			if name != "$defs" && name != "properties" && path != "/$defs" {
				out(path+"/"+name, less)
			}
			without(v[name], path+"/"+name, func(p string, child any) {
				more := maps.Clone(v)
				more[name] = child
				out(p, more)
			})
		}
	case []any:
		for i := range v {
			without(v[i], path, func(p string, child any) {
				more := slices.Clone(v)
				more[i] = child
				out(p, more)
			})
		}
	}
}

// No keyword can be left out of a schema without a mutant that notices.
func TestMutants_NoticeEveryKeywordThatIsLeftOut(t *testing.T) {
	t.Parallel()
	whole := schematest.Value(t, []byte(rules))
	require.False(t, differ(t, whole, whole))
	n := 0
	without(whole, "", func(path string, less any) {
		n++
		require.True(t, differ(t, whole, less), "nothing notices that %s is gone", path)
	})
	require.Greater(t, n, 30)
}

func TestMutants_NoticeABoundThatIsOffByOne(t *testing.T) {
	t.Parallel()
	whole := schematest.Value(t, []byte(rules))
	var bounds func(v any, out func(v any))
	bounds = func(v any, out func(v any)) {
		m, _ := v.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(m)) {
			with := func(child any) {
				more := maps.Clone(m)
				more[name] = child
				out(more)
			}
			if n, ok := m[name].(json.Number); ok {
				i, err := n.Int64()
				require.NoError(t, err)
				with(i + 1)
				with(i - 1)
			}
			bounds(m[name], with)
		}
	}
	n := 0
	bounds(whole, func(other any) {
		n++
		if _, err := schema.Compile("other", schematest.Document(t, other)); err != nil {
			return // below zero
		}
		require.True(t, differ(t, whole, other), "%s", schematest.Document(t, other))
	})
	require.Equal(t, 14, n)
}

func TestMutants_ComeOnceEach(t *testing.T) {
	t.Parallel()
	whole := schematest.Value(t, []byte(rules))
	for _, sample := range schematest.Samples(whole, words...) {
		seen := map[string]bool{}
		for m := range schematest.Mutants(sample, whole, whole) {
			require.False(t, seen[string(m.Document)], m.Change)
			seen[string(m.Document)] = true
		}
	}
}
