package kinds_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/kinds"
)

// both returns the published schema of a kind of the protocol, and ours.
func both(t *testing.T, kind string) (published, ours accept.PayloadSchema) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(schematest.Dir(t), "schemas", "envelopes", kind+".schema.json"))
	require.NoError(t, err)
	p, err := schema.Compile(kind, b)
	require.NoError(t, err)
	k, ok := registry(t, kinds.LintOff).Find(kind)
	require.True(t, ok)
	return p, k.Payload
}

// payloads are one valid and many almost valid documents per kind.
var payloads = map[string]struct{ good, bad []string }{
	accept.KindClarificationRequest: {
		good: []string{
			`{"questions":[{"id":"q","question":"?"}]}`,
			`{"reasoning":"","questions":[{"id":"q","question":"?","schema":{},"context":{"any":[1]}},{"id":"q","question":"?"}],"contextType":""}`,
		},
		bad: []string{
			`{}`, `{"questions":[]}`, `{"questions":{}}`, `{"questions":[{"id":"q"}]}`,
			`{"questions":[{"question":"?"}]}`,
			`{"questions":[{"id":"","question":"?"}]}`, `{"questions":[{"id":"q","question":""}]}`,
			`{"questions":[{"id":"q","question":"?","x":1}]}`,
			`{"questions":[{"id":"q","question":"?","schema":true}]}`,
			`{"questions":[{"id":"q","question":"?","context":[]}]}`,
			`{"questions":[{"id":"q","question":"?"}],"contextType":7}`,
			`{"questions":[{"id":"q","question":"?"}],"reasoning":null}`,
			`{"questions":[{"id":"q","question":"?"}],"extra":1}`, `[]`, `null`, `"x"`,
		},
	},
	accept.KindSchemaRequest: {
		good: []string{`{"envelopeType":"x"}`, `{"envelopeType":"x","reason":"","reasoning":"y"}`},
		bad: []string{
			`{}`, `{"envelopeType":""}`, `{"envelopeType":7}`, `{"envelopeType":"x","reason":1}`,
			`{"envelopeType":"x","ack":true}`,
		},
	},
	accept.KindSchemaResponse: {
		good: []string{`{"envelopeType":"x","ack":true}`},
		bad: []string{
			`{"envelopeType":"x"}`, `{"ack":true}`, `{"envelopeType":"x","ack":false}`,
			`{"envelopeType":"x","ack":1}`, `{"envelopeType":"x","ack":"true"}`,
			`{"envelopeType":"x","ack":true,"reasoning":"r"}`,
		},
	},
	accept.KindError: {
		good: []string{`{"code":"x","message":"y"}`, `{"code":"x","message":"y","details":{"a":[]},"reasoning":"r"}`},
		bad: []string{
			`{"code":"x"}`, `{"message":"y"}`, `{"code":"","message":"y"}`, `{"code":"x","message":""}`,
			`{"code":"x","message":"y","details":[]}`, `{"code":"x","message":"y","extra":1}`,
		},
	},
	accept.KindImage: {
		good: []string{
			`{"bytes":0}`,
			`{"url":"https://x.example/a","base64":"","bytes":12.0,"mimeType":"image/png","alt":""}`,
		},
		bad: []string{
			`{}`, `{"bytes":-1}`, `{"bytes":1.5}`, `{"bytes":"1"}`, `{"bytes":1,"url":"not a uri"}`,
			`{"bytes":1,"url":"/relative"}`, `{"bytes":1,"alt":null}`,
			`{"bytes":1,"name":"a"}`, `{"bytes":1,"durationSeconds":1}`, `{"bytes":1,"reasoning":"r"}`, `[]`,
		},
	},
	accept.KindAudio: {
		good: []string{
			`{"bytes":1,"durationSeconds":0}`,
			`{"bytes":1,"durationSeconds":0.5,"base64":"AA==","url":"urn:x","mimeType":"","alt":"a"}`,
		},
		bad: []string{
			`{"durationSeconds":1}`, `{"bytes":1,"durationSeconds":-0.1}`,
			`{"bytes":1,"durationSeconds":"1"}`, `{"bytes":1,"name":"a"}`,
		},
	},
	accept.KindFile: {
		good: []string{
			`{"bytes":1,"name":""}`,
			`{"bytes":1,"name":"a.pdf","base64":"AA==","url":"urn:x","mimeType":"","alt":"a"}`,
		},
		bad: []string{`{"name":"a"}`, `{"bytes":1,"name":1}`, `{"bytes":1,"durationSeconds":1}`},
	},
	accept.KindSurface: {
		good: []string{
			`{"catalogVersion":"0.9.1","surface":{"components":[]}}`,
			`{"reasoning":"r","catalogVersion":"0.9.1","surface":{"title":"t","components":[{"component":"heading","text":"h","level":6},{"component":"text","text":""},` +
				`{"component":"field.text","id":"a","label":"A","placeholder":"","required":true},{"component":"field.date","id":"d","label":"D","required":false},` +
				`{"component":"field.select","id":"s","label":"S","options":[{"value":"1","label":"one"}]},{"component":"field.checkbox","id":"c","label":"C","default":true},` +
				`{"component":"action.button","id":"b","label":"B","action":{"target":"resume"}}]}}`,
		},
		bad: []string{
			`{"catalogVersion":"0.9.2","surface":{"components":[]}}`, `{"surface":{"components":[]}}`,
			`{"catalogVersion":"0.9.1"}`,
			`{"catalogVersion":"0.9.1","surface":{}}`,
			`{"catalogVersion":"0.9.1","surface":{"components":[{}]}}`,
			surface(`{"component":"script","text":"x"}`), surface(`{"component":"heading"}`),
			surface(`{"component":"heading","text":"h","level":0}`),
			surface(`{"component":"heading","text":"h","level":7}`),
			surface(`{"component":"heading","text":"h","onClick":"x"}`),
			surface(`{"component":"text","text":1}`), surface(`{"component":"field.text","id":"a"}`),
			surface(`{"component":"field.text","label":"a"}`),
			surface(`{"component":"field.date","id":"a","label":"a","placeholder":"x"}`),
			surface(`{"component":"field.select","id":"a","label":"a","options":[]}`),
			surface(`{"component":"field.select","id":"a","label":"a","options":[{"value":"x"}]}`),
			surface(`{"component":"field.select","id":"a","label":"a"}`),
			surface(`{"component":"field.checkbox","id":"a","label":"a","default":"true"}`),
			surface(`{"component":"field.checkbox","id":"a","label":"a","required":true}`),
			surface(`{"component":"action.button","id":"a","label":"a"}`),
			surface(`{"component":"action.button","id":"a","label":"a","action":{"target":"https://x.example"}}`),
			surface(`{"component":"action.button","id":"a","label":"a","action":{"target":"resume","url":"https://x.example"}}`),
		},
	},
}

func surface(component string) string {
	return `{"catalogVersion":"0.9.1","surface":{"components":[` + component + `]}}`
}

func TestKinds_AgreeWithThePublishedOnesOnExamples(t *testing.T) {
	t.Parallel()
	for kind, docs := range payloads {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			published, ours := both(t, kind)
			for _, d := range docs.good {
				require.Empty(t, published.Validate([]byte(d)), d)
				require.Empty(t, ours.Validate([]byte(d)), d)
			}
			for _, d := range docs.bad {
				require.NotEmpty(t, published.Validate([]byte(d)), d)
				require.NotEmpty(t, ours.Validate([]byte(d)), d)
			}
		})
	}
}

// mutate changes a document in a few random places.
func mutate(t *rapid.T, v any) any {
	if rapid.IntRange(0, 5).Draw(t, "replace") == 0 {
		return rapid.SampledFrom([]any{
			nil, true, false, 1.0, 0.5, "", "x", strings.Repeat("ü", 128), strings.Repeat("ü", 129), strings.Repeat("x", 256),
			strings.Repeat("x", 257), strings.Repeat("x", 1024), strings.Repeat("x", 1025),
			[]any{},
			map[string]any{},
			map[string]any{"id": "a", "question": "b"},
			map[string]any{"component": "text", "text": "b"},
			-1.0, 7.0, "0.9.1", "field.date", "resume",
		}).Draw(t, "with")
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if rapid.IntRange(0, 9).Draw(t, "drop "+k) > 0 {
				out[k] = mutate(t, x)
			}
		}
		if rapid.IntRange(0, 9).Draw(t, "add") == 0 {
			out[rapid.SampledFrom([]string{
				"extra", "reasoning", "context", "schema", "details", "reason", "contextType", "text",
				"options", "required", "url", "name", "level",
			}).Draw(t, "name")] = mutate(t, "x")
		}
		return out
	case []any:
		out := []any{}
		for _, x := range v {
			out = append(out, mutate(t, x))
		}
		return out
	}
	return v
}

func TestKinds_AgreeWithThePublishedOnesOverGeneratedDocuments(t *testing.T) {
	t.Parallel()
	for kind, docs := range payloads {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			published, ours := both(t, kind)
			rapid.Check(t, func(t *rapid.T) {
				var v any
				require.NoError(t, json.Unmarshal([]byte(rapid.SampledFrom(docs.good).Draw(t, "base")), &v))
				d, err := json.Marshal(mutate(t, v))
				require.NoError(t, err)
				want, got := published.Validate(d), ours.Validate(d)
				require.Equal(t, len(want) == 0, len(got) == 0, "%s\npublished: %v\nours: %v", d, want, got)
			})
		})
	}
}
