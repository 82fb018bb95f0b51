package projection_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/schema"
)

func turnKinds() []projection.TurnKind {
	return []projection.TurnKind{
		{Name: "vendor.x.note", Rendered: true, Schema: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema",
			"$id":"https://x.test/note","type":"object","additionalProperties":false,"required":["text"],"properties":{"text":{"type":"string"}}}`)},
		{Name: "vendor.x.tree", Rendered: true, Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["name"],
			"properties":{"name":{"type":"string"},"size":{"$ref":"#/$defs/size"},"below":{"type":"array","items":{"$ref":"#"}}},
			"$defs":{"size":{"type":"integer"}}}`)},
		{Name: "error", Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["code"],
			"properties":{"code":{"type":"string"},"details":{"type":"object"}}}`)},
	}
}

func TestTurn_ValidatesEachKindByItsType(t *testing.T) {
	t.Parallel()
	source := projection.Turn(turnKinds())
	s, err := schema.Compile("turn", source)
	require.NoError(t, err, "%s", source)
	for doc, valid := range map[string]bool{
		`{"envelopes":[{"type":"vendor.x.note","payload":{"text":"a"}}]}`:                                         true,
		`{"envelopes":[{"type":"vendor.x.note","payload":{"text":"a"},"meta":{"rendering":{"display":"card"}}}]}`: true,
		`{"envelopes":[{"type":"vendor.x.tree","payload":{"name":"a","size":1,"below":[{"name":"b"}]}}]}`:         true,
		`{"envelopes":[{"type":"vendor.x.note","payload":{"text":"a"}},{"type":"error","payload":{"code":"x"}}]}`: true,
		`{"envelopes":[{"type":"vendor.x.tree","payload":{"name":"a","below":[{"text":"b"}]}}]}`:                  false,
		`{"envelopes":[{"type":"vendor.x.tree","payload":{"name":"a","size":"b"}}]}`:                              false,
		`{"envelopes":[{"type":"vendor.x.note","payload":{"name":"a"}}]}`:                                         false,
		`{"envelopes":[{"type":"vendor.x.other","payload":{"text":"a"}}]}`:                                        false,
		`{"envelopes":[{"type":"error","payload":{"code":"x"},"meta":{}}]}`:                                       false,
		`{"envelopes":[]}`: false,
		`{"text":"a"}`:     false,
	} {
		require.Equal(t, valid, len(s.Validate([]byte(doc))) == 0, doc)
	}
}

// Each vendor takes the turn of kinds that it takes alone, and its answers are restored.
func TestTurn_ProjectsForEachVendor(t *testing.T) {
	t.Parallel()
	for _, v := range projection.Vendors() {
		kinds := turnKinds()
		if _, problems := projection.Compile(kinds[1].Schema, v); len(problems) > 0 { // it takes no recursion
			kinds = append(kinds[:1], kinds[2:]...)
		}
		p, problems := projection.Compile(projection.Turn(kinds), v)
		require.Empty(t, problems, v)
		require.Contains(t, string(p.Schema()), `"vendor.x.note"`)
		require.Contains(t, string(p.Schema()), `"error"`)
		want := `{"envelopes":[{"type":"error","payload":{"code":"x","details":{"a":1}}}]}`
		lifted, err := p.Lift(json.RawMessage(want))
		require.NoError(t, err, v)
		restored, err := p.Restore(lifted)
		require.NoError(t, err, v)
		require.JSONEq(t, want, string(restored), v)
	}
}

// Kinds are parts of one document. Their names, ids and anchors may clash there.
func TestTurn_KeepsTheReferencesOfEachKindApart(t *testing.T) {
	t.Parallel()
	of := func(typ string) string {
		return `"type":"object","additionalProperties":false,"required":["v"],"properties":{"v":{"$ref":"#v"},"w":{"$ref":"#/$defs/a~1b%20%25"},"x":{"$ref":"part"},"y":{"$ref":"part#inner"},"z":{"$dynamicRef":"#d"}},
			"$defs":{"a/b %":{"type":"` + typ + `"},"v":{"$anchor":"v","type":"` + typ + `"},"d":{"$dynamicAnchor":"d","type":"` + typ + `"},
			"part":{"$id":"part","type":"array","items":{"$ref":"#/$defs/one"},"$defs":{"one":{"$anchor":"inner","type":"` + typ + `"}}}}`
	}
	kinds := []projection.TurnKind{
		{Name: "vendor.x.a_b", Schema: json.RawMessage(`{"$id":"https://x.test/a",` + of("string") + `}`)},
		{Name: "vendor.x.a.b", Schema: json.RawMessage(`{"$id":"https://x.test/b",` + of("integer") + `}`)},
		{Name: "vendor.x.a-b", Schema: json.RawMessage(`{"$id":"https://x.test/c","type":"object","additionalProperties":false,"required":["v"],
			"properties":{"v":{"$ref":"https://x.test/c#/$defs/v"},"w":{"$ref":"c"}},"$defs":{"v":{"type":"boolean"}}}`)},
		{Name: "vendor.x.any", Schema: json.RawMessage(`true`)},
	}
	source := projection.Turn(kinds)
	s, err := schema.Compile("turn", source)
	require.NoError(t, err, "%s", source)
	for doc, valid := range map[string]bool{
		`{"type":"vendor.x.a_b","payload":{"v":"s","w":"s","x":["s"],"y":"s","z":"s"}}`: true,
		`{"type":"vendor.x.a.b","payload":{"v":1,"w":1,"x":[1],"y":1,"z":1}}`:           true,
		`{"type":"vendor.x.a_b","payload":{"v":1}}`:                                     false,
		`{"type":"vendor.x.a.b","payload":{"v":1,"w":"s"}}`:                             false,
		`{"type":"vendor.x.a_b","payload":{"v":"s","x":[1]}}`:                           false,
		`{"type":"vendor.x.a.b","payload":{"v":1,"y":"s"}}`:                             false,
		`{"type":"vendor.x.a.b","payload":{"v":1,"z":"s"}}`:                             false,
		`{"type":"vendor.x.a-b","payload":{"v":true,"w":{"v":false}}}`:                  true,
		`{"type":"vendor.x.a-b","payload":{"v":1}}`:                                     false,
		`{"type":"vendor.x.any","payload":[1]}`:                                         true,
	} {
		require.Equal(t, valid, len(s.Validate([]byte(`{"envelopes":[`+doc+`]}`))) == 0, doc)
	}
	for _, v := range []projection.Vendor{projection.OpenAI, projection.Gemini, projection.Groq} {
		p, problems := projection.Compile(source, v)
		require.Empty(t, problems, v)
		require.NotContains(t, string(p.Schema()), "$anchor")
	}
}
