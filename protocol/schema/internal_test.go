package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// read parses a schema document that is meant to be good.
func read(t testing.TB, doc string) any {
	t.Helper()
	v, err := parse([]byte(doc))
	require.Nil(t, err)
	return v
}

func TestWalk_VisitsSchemaPositionsOnly(t *testing.T) {
	t.Parallel()
	doc := read(t, `{
		"properties": {"not": {"type": "string"}, "items": true},
		"enum": [{"properties": {"no": {}}}], "const": {"items": {}}, "default": {"not": {}}, "examples": [{"not": {}}], "x-own": {"items": {}},
		"dependencies": {"a": ["b"], "c": {"items": [true, {}]}},
		"allOf": [{"if": {}, "then": {}, "else": {}}], "anyOf": [{}], "oneOf": [{}], "prefixItems": [{}],
		"additionalProperties": false, "patternProperties": {"^x": {}}, "propertyNames": {}, "unevaluatedProperties": {}, "dependentSchemas": {"d": {}},
		"items": {"contains": {}, "unevaluatedItems": {}, "contentSchema": {}, "additionalItems": {}},
		"not": {}, "$defs": {"e": {}}, "definitions": {"f": {}}
	}`)
	var got []string
	for p := range walk(doc) {
		got = append(got, fmt.Sprintf("%s %d", p.pointer(), p.depth))
	}
	require.Equal(t, []string{
		" 0", "/additionalProperties 0", "/items 1", "/items/additionalItems 1", "/items/contains 1", "/items/contentSchema 1", "/items/unevaluatedItems 1",
		"/not 0", "/propertyNames 0", "/unevaluatedProperties 0",
		"/allOf/0 0", "/allOf/0/else 0", "/allOf/0/if 0", "/allOf/0/then 0", "/anyOf/0 1", "/oneOf/0 0", "/prefixItems/0 0",
		"/$defs/e 1", "/definitions/f 0", "/dependencies/c 0", "/dependencies/c/items/0 1", "/dependencies/c/items/1 1", "/dependentSchemas/d 0",
		"/patternProperties/^x 0", "/properties/items 1", "/properties/not 1",
	}, got)
}

func TestWalk_StopsWhenAsked(t *testing.T) {
	t.Parallel()
	n := 0
	for range walk(read(t, `{"allOf":[{"allOf":[{},{}]},{}]}`)) {
		if n++; n == 3 {
			break
		}
	}
	require.Equal(t, 3, n)
}

func TestReferences_ResolvePointersAndAnchors(t *testing.T) {
	t.Parallel()
	r := newReferences(read(t, `{"$defs":{"a/b ~c":{"title":"odd"},"d":{"$anchor":"here","title":"anchored"},"e":{"$dynamicAnchor":"there","title":"dynamic"}}}`))
	for ref, title := range map[string]any{
		"#": nil, "#/$defs/a~1b%20~0c": "odd", "#/$defs/d": "anchored", "#here": "anchored", "#there": "dynamic",
	} {
		p, ok := r.target(ref)
		require.True(t, ok, ref)
		require.Equal(t, title, p.object["title"], ref)
	}
	for _, ref := range []string{"", "here", "#nowhere", "#/$defs", "#/$defs/x", "#/%zz", "other.json#/$defs/d"} {
		_, ok := r.target(ref)
		require.False(t, ok, ref)
	}
}

// loops must agree with plain reachability: two positions share a component
// exactly if each reaches the other.
func TestReferences_LoopsAgreeWithReachability(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "definitions")
		defs := map[string]any{}
		for i := range n {
			defs[fmt.Sprint("d", i)] = map[string]any{
				"$ref":  fmt.Sprint("#/$defs/d", rapid.IntRange(0, n).Draw(t, "ref")), // d<n> does not exist
				"items": map[string]any{"$ref": fmt.Sprint("#/$defs/d", rapid.IntRange(0, n).Draw(t, "item"))},
			}
		}
		r := newReferences(map[string]any{"$defs": defs})
		next := r.edges()
		reach := make([][]bool, len(next))
		for from := range next {
			reach[from] = make([]bool, len(next))
			stack := []int{from}
			for len(stack) > 0 {
				v := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				for _, w := range next[v] {
					if !reach[from][w] {
						reach[from][w] = true
						stack = append(stack, w)
					}
				}
			}
		}
		component := r.loops()
		for a := range next {
			for b := range next {
				mutual := a == b || reach[a][b] && reach[b][a]
				require.Equal(t, mutual, component[a] == component[b], "%d %d", a, b)
			}
		}
	})
}

func TestLookup_FollowsPointers(t *testing.T) {
	t.Parallel()
	doc := read(t, `{"a":{"b/c":[{"d":1},2]}}`)
	for pointer, found := range map[string]bool{
		"": true, "/a": true, "/a/b~1c/0": true, "/a/b~1c": false, "/a/b~1c/1": false, "/a/b~1c/2": false, "/a/b~1c/-1": false, "/a/b~1c/x": false,
		"/x": false, "a": false, "/a/b~1c/0/d/e": false,
	} {
		_, ok := lookup(doc, pointer)
		require.Equal(t, found, ok, pointer)
	}
}

func TestIsHuge_BoundsDigitsAndExponent(t *testing.T) {
	t.Parallel()
	for literal, huge := range map[string]bool{
		"0": false, "-1.5": false, "1e400": false, "1E-400": false, "1e+400": false, strings.Repeat("9", 400): false,
		"1e401": true, "1e-401": true, "1E+401": true, strings.Repeat("9", 401): true, "1e99999999999999999999": true, "0e999": true,
	} {
		require.Equal(t, huge, isHuge(json.Number(literal)), literal)
	}
}

func TestFindHugeNumber_GivesTheFirstPlace(t *testing.T) {
	t.Parallel()
	path, found := findHugeNumber(map[string]any{"b": json.Number("1e999"), "a/b": []any{"x", json.Number("1"), json.Number("1e999")}})
	require.True(t, found)
	require.Equal(t, "/a~1b/2", path)
	_, found = findHugeNumber([]any{nil, true, "1e999", json.Number("1")})
	require.False(t, found)
}

func TestCompilePattern_TakesWhatCanBeMatchedInLinearTime(t *testing.T) {
	t.Parallel()
	re, err := compilePattern(`^a+$`)
	require.NoError(t, err)
	require.True(t, re.MatchString("aaa"))
	for _, bad := range []string{`(`, `[z-a]`, `a{2,1}`, `(?<`, `^(?=a)`, `(?!x)^(a|aa)+$`, `(a)\1`, strings.Repeat("a", maxPattern+1)} {
		_, err := compilePattern(bad)
		require.Error(t, err, bad[:min(len(bad), 20)])
	}
}

func TestMeter_CountsAtLeastWhatTheValidatorDoes(t *testing.T) {
	t.Parallel()
	count := func(doc, instance string) int {
		s, err := Compile("n", []byte(doc))
		require.NoError(t, err)
		return newMeter().count(s.compiled, read(t, instance))
	}
	require.Equal(t, 1, count(`true`, `{"a":1}`))
	require.Equal(t, 1, count(`{"type":"string"}`, `"x"`))
	require.Equal(t, 4, count(`{"items":{"type":"string"}}`, `["a","b","c"]`))
	require.Equal(t, 3, count(`{"allOf":[{"minimum":1},{"minimum":2}]}`, `5`))
	require.Equal(t, 7, count(`{"allOf":[{"items":{"minimum":1}},{"items":{"minimum":2}}]}`, `[1,2]`))

	twice := `{"properties":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}}}`
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + `1` + strings.Repeat(`}`, n) }
	require.Greater(t, count(twice, deep(8)), 1<<8)
	require.Equal(t, maxChecks, count(twice, deep(50)))
}

func TestIsWild_KnowsRecursionAndFanOut(t *testing.T) {
	t.Parallel()
	for doc, wild := range map[string]bool{
		`true`: false,
		`{"properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`: false,
		`{"properties":{"a":{"$ref":"#"}}}`:                               true,
		`{"items":{"$dynamicRef":"#a"},"$dynamicAnchor":"a"}`:             true,
		`{"patternProperties":{"x":{"prefixItems":[{"$ref":"#"}]}}}`:      true,
		`{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 300) + `{}]}`: true,
	} {
		s, err := Compile("n", []byte(doc))
		require.NoError(t, err)
		require.Equal(t, wild, s.wild, "%.60s", doc)
	}
}

func TestDescribe_HasWordsForEveryKind(t *testing.T) {
	t.Parallel()
	require.Equal(t, "does not satisfy contentMediaType", describe(&kind.ContentMediaType{Want: "text/plain"}))
	require.Equal(t, "want at least 2 items of the kind the schema describes", describe(&kind.MinContains{Want: 2}))
	require.Equal(t, "with member a also required: b, c", describe(&kind.Dependency{Prop: "a", Missing: []string{"b", "c"}}))
	require.Equal(t, "member name not allowed", describe(&kind.PropertyNames{Property: "secret"}))
	require.Equal(t, "not one of the allowed values", describe(&kind.Enum{Want: []any{strings.Repeat("x", 100)}}))
}
