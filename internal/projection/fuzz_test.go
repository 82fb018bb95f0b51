package projection_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/schema"
)

var seeds = []string{
	ticket, `true`, `false`, `{}`, `{"type":"array","items":{"$ref":"#"}}`,
	`{"anyOf":[{"type":"null"},{"type":"object","patternProperties":{"^x":{}},"properties":{"a":{"const":1.0}},"additionalProperties":{"enum":[null,[]]}}]}`,
	`{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"required":["z"]}]},"b":{"oneOf":[{"$ref":"#/$defs/a"},{"type":["string","null"]}]}},"$ref":"#/$defs/a"}`,
	`{"type":["object","array","string"],"prefixItems":[{},{"type":"integer"}],"items":false,"propertyNames":{"pattern":"x"},"dependentRequired":{"a":["b"]}}`,
	`{"$id":"https://x.example/a","$ref":"https://x.example/a#p","$defs":{"p":{"$anchor":"p","minLength":2,"contains":{"$ref":"#"}}}}`,
	`{"anyOf":[{"type":"object","required":["a b"],"properties":{"a b":{},"c":{}}},{"type":"object","required":["d"],"properties":{"d":{"enum":[1]}},"additionalProperties":{"type":"string"}}]}`,
	`{"items":[{"type":"string","nullable":true}],"additionalItems":{"$ref":"#/items/0"},"exclusiveMinimum":true,"minimum":1}`,
	`{"allOf":[{"properties":{"a":true}},{"properties":{"a":{"not":{}}},"unevaluatedProperties":false}]}`,
}

// FuzzCompile: every schema gets a projection that satisfies the vendor's rules, or problems.
func FuzzCompile(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		for _, v := range projection.Vendors() {
			p, problems := projection.Compile(source, v)
			require.Equal(t, p == nil, len(problems) > 0)
			for _, problem := range problems {
				require.NotEmpty(t, problem.Rule)
				require.NotEmpty(t, problem.Message)
			}
			if p == nil {
				continue
			}
			require.Empty(t, projection.LintFor(v, p.Schema()))
			_, err := schema.Compile("projected", p.Schema())
			require.NoError(t, err)
			again, _ := projection.Compile(source, v)
			require.Equal(t, string(p.Schema()), string(again.Schema()))
		}
	})
}

// FuzzRestore: every answer is restored to valid JSON, or rejected with a place. Restore accepts what
// Lift returns.
func FuzzRestore(f *testing.F) {
	for i, s := range seeds {
		for _, answer := range []string{
			`{"value":[{}]}`,
			`{"reasoning":null,"labels":[{"key":"a","value":{"n":null}}],"context":"{}","state":{"kind":"open"}}`,
			`"x"`, `{"otherMembers":"{\"a\":1}","a":null}`,
		} {
			f.Add([]byte(s), []byte(answer), uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, source, answer []byte, which uint8) {
		p, _ := projection.Compile(source, projection.Vendors()[int(which)%len(projection.Vendors())])
		if p == nil {
			return
		}
		before := string(answer)
		restored, err := p.Restore(answer)
		require.Equal(t, before, string(answer), "the answer itself is left alone")
		if err != nil {
			var e *projection.AnswerError
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Reason)
			return
		}
		require.True(t, json.Valid(restored), "%s", restored)
		lifted, err := p.Lift(restored)
		if err != nil {
			return
		}
		_, err = p.Restore(lifted)
		require.NoError(t, err, "%s", lifted)
	})
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, problems := projection.Compile(json.RawMessage(ticket), projection.OpenAI); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}

func BenchmarkRestore(b *testing.B) {
	items := make([]string, 16)
	for i := range items {
		items[i] = fmt.Sprintf(`{"id":%d,"title":"Item number %d, with some words to it","note":%%s,"tags":["a","b"],"price":%d.25}`, i, i, i)
	}
	list := `{"reasoning":"` + strings.Repeat("because ", 60) + `","items":[` + strings.Join(items, ",") + `]}`
	source := `{"type":"object","required":["items"],"additionalProperties":false,"properties":{"reasoning":{"type":"string"},"items":{"type":"array","items":{
		"type":"object","required":["id","title"],"additionalProperties":false,"properties":{"id":{"type":"integer"},"title":{"type":"string"},"note":{"type":"string"},
		"tags":{"type":"array","items":{"type":"string"}},"price":{"type":"number"}}}}}}`
	p := project(b, source, projection.OpenAI)
	for name, note := range map[string]string{"nothing changes": `"n"`, "nulls go": `null`} {
		answer := json.RawMessage(strings.ReplaceAll(list, "%s", note))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(answer)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Restore(answer); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
