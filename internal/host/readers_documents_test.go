package host

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/redactor/redact"
)

// hardCases are documents that parsers often read differently.
func hardCases() []string {
	deep := func(n int) string { return strings.Repeat(`{"a":[`, n) + `0` + strings.Repeat(`]}`, n) }
	many := func(n int, last string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(`"k` + strconv.Itoa(i) + `":0,`)
		}
		return `{` + b.String() + `"` + last + `":1}`
	}
	return []string{
		// duplicate names: plain, escaped, in another case, in another normalization, in a large object
		`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":1,"A":2}`, `{"type":"x","Type":"y","TYPE":"z"}`,
		`{"é":1,"e\u0301":2}`, `{"ſ":1,"s":2,"K":3,"k":4}`,
		many(20, "k7"), many(20, "\\u006b7"), many(20, "K7"), `[{"a":1},{"a":2}]`, `{"a":{"a":{"a":1}}}`,
		`{"":1,"":2}`, `{"":1,"\u0000":2}`,
		// numbers
		`9007199254740993`, `-9223372036854775809`, `18446744073709551616`, `1e400`, `-1e400`, `1e-400`,
		`0.1`, `0.10`, `1.0`, `1E2`, `-0`, `-0.0`, `1e1000000`,
		`123456789012345678901234567890.123456789`, `[1e0,1.0,1,10e-1]`, `01`, `+1`, `.5`, `5.`, `0x1`,
		`1_000`, `NaN`, `Infinity`, `1e`, `--1`,
		// texts
		`"\ud83d\ude00"`, `"\ud800"`, `"\udc00"`, `"\ud800\u0041"`, `"\udc00\ud800"`, `{"\ud800":1}`,
		`"\u0000"`, "\"\x00\"", "\"\x1f\"", "\"\x7f\"", `"\u2028\u2029"`, "\"\u2028\"",
		`"\x41"`, `"\'"`, `"\/"`, "\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"",
		`"\uD83D\uDE00 \uFEFF \uFFFD"`, `'a'`, `"a`, `"<script>&amp;"`,
		// bytes around the document
		"\xef\xbb\xbf{}", "\xff\xfe{\x00}\x00", ` {} `, "\t\r\n1", "\x0b1", "\u00a01", `{} {}`, `{}x`,
		`1 2`,
		`{}` + "\x00",
		`//x` + "\n1",
		`1//x`, `/**/1`, ``, ` `,
		// grammar
		`[1,]`, `{"a":1,}`, `[,1]`, `{a:1}`, `{"a"}`, `{"a":}`, `[1 2]`, `nul`, `True`, `null`, `[]`,
		`{}`, `[[],{},[{}]]`,
		// nesting
		deep(15), deep(31), deep(32), deep(33), deep(500),
		strings.Repeat("[", 64) + strings.Repeat("]", 64),
		strings.Repeat("[", 65) + strings.Repeat("]", 65),
		strings.Repeat("[", 10001),
		// names with a meaning for a later reader
		`{"payload":{"a":1},"Payload":{"a":2}}`,
		`{"nodeId":"x","NodeID":"y","error":{"code":1},"outputs":7}`,
		`{"__proto__":{"a":1},"constructor":1}`, `{"a/b":1,"a~b":{"~1":2}}`,
		// secrets, and texts that look like secrets
		`{"password":"correct-horse-battery-9","password ":12345678,"token":["ghp_0123456789abcdefghijABCDEFGHIJ012345"],"Authorization":"Bearer abcdefghijklmnop0123456789"}`,
		`"{\\"api_key\\":\\"sk-0123456789abcdefghijABCDEFGHIJ\\"}"`,
		`{"ghp_0123456789abcdefghijABCDEFGHIJ012345":1,"ghp_0123456789abcdefghijABCDEFGHIJ012346":2}`,
		`{"a":"` + hidden + `","` + hidden + `":"x ` + hidden + ` y"}`,
		`"hunter2\u002dis-no-secret"`, `{"hunter2\u002dis-no-secret":1,"[REDACTED:canary]":2}`,
	}
}

// meaning reads a document token by token and strictly: it fails on duplicate names, and keeps the
// digits of numbers.
func meaning(t *testing.T, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	v := nextValue(t, d)
	require.False(t, d.More(), "something follows the document")
	return v
}

func nextValue(t *testing.T, d *json.Decoder) any {
	t.Helper()
	tok, err := d.Token()
	require.NoError(t, err)
	switch tok {
	case json.Delim('{'):
		m := map[string]any{}
		for d.More() {
			name, _ := nextValue(t, d).(string)
			require.NotContains(t, m, name, "a name that is there twice")
			m[name] = nextValue(t, d)
		}
		_, err = d.Token()
		require.NoError(t, err)
		return m
	case json.Delim('['):
		l := []any{}
		for d.More() {
			l = append(l, nextValue(t, d))
		}
		_, err = d.Token()
		require.NoError(t, err)
		return l
	}
	return tok
}

func asDoubles(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64()
		return f
	case []any:
		out := []any{}
		for _, x := range v {
			out = append(out, asDoubles(x))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			out[k] = asDoubles(x)
		}
		return out
	}
	return v
}

func holdsHuge(v any) bool {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		return err != nil || math.IsInf(f, 0)
	case []any:
		return slices.ContainsFunc(v, holdsHuge)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), holdsHuge)
	}
	return false
}

func scrubbed(s *redact.Scrubber, v any) (out any, clash bool) {
	switch v := v.(type) {
	case string:
		text, _ := s.Text(v)
		return text, false
	case []any:
		l := []any{}
		for _, x := range v {
			y, c := scrubbed(s, x)
			l, clash = append(l, y), clash || c
		}
		return l, clash
	case map[string]any:
		m := map[string]any{}
		for k, x := range v {
			name, _ := s.Text(k)
			y, c := scrubbed(s, x)
			m[name], clash = y, clash || c
		}
		return m, clash || len(m) < len(v)
	}
	return v, false
}

// depth counts brackets, including those in strings: an upper bound.
func depth(doc []byte) (deepest int) {
	open := 0
	for _, c := range doc {
		switch c {
		case '{', '[':
			open++
			deepest = max(deepest, open)
		case '}', ']':
			open--
		}
	}
	return deepest
}
