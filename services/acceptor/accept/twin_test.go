package accept_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/acceptor/accept"
)

// twin validates documents with the published envelope schema and with the shape step.
type twin struct {
	f         *fixture
	published *schema.Schema
	facts     []any // the two schema documents
}

func newTwin(t testing.TB) twin {
	t.Helper()
	theirs, err := os.ReadFile(filepath.Join(schematest.Dir(t), "schemas", "ai-envelope.schema.json"))
	require.NoError(t, err)
	ours, err := os.ReadFile("envelope.schema.json")
	require.NoError(t, err)
	published, err := schema.Compile("ai-envelope", theirs)
	require.NoError(t, err)
	return twin{newFixture(t), published, []any{schematest.Value(t, theirs), schematest.Value(t, ours)}}
}

// agree asserts that both agree on a document, and returns whether it is valid.
func (w twin) agree(t testing.TB, what string, doc []byte) bool {
	t.Helper()
	want := w.published.Validate(doc)
	if len(want) == 0 && strictjson.Check(doc, strictjson.Limits{
		MaxBytes: accept.MaxPayloadBytes,
		MaxDepth: accept.MaxPayloadDepth,
	}) != nil {
		return true // too deep or too large for a host; a schema has no such limit
	}
	if slices.ContainsFunc(want, func(v schema.Violation) bool {
		return v.Keyword == schema.KeywordBudget || v.Keyword == schema.KeywordNumber && strings.HasPrefix(v.InstancePath, "/payload")
	}) {
		return false // a number that no validator compares; here the payload is judged by a later step
	}
	res, err := w.f.pipeline().Run(context.Background(), w.f.request(string(doc)))
	require.NoError(t, err)
	taken := res.Refusal == nil || res.Refusal.Code != fault.InvalidEnvelopeShape
	if taken != (len(want) == 0) {
		require.Fail(t, "the published schema and the shape step disagree", "%s\n%.800s\npublished: %v\nours: %s", what, doc, want, res.Outcome)
	}
	return taken
}

// The published schema and the shape step agree on every single change to an envelope.
// The changes are derived from both schemas.
func TestShape_AgreesWithThePublishedSchemaOnEverySingleMutation(t *testing.T) {
	t.Parallel()
	w := newTwin(t)
	schematest.Twins{
		Schemas: w.facts,
		// Our schema does not check the time, so samples derived from it have none.
		Adapt: func(sample any) { sample.(map[string]any)["meta"].(map[string]any)["ts"] = "2026-01-31T12:00:00Z" },
		Words: []string{"2026-01-31T12:00:00Z"},
	}.Compare(t, func(what string, doc []byte) bool { return w.agree(t, what, doc) })
}

// FuzzShape_AgreesWithThePublishedSchema: both agree on any document that is strict JSON.
func FuzzShape_AgreesWithThePublishedSchema(f *testing.F) {
	w := newTwin(f)
	for _, facts := range w.facts {
		for _, s := range schematest.Samples(facts, "2026-01-31T12:00:00Z") {
			f.Add(schematest.Document(f, s))
		}
	}
	for _, payload := range []string{`1e999999`, strings.Repeat("[", 70) + strings.Repeat("]", 70)} {
		f.Add([]byte(doc(note, payload)))
	}
	for _, ts := range []string{
		"2016-12-31T23:59:60Z", "2017-01-01T00:59:60+01:00", "2026-01-31t12:00:00z",
		"0000-01-01T00:00:00Z", "2026-01-31T12:00:00.Z",
	} {
		f.Add([]byte(doc(note, goodNote, meta("ts", ts))))
	}
	f.Fuzz(func(t *testing.T, doc []byte) { w.agree(t, "fuzzed", doc) })
}
