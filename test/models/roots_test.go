package models

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/openaicompat"
)

// house is an operator's own server, not a vendor: it gets schemas unchanged.
var house = openHouse()

func openHouse() *vendor {
	v := &vendor{id: "house", key: "sk-double-house-7c6b5a493827", seeing: "house-7b", blind: "house-7b-tools", desk: newDesk(), read: readAnyOpenAI}
	s := openaicompat.New(openaicompat.Options{
		Models: []string{v.seeing, v.blind},
		Answer: func(r openaicompat.Recorded) openaicompat.Reply {
			return openaiReply(v.desk.answer(r.Header, r.Body), v)
		},
	})
	v.url, v.close = s.URL(), s.Close
	return v
}

// readAnyOpenAI also reads schemas that are not strict.
func readAnyOpenAI(body []byte) (parsedRequest, error) {
	return readOpenAI([]byte(strings.ReplaceAll(string(body), `"strict":false`, `"strict":true`)))
}

// root is a schema as authors write it, a value, and the answer of a model that follows the schema
// or its projection.
type root struct{ schema, value, plain, projected string }

var roots = map[string]root{
	"enum":    {`{"enum":["yes","no"]}`, `"yes"`, `"yes"`, `{"value":"yes"}`},
	"integer": {`{"type":"integer"}`, `42`, `42`, `{"value":42}`},
	"boolean": {`{"type":"boolean"}`, `false`, `false`, `{"value":false}`},
	"string":  {`{"type":"string","minLength":2}`, `"two words"`, `"two words"`, `{"value":"two words"}`},
	"array":   {`{"type":"array","items":{"type":"string"}}`, `["a","b"]`, `["a","b"]`, `{"value":["a","b"]}`},
	"older": {
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["a","e","n"],"definitions":{"e":{"type":"string","pattern":"^(?!x)[a-z]{1,1500}$"}},
		"properties":{"a":{"type":"string","nullable":true},"e":{"$ref":"#/definitions/e"},"n":{"type":"number","minimum":0,"exclusiveMinimum":true},
		"u":{"anyOf":[{"type":"object","required":["x"],"properties":{"x":{"type":"integer"}}},{"type":"object","required":["y"],"properties":{"y":{"type":"integer"},"z":{"type":"integer"}}}]}}}`,
		`{"a":null,"e":"abc","n":1.5,"u":{"y":2}}`, `{"a":null,"e":"abc","n":1.5,"u":{"y":2}}`, `{"a":null,"e":"abc","n":1.5,"u":{"y":2,"z":null}}`,
	},
}

// turn returns the answer that lists the value as an envelope.
func (r root) turn(name string, plain bool) string {
	payload, meta := r.value, `,"meta":null`
	if name == "older" {
		payload = r.projected
	}
	if plain {
		payload, meta = r.plain, ""
	}
	return fmt.Sprintf(`{"envelopes":[{"type":%q,"payload":%s%s}]}`, rootKind(name), payload, meta)
}

func rootKind(name string) string { return "vendor.acme.root." + name }

// addRootKinds adds the kinds of the roots to files.
func addRootKinds(files map[string]string) {
	for name, r := range roots {
		files["kinds/"+rootKind(name)+".schema.json"] = r.schema
	}
}

// rootWorkflows ask for each schema: as a value, as the payload of a kind, and as an envelope among
// others.
func rootWorkflows() (out []string) {
	for name, r := range roots {
		value := fmt.Sprintf(`{"prompt":%q,"outputSchema":%s}`, question, r.schema)
		payload := fmt.Sprintf(`{"prompt":%q,"envelopeType":%q,"turn":"payload"}`, question, rootKind(name))
		turn := fmt.Sprintf(`{"prompt":%q,"envelopeType":%q}`, question, rootKind(name))
		out = append(out, workflow("root-"+name+"-value", node("ask", "core.ai.structuredOutput", value, "{}")),
			workflow("root-"+name+"-kind", node("ask", "core.ai.callPrompt", payload, "{}")),
			workflow("root-"+name+"-turn", node("ask", "core.ai.callPrompt", turn, "{}")))
	}
	return out
}

// OpenWOP envelope contract §20: schemas that are not strict objects, with every provider, as a format
// and as a tool. The value is wrapped where the vendor wants an object, and unwrapped from the
// answer. An operator's own server gets the schema unchanged.
func TestRoots_EverySchemaWithEveryProvider(t *testing.T) {
	t.Parallel()
	client(t, apiKey) // load the schemas before the parallel tests
	for _, v := range append([]*vendor{house}, vendors...) {
		for _, model := range []string{v.seeing, v.blind} {
			for name, r := range roots {
				for _, shape := range []string{"value", "kind", "turn"} {
					id := unsafeInName.ReplaceAllString(strings.ToLower("root "+v.id+" "+model+" "+name+" "+shape), "-")
					text := r.projected
					if v == house && (model == v.seeing || name == "older") {
						text = r.plain
					}
					if shape == "turn" {
						text = r.turn(name, v == house)
					}
					t.Run(id, func(t *testing.T) {
						v.desk.put(id, answer{text: text, in: 1, out: 1})
						c := client(t, apiKey)
						runID := start(t, c, asks("root-"+name+"-"+shape, id, v, model, ""))
						t.Parallel() // start all runs before checking the first
						events := finish(t, c, runID)
						require.Equal(t, "run.completed", events[len(events)-1].Type, "%s", dump(events))
						var done struct {
							Outputs struct {
								Output json.RawMessage `json:"output"`
							} `json:"outputs"`
						}
						require.NoError(t, json.Unmarshal(of(events, completed)[0].Payload, &done))
						require.JSONEq(t, r.value, string(done.Outputs.Output))
						require.Len(t, of(events, artifact), map[string]int{"value": 0, "kind": 1, "turn": 1}[shape])
						calls := v.desk.of(id)
						require.Len(t, calls, 1)
						asked, err := v.read(calls[0].body)
						require.NoError(t, err)
						checkRoot(t, v, model, name, shape, r, asked)
					})
				}
			}
		}
	}
}

// checkRoot checks the schema that a provider was sent.
func checkRoot(t *testing.T, v *vendor, model, name, shape string, r root, asked parsedRequest) {
	t.Helper()
	require.Equal(t, model == v.blind, asked.tool)
	switch {
	case shape == "turn":
		require.Contains(t, string(asked.schema), `"envelopes"`)
	case v != house || asked.tool:
		require.Contains(t, string(asked.schema), `"type":"object"`)
	case name != "older":
		require.JSONEq(t, r.schema, string(asked.schema))
	}
	if name == "older" {
		require.NotContains(t, string(asked.schema), "nullable")
		require.NotContains(t, string(asked.schema), "draft-07")
		if v == house {
			require.Contains(t, string(asked.schema), `"pattern":"^(?!x)[a-z]{1,1500}$"`)
		}
	}
}
