package projection_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/protocol/strictjson"
)

// project compiles a schema that is meant to have a projection, and holds it to
// the vendor's rules.
func project(t testing.TB, source string, v projection.Vendor) *projection.Projection {
	t.Helper()
	p, problems := projection.Compile(json.RawMessage(source), v)
	require.Empty(t, problems, "%s: %s", v, source)
	require.Empty(t, projection.LintFor(v, p.Schema()), "%s: %s", v, p.Schema())
	_, err := schema.Compile("projected", p.Schema())
	require.NoError(t, err)
	return p
}

// roundTrip lifts a value, holds the answer to the projection, and restores it.
func roundTrip(t testing.TB, p *projection.Projection, instance string) string {
	t.Helper()
	answer, err := p.Lift(json.RawMessage(instance))
	require.NoError(t, err, instance)
	projected, err := schema.Compile("projected", p.Schema())
	require.NoError(t, err)
	require.Empty(t, projected.Validate(answer), "%s\n%s", p.Schema(), answer)
	restored, err := p.Restore(answer)
	require.NoError(t, err, "%s", answer)
	require.Equal(t, decoded(t, instance), decoded(t, string(restored)), "%s\n%s", p.Schema(), answer)
	return string(answer)
}

// decoded reads without rounding numbers.
func decoded(t require.TestingT, doc string) any {
	v, err := strictjson.Value([]byte(doc), strictjson.Limits{})
	require.NoError(t, err, doc)
	return v
}

// values are payloads of the protocol's kinds.
var values = map[string][]string{
	"clarification.request": {
		`{"questions":[{"id":"q","question":"?"}]}`,
		`{"reasoning":"r","questions":[{"id":"q","question":"?","schema":{"type":"string"},"context":{"a":[1,{"b":null}],"n":9007199254740993}}],"contextType":"c"}`,
	},
	"schema.request":  {`{"envelopeType":"x"}`, `{"reasoning":"","envelopeType":"x","reason":"y"}`},
	"schema.response": {`{"envelopeType":"x","ack":true}`},
	"error": {
		`{"code":"c","message":"m"}`, `{"code":"c","message":"m","details":{}}`,
		`{"reasoning":"r","code":"c","message":"m","details":{"a":{"b":1e300}}}`,
	},
	"media.image": {
		`{"bytes":0}`,
		`{"url":"https://x.example/1","base64":"AA==","bytes":12345678901234567890,"mimeType":"image/png","alt":"a"}`,
	},
	"media.audio": {`{"bytes":1}`, `{"bytes":1,"durationSeconds":1.50}`},
	"media.file":  {`{"bytes":1,"name":"n"}`},
	"ui.a2ui-surface": {
		`{"catalogVersion":"0.9.1","surface":{"components":[]}}`,
		`{"reasoning":"r","catalogVersion":"0.9.1","surface":{"title":"t","components":[{"component":"heading","text":"h"},{"component":"heading","text":"h","level":2},
			{"component":"field.select","id":"i","label":"l","options":[{"value":"v","label":"l"}],"required":true},
			{"component":"field.checkbox","id":"i","label":"l","default":false},{"component":"action.button","id":"i","label":"l","action":{"target":"resume"}}]}}`,
	},
}

func TestCompile_ProjectsThePublishedKindsForEveryVendor(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(schematest.Dir(t), "schemas", "envelopes", "*.schema.json"))
	require.NoError(t, err)
	require.Len(t, files, len(values))
	for kind, instances := range values {
		source, err := os.ReadFile(filepath.Join(schematest.Dir(t), "schemas", "envelopes", kind+".schema.json"))
		require.NoError(t, err)
		for _, v := range projection.Vendors() {
			p := project(t, string(source), v)
			for _, instance := range instances {
				roundTrip(t, p, instance)
			}
		}
	}
}
