package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// read parses a valid schema document.
func read(t testing.TB, doc string) any {
	t.Helper()
	d, err := parse([]byte(doc), maxWeight)
	require.Nil(t, err)
	return d.value
}

func TestWalk_VisitsSchemaPositionsOnly(t *testing.T) {
	t.Parallel()
	doc := read(t, `{
		"properties": {"not": {"type": "string"}, "items": true},
		"enum": [{"properties": {"no": {}}}], "const": {"items": {}}, "default": {"not": {}}, "examples": [{"not": {}}], "x-own": {"items": {}},
		"dependencies": {"a": ["b"], "c": {"prefixItems": [true, {}]}},
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
		"/$defs/e 1", "/definitions/f 0", "/dependencies/c 0", "/dependencies/c/prefixItems/0 0", "/dependencies/c/prefixItems/1 0", "/dependentSchemas/d 0",
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
		i, ok := r.index(ref)
		require.True(t, ok, ref)
		require.Equal(t, title, r.positions[i].object["title"], ref)
	}
	for _, ref := range []string{"", "here", "#nowhere", "#/$defs", "#/$defs/x", "#/%zz", "other.json#/$defs/d"} {
		_, ok := r.index(ref)
		require.False(t, ok, ref)
	}
}

// loops must agree with plain reachability: two positions share a component exactly if each reaches
// the
// other.
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

func TestCompilePattern_TakesPatterns(t *testing.T) {
	t.Parallel()
	ps := patterns{}
	re, err := ps.compile(`^a+$`)
	require.NoError(t, err)
	require.True(t, re.MatchString("aaa"))
	for _, bad := range []string{`(`, `[z-a]`, `a{2,1}`, `(?<`, `a**`, `(?<=a`, strings.Repeat("a", maxPattern+1)} {
		_, err := ps.compile(bad)
		require.Error(t, err, bad[:min(len(bad), 20)])
	}
}

func TestWithoutNulls_DropsTheChosenMembersAndKeepsAllOtherBytes(t *testing.T) {
	t.Parallel()
	drop := func(path string) bool { return path == "/reasoning" || path == "/list/1/a" || path == "/o/x~1y" }
	for in, want := range map[string]string{
		`{"reasoning":null}`:                                           `{}`,
		`{"a":1.0,"reasoning":null,"b":[ 1 ]}`:                         `{"a":1.0,"b":[ 1 ]}`,
		`{"reasoning" : null , "a":{"reasoning":null}}`:                `{"a":{"reasoning":null}}`,
		`{"\"q\"":"\u00e9","n":12345678901234567890,"reasoning":null}`: `{"\"q\"":"\u00e9","n":12345678901234567890}`,
		`{"list":[{"a":null},{"a":null,"b":1.50},null]}`:               `{"list":[{"a":null},{"b":1.50},null]}`,
		`{"o":{"x/y":null,"z":null}}`:                                  `{"o":{"z":null}}`,
	} {
		out, ok := withoutNulls([]byte(in), "", drop)
		require.True(t, ok, in)
		require.Equal(t, want, string(out))
	}
	for _, in := range []string{
		`{}`, `{"reasoning":"x"}`, `{"reasoning":{}}`, `{"other":null}`, `[]`, `null`, `"reasoning"`,
		`{"a":`, `{"a" 1}`, ``,
	} {
		_, ok := withoutNulls([]byte(in), "", drop)
		require.False(t, ok, in)
	}
}
