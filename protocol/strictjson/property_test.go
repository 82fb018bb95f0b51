package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/strictjson"
)

// value draws a JSON value of at most the given depth.
func value(depth int) *rapid.Generator[any] {
	scalar := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.Int64(), func(n int64) any { return n }),
		rapid.Map(rapid.Float64Range(-1e9, 1e9), func(f float64) any { return f }),
		rapid.Map(rapid.String(), func(s string) any { return strings.ToValidUTF8(s, "") }),
	)
	if depth == 0 {
		return scalar
	}
	name := rapid.Map(rapid.String(), func(s string) string { return strings.ToValidUTF8(s, "") })
	return rapid.OneOf(
		scalar,
		rapid.Map(rapid.SliceOfN(value(depth-1), 0, 6), func(v []any) any { return v }),
		rapid.Map(rapid.MapOfN(name, value(depth-1), 0, 24), func(m map[string]any) any { return m }),
	)
}

func TestCheck_AcceptsTheOutputOfEncodingJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		doc, err := json.Marshal(value(3).Draw(t, "value"))
		require.NoError(t, err)
		require.NoError(t, strictjson.Check(doc, strictjson.Default))
		var back any
		require.NoError(t, strictjson.Decode(doc, strictjson.Default, &back))
		again, err := json.Marshal(back)
		require.NoError(t, err)
		require.JSONEq(t, string(doc), string(again))
	})
}

func TestCheck_RejectsEveryProperPrefixOfContainers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		doc, err := json.Marshal([]any{value(2).Draw(t, "value")})
		require.NoError(t, err)
		cut := rapid.IntRange(0, len(doc)-1).Draw(t, "cut")
		require.Error(t, strictjson.Check(doc[:cut], strictjson.Default))
	})
}

func TestCheck_FindsARepeatedNameAnywhere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zé\\"/]{0,6}`), 1, 40, rapid.ID).Draw(t, "names")
		again := rapid.SampledFrom(names).Draw(t, "again")
		var b strings.Builder
		for _, name := range append(names, again) {
			literal, err := json.Marshal(name)
			require.NoError(t, err)
			b.WriteString(",")
			b.Write(literal)
			b.WriteString(":1")
		}
		err := strictjson.Check([]byte("{"+b.String()[1:]+"}"), strictjson.Default)
		e := asError(t, err)
		require.Equal(t, strictjson.RuleDuplicate, e.Rule)
		want := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(again)
		require.Equal(t, want, e.Path)
	})
}

type base struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
}

type Shared struct {
	Note string `json:"note"`
}

type level string

func (l *level) UnmarshalText(b []byte) error {
	*l = level(strings.ToUpper(string(b)))
	return nil
}

type nested struct{ inner request }

func (n *nested) UnmarshalJSON(b []byte) error {
	return strictjson.Decode(b, strictjson.Default, &n.inner)
}

type composed struct {
	base
	*Shared
	Kind   int              `json:"kind"` // hides base.Kind
	Level  level            `json:"level"`
	Nested nested           `json:"nested"`
	ByName map[string]*base `json:"byName"`
	Pair   [2]int           `json:"pair"`
	Deep   **int            `json:"deep"`
	Iface  json.Marshaler   `json:"iface"`
}

func TestDecode_SupportsEmbeddingPointersAndUnmarshalers(t *testing.T) {
	t.Parallel()
	var c composed
	doc := `{"id":"i","note":"n","kind":7,"level":"warn","nested":{"id":"x"},"byName":{"a":{"id":"b"},"c":null},"pair":[1,2],"deep":3,"iface":null}`
	require.NoError(t, strictjson.Decode([]byte(doc), strictjson.Default, &c))
	require.Equal(t, 7, c.Kind)
	require.Equal(t, "n", c.Note)
	require.Equal(t, level("WARN"), c.Level)
	require.Equal(t, "x", c.Nested.inner.ID)
	require.Equal(t, "b", c.ByName["a"].ID)
	require.Equal(t, [2]int{1, 2}, c.Pair)
	require.Equal(t, 3, **c.Deep)
}

func TestDecode_ReportsErrorsOfUnmarshalersBelowTheirMember(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		doc, path, rule string
	}{
		"strict inside strict": {
			doc:  `{"nested": {"nodes":[{"nope":1}]}}`,
			path: "/nested/nodes/0/nope",
			rule: strictjson.RuleUnknown,
		},
		"hidden field has the outer type": {
			doc:  `{"kind":"x"}`,
			path: "/kind",
			rule: strictjson.RuleType,
		},
		"text reader of a number": {
			doc:  `{"level":1}`,
			path: "/level",
			rule: strictjson.RuleType,
		},
		"element of a map of pointers": {
			doc:  `{"byName":{"a":{"id":null}}}`,
			path: "/byName/a/id",
			rule: strictjson.RuleType,
		},
		"element of an array": {
			doc:  `{"pair":[1,"2"]}`,
			path: "/pair/1",
			rule: strictjson.RuleType,
		},
		"pointer to pointer": {
			doc:  `{"deep":true}`,
			path: "/deep",
			rule: strictjson.RuleType,
		},
		"member of an embedded pointer": {
			doc:  `{"note":[]}`,
			path: "/note",
			rule: strictjson.RuleType,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := asError(t, strictjson.Decode([]byte(tc.doc), strictjson.Default, &composed{}))
			require.Equal(t, tc.path, e.Path, e.Error())
			require.Equal(t, tc.rule, e.Rule)
			require.Positive(t, e.Offset)
		})
	}
}
