package schema_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
)

func TestValidate_EndsOnHostileInput(t *testing.T) {
	t.Parallel()
	doubling := `{"$defs":{"n":{"properties":{"a":{"allOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}}}},"$ref":"#/$defs/n"}`
	failing := `{"$defs":{"n":{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}},"required":["b"]}},"$ref":"#/$defs/n"}`
	tests := map[string]struct{ schema, doc, keyword string }{
		"reference that doubles with depth": {
			schema:  doubling,
			doc:     strings.Repeat(`{"a":`, 60) + `1` + strings.Repeat(`}`, 60),
			keyword: schema.KeywordBudget,
		},
		"reference that doubles with depth, and fails at once": {
			schema:  failing,
			doc:     strings.Repeat(`{"a":`, 60) + `1` + strings.Repeat(`}`, 60),
			keyword: "required",
		},
		"references that double in place": {
			schema:  fanOf(40),
			doc:     `"x"`,
			keyword: schema.KeywordBudget,
		},
		"references that double in place, and fail at once": {
			schema:  fanOf(40),
			doc:     `1`,
			keyword: "type",
		},
		"references that double a few times": {
			schema:  fanOf(15),
			doc:     `"x"`,
			keyword: schema.KeywordBudget,
		},
		"a huge enum for many values": {
			schema:  `{"items":{"enum":[` + strings.Repeat(`"x",`, 21_000) + `"y"]}}`,
			doc:     `[` + strings.Repeat(`"z",`, 2000) + `"z"]`,
			keyword: "enum",
		},
		"too deep": {
			schema:  `true`,
			doc:     strings.Repeat("[", 200) + strings.Repeat("]", 200),
			keyword: schema.KeywordJSON,
		},
		"too large": {
			schema:  `true`,
			doc:     `"` + strings.Repeat("x", 5<<20) + `"`,
			keyword: schema.KeywordJSON,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := compile(t, tc.schema)
			done := make(chan []schema.Violation, 1)
			go func() { done <- s.Validate([]byte(tc.doc)) }()
			select {
			case vs := <-done:
				require.NotEmpty(t, vs)
				require.Equal(t, tc.keyword, vs[0].Keyword)
			case <-time.After(30 * time.Second):
				t.Fatal("validation does not end")
			}
		})
	}
}

// list joins n items.
func list(n int, item func(int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item(i)
	}
	return strings.Join(items, ",")
}

func same(n int, item string) string { return list(n, func(int) string { return item }) }

func names(n int) string { return list(n, func(i int) string { return fmt.Sprintf(`"%x"`, i) }) }

// allocated returns the bytes that do allocates, the minimum of several tries.
func allocated(do func()) uint64 {
	least := ^uint64(0)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// A schema must not multiply what a document takes, neither in time nor in memory.
//
//nolint:paralleltest // it measures what the process allocates
func TestValidate_IsBoundedByTheDocument(t *testing.T) {
	const mib = 1 << 20
	tests := map[string]struct{ schema, doc string }{
		"names that are missing in each item": {`{"items":{"required":[` + names(10_000) + `]}}`, `[` + same(5000, `{}`) + `]`},
		"names that others ask for": {
			`{"items":{"dependentRequired":{"a":[` + names(10_000) + `]}}}`, `[` + same(2000, `{"a":0}`) + `]`,
		},
		"a list compared a thousand times": {
			`{"allOf":[` + same(700, `{"$ref":"#/$defs/c"}`) + `],"$defs":{"c":{"const":[` + same(8000, `1`) + `]}}}`, `[` + same(7999, `1`) + `,2]`,
		},
		"items compared a thousand times":    {`{"allOf":[` + same(1000, `{"uniqueItems":true}`) + `]}`, `[` + list(2500, strconv.Itoa) + `]`},
		"a pattern applied a thousand times": {`{"allOf":[` + same(900, `{"pattern":"(a|b)*c?$"}`) + `]}`, `"` + strings.Repeat("a", 16_000) + `"`},
		"patterns applied to many names": {
			`{"patternProperties":{` + list(900, func(i int) string { return fmt.Sprintf(`"x.*%d$":{}`, i) }) + `}}`,
			`{` + list(140, func(i int) string { return fmt.Sprintf(`"%s%d":0`, strings.Repeat("x", 100), i) }) + `}`,
		},
		"members that are not known, of many": {
			`{"items":{"properties":{` + list(1000, func(i int) string { return fmt.Sprintf(`"p%d":true`, i) }) + `},"additionalProperties":false}}`,
			`[` + same(2000, `{"_":0}`) + `]`,
		},
		"a union for each item":       {`{"items":{"anyOf":[` + same(12, `{"type":"string"}`) + `]}}`, `[` + same(8000, `1`) + `]`},
		"patterns as values":          {`{"items":{"format":"regex"}}`, `[` + same(1500, `"x{1000}"`) + `]`},
		"patterns that backtrack":     {`{"items":{"format":"regex"}}`, `[` + same(10, `"(?=a)`+strings.Repeat(strings.Repeat("(a|", 20)+strings.Repeat(")*", 20), 30)+`"`) + `]`},
		"patterns without case":       {`{"items":{"format":"regex"}}`, `[` + same(1000, `"(?i)[B-\\x{1e942}]"`) + `]`},
		"long names in many places":   {`{"additionalProperties":{"items":{"type":"string"}}}`, `{"` + strings.Repeat("n", 8000) + `":[` + same(4000, `1`) + `]}`},
		"unevaluated members":         {`{"allOf":[` + same(500, `{"properties":{"a":true}}`) + `],"unevaluatedProperties":{"type":"integer"}}`, `{` + list(1500, func(i int) string { return fmt.Sprintf(`"p%d":0`, i) }) + `}`},
		"numbers of very many digits": {`{"items":{"multipleOf":3e-390,"minimum":1e-390}}`, `[` + same(2500, `1e399`) + `]`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // as above
			s := compile(t, tc.schema)
			doc := []byte(tc.doc)
			require.Less(t, len(doc), 32<<10)
			var vs []schema.Violation
			began := time.Now()
			require.Less(t, allocated(func() { vs = s.Validate(doc) }), uint64(4*mib))
			require.Less(t, time.Since(began), 3*time.Second)
			require.LessOrEqual(t, len(vs), 32)
			require.Equal(t, vs, s.Validate(doc), "the result does not depend on the order of members")
		})
	}
}

// fanOf returns a schema with references that double at each of n levels.
func fanOf(n int) string {
	var fan strings.Builder
	fan.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&fan, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&fan, `"d%d":{"type":"string"}}}`, n)
	return fan.String()
}

// Reading a list takes a multiple of its length, depending on its items: these must
// not be copied over and over while it grows.
//
//nolint:paralleltest // it measures what the process allocates
func TestValidate_ReadsAListWithinAMultipleOfItsLength(t *testing.T) {
	s := compile(t, `true`)
	for item, most := range map[string]int{"1": 40, "{}": 45, `{"":1}`: 65, `"\n"`: 55, "[[]]": 30} {
		doc := []byte("[" + same(260_000/(len(item)+1), item) + "]")
		require.Less(t, allocated(func() { require.Empty(t, s.Validate(doc)) }), uint64(most*len(doc)), item)
	}
}

// Patterns that need backtracking are rejected before they cost much to compile.
//
//nolint:paralleltest // it measures what the process allocates
func TestCompile_IsBoundedByThePatterns(t *testing.T) {
	group := func(open, end string, n int) string { return strings.Repeat(open, n) + "a" + strings.Repeat(end, n) }
	for name, p := range map[string]string{
		"alternatives": "(?=a)(" + strings.Repeat("ab|", 1300) + "x)", "groups": "(?=a)" + group("(", "{1,9})", 400),
		"groups of alternatives": "(?=a)" + strings.Repeat(group("(a|", ")*", 20), 30), "repetitions": "(?=a)" + strings.Repeat(`(a{9999}b{9999}){9999}`, 150),
		"stars": "(?=a)" + strings.Repeat(`(a*)*`, 800), "lookbehind": "(?<=" + strings.Repeat(`(a|b)?`, 600) + ")x",
	} {
		doc := []byte(`{"allOf":[` + list(20, func(i int) string { return fmt.Sprintf(`{"pattern":"%s%d"}`, p, i) }) + `]}`)
		began := time.Now()
		require.Less(t, allocated(func() { _, _ = schema.Compile("x", doc) }), uint64(32<<20), name)
		require.Less(t, time.Since(began), 9*time.Second, name)
	}
}
