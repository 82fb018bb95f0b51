package projection_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/projection"
)

// Schemas that were searched for because they cost much. Each is taken, or refused
// before it does.
//
//nolint:paralleltest // it measures what the process allocates
func TestCompile_IsBounded(t *testing.T) {
	many := func(n int, item string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = strings.ReplaceAll(item, "#N", fmt.Sprint(i))
		}
		return strings.Join(items, ",")
	}
	deep := func(levels int, name string, inner string) string {
		return strings.Repeat(`{"type":"object","properties":{"`+name+`":`, levels) + inner + strings.Repeat(`}}`, levels)
	}
	members := func(n int) string {
		return `{"type":"object","properties":{` + many(n, `"m#N":{"type":"string"}`) + `}}`
	}
	long := strings.Repeat("n", 30_000)
	const most = uint64(24 << 20)
	both := `"p#N":{"allOf":[{"$ref":"#/$defs/e"},{"$ref":"#/$defs/f"}]}`
	for name, source := range map[string]string{
		"a pattern of a thousand thousands":   `{"type":"string","pattern":"` + strings.Repeat("x{1000}", 90) + `"}`,
		"patterns of many letters":            `{"type":"object","properties":{` + many(480, `"p#N":{"type":"string","pattern":"[\\pL\\pN]+[\\pL\\pN]{9}"}`) + `}}`,
		"patterns of names":                   `{"type":"object","patternProperties":{` + many(700, `"(?i)[\\pL]{40}#N":true`) + `}}`,
		"a long name over many members":       deep(1, long, members(600)),
		"a long name over a long list":        `{"$defs":{"` + long + `":{"enum":[` + many(7000, `#N`) + `]}}}`,
		"a long name over a list of objects":  `{"$defs":{"` + long + `":{"enum":[` + many(5000, `{}`) + `]}}}`,
		"short names, deep":                   deep(30, "a", members(200)),
		"longer names, deep":                  deep(20, strings.Repeat("n", 100), members(40)),
		"a middling name over few members":    deep(1, strings.Repeat("n", 3000), members(90)),
		"unknown words and a union":        `{"type":["null","boolean","object","array","number","string"],` + many(3500, `"_#N":0`) + `,"anyOf":[` + many(300, `{}`) + `]}`,
		"unknown words and true":   `{"type":"string",` + many(3500, `"_#N":0`) + `,"anyOf":[` + many(300, `true`) + `]}`,
		"unknown words at many places":        `{"type":"object","properties":{` + many(80, both) + `},"$defs":{"f":{"$ref":"#/$defs/e"},"e":{"type":["null","object","array","string"],` + many(3500, `"_#N":0`) + `}}}`,
		"rules spoken at many places":         `{"type":"object","properties":{` + many(80, both) + `},"$defs":{"f":{"$ref":"#/$defs/e"},"e":{"type":"object","properties":{"a":{}},"dependentRequired":{` + many(2000, `"_#N":["a"]`) + `}}}}`,
		"a long pattern at many places":       `{"type":"object","properties":{` + many(400, `"p#N":{"$ref":"#/$defs/a","minLength":1}`) + `},"$defs":{"a":{"type":"string","pattern":"` + strings.Repeat("x", 3900) + `"}}}`,
		"names that no property has":          `{"type":"object","properties":{"_":{"type":"string"}},"required":[` + many(9000, `"m#N"`) + `]}`,
		"names in the order of others":        `{"type":"object","properties":{"_":{"type":"string"}},"required":[` + many(4000, `"m#N"`) + `],"propertyOrdering":[` + many(4000, `"o#N"`) + `]}`,
		"a list of types that are none":       `{"type":[` + many(11_000, `1`) + `]}`,
		"properties that are no schemas":      `{"properties":{` + many(5000, `"p#N":1`) + `}}`,
		"unions of an object of many tags":    `{"type":"object","properties":{` + many(120, `"r#N":{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}]}`) + `},"$defs":{"a":{"type":"object","properties":{` + many(200, `"a#N":{"type":"string","enum":["x"]}`) + `},"required":[` + many(200, `"a#N"`) + `]},"b":{"type":"object","properties":{"t":{"type":"string","enum":["B"]}},"required":["t"]}}}`,
		"definitions that share a plain name": `{"type":"object","properties":{` + many(250, `"r#N":{"$ref":"#/$defs/r#N~1漢"}`) + `},"$defs":{` + many(250, `"r#N/漢":{}`) + `}}`,
		"members of six types each":           `{"type":"object","properties":{` + many(490, `"p#N":{"type":["string","number","boolean","null","array","object"]}`) + `}}`,
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // as above
			for _, v := range measured() {
				least := ^uint64(0)
				for range 3 { // the test's own process may allocate, too
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					p, problems := projection.Compile(json.RawMessage(source), v)
					runtime.ReadMemStats(&after)
					least = min(least, after.TotalAlloc-before.TotalAlloc)
					require.Equal(t, p == nil, len(problems) > 0)
					if least < most {
						break
					}
				}
				require.Less(t, least, most, "%s, %d bytes", v, len(source))
			}
		})
	}
}

// measured are the vendors whose use of memory is measured: one of those with the same rules, and in the
// short form those that hosts have a provider for, which differ most.
func measured() (out []projection.Vendor) {
	if testing.Short() || raced {
		return projection.Builtin()
	}
	var rows []projection.Dialect
	for _, v := range projection.Vendors() {
		row, _ := projection.DialectOf(v)
		row.Vendor, row.Mode, row.Source = "", "", ""
		if !slices.ContainsFunc(rows, func(other projection.Dialect) bool { return reflect.DeepEqual(row, other) }) {
			rows, out = append(rows, row), append(out, v)
		}
	}
	return out
}

// What is no keyword of a model's is left out before anything is copied.
func TestCompile_LeavesOutUnknownWords(t *testing.T) {
	t.Parallel()
	for _, v := range projection.Vendors() {
		plain, problems := projection.Compile(json.RawMessage(`{"type":"object","properties":{"x-a":{"type":"string"}}}`), v)
		require.Empty(t, problems)
		noted, problems := projection.Compile(json.RawMessage(`{"x-own":1,"title":"t","type":"object","properties":{"x-a":{"type":"string","$comment":"c","examples":["x"]}}}`), v)
		require.Empty(t, problems)
		require.JSONEq(t, string(plain.Schema()), string(noted.Schema()))
	}
}
