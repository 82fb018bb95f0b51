package kinds_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/acceptor/kinds"
)

// A schema with thousands of findings does not use unbounded memory.
//
//nolint:paralleltest // it measures the allocations of the process
func TestRegister_IsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	list := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	numbered := func(n int, item string) string {
		var out []string
		for i := range n {
			out = append(out, strings.ReplaceAll(item, "#", strconv.Itoa(i)))
		}
		return strings.Join(out, ",")
	}
	tests := map[string]string{
		"a list of types that are none":      `{"type":[` + list(15_000, `1`) + `]}`,
		"a list of names that are none":      `{"required":[` + list(15_000, `1`) + `]}`,
		"properties that are no schemas":     `{"properties":{` + numbered(9000, `"p#":1`) + `}}`,
		"one large branch, many times":       `{"anyOf":[` + list(500, `{"$ref":"#/$defs/a"}`) + `],"$defs":{"a":{"type":"object","properties":{` + numbered(500, `"a#":{"type":"string","enum":["x"]}`) + `},"required":[` + numbered(500, `"a#"`) + `]}}}`,
		"many references to a circle":        `{"anyOf":[` + list(1000, `{"$ref":"#/$defs/a"}`) + `],"$defs":{"a":{"$ref":"#/$defs/a"}}}`,
		"patterns of many letters":           `{"properties":{` + numbered(900, `"p#":{"type":"string","pattern":"[\\pL\\pN]+[\\pL\\pN]{9}#"}`) + `}}`,
		"patterns of names":                  `{"patternProperties":{` + numbered(900, `"(?i)[\\pL]{40}#":true`) + `}}`,
		"many properties, many others asked": `{"type":"object","properties":{` + numbered(600, `"p#":{}`) + `},"required":[` + numbered(9000, `"q#"`) + `]}`,
		"many resources":                     `{"$defs":{` + numbered(700, `"r#":{"$id":"i#","$ref":"i#"}`) + `}}`,
	}
	for name, doc := range tests {
		for _, lint := range []kinds.Lint{kinds.LintOff, kinds.LintWarn, kinds.LintStrict} {
			t.Run(name+", "+string(lint), func(t *testing.T) { //nolint:paralleltest // as above
				least := ^uint64(0)
				for range 3 {
					r, err := kinds.New(lint)
					require.NoError(t, err)
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					_, _ = r.Register("vendor.test.hostile", 1, []byte(doc))
					runtime.ReadMemStats(&after)
					least = min(least, after.TotalAlloc-before.TotalAlloc)
				}
				require.Less(t, least, uint64(16<<20))
			})
		}
	}
}
