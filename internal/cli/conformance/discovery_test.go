package conformance

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/test/harness"
)

// The embedded schema accepts a changed discovery document exactly if the published schema does.
// It leaves out members that hosts do not have to advertise.
func TestDiscoverySchema_AgreesWithThePublishedOne(t *testing.T) {
	t.Parallel()
	published := harness.LoadSchemas(t)
	schematest.Twins{Schemas: []any{schematest.Value(t, discoverySchemaJSON)}}.Compare(t, func(what string, doc []byte) bool {
		theirs, ours := published.Validate("capabilities.schema.json", doc), discoverySchema().Validate(doc)
		require.Equal(t, theirs == nil, len(ours) == 0, "%s\n%s\npublished: %v\nours: %v", what, doc, theirs, ours)
		return len(ours) == 0
	})
}

func TestEnvelope_IsClosed(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"error":"run_not_found","message":"no"}`:              "",
		`{"message":"no","error":"teapot","details":{"a":[1]}}`: "",
		`[]`:                                    "not a JSON object",
		`null`:                                  "error or message is missing",
		`{"error":"x"}`:                         "error or message is missing",
		`{"error":"","message":"no"}`:           "error is not a string, or is empty",
		`{"error":{"code":"x"},"message":"no"}`: "error is not a string, or is empty",
		`{"error":"x","message":"n","details":[]}`:   "details is not an object",
		`{"error":"x","message":"n","details":null}`: "details is not an object",
		`{"error":"x","message":"n","code":5}`:       "unknown member \"code\"",
	} {
		require.Equal(t, want, envelope([]byte(doc)), doc)
	}
}

// Scripts and reports refer to checks by id.
func TestChecks_KeepTheirIDs(t *testing.T) {
	t.Parallel()
	var ids []string
	for _, c := range slices.Concat(hostChecks(), startChecks(), readChecks()) {
		require.Regexp(t, `^host core [0-9]+\.[0-9]+$`, c.section, c.id)
		ids = append(ids, c.id)
	}
	require.Equal(t, []string{
		"discovery.public", "discovery.schema", "discovery.version", "discovery.kinds", "discovery.etag",
		"discovery.schemas", "discovery.openapi",
		"auth.required", "auth.unknown-key", "errors.unknown-run", "errors.unknown-path",
		"http.traceparent",
		"runs.created", "idempotency.same-request", "idempotency.other-request", "runs.conditional",
		"poll.repeats", "poll.beyond", "poll.cursor", "stream.whole", "stream.resume", "stream.mode",
		"stream.json", "bundle.events",
	}, ids)
}
