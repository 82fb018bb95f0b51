package fold

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/view"
)

func TestInstance_IsThePlaceOfARule(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"/properties/category/enum":                       "/category",
		"/properties/questions/items/properties/id/type":  "/questions/*/id",
		"/properties/action/anyOf/1/properties/kind/enum": "/action/kind",
		"/additionalProperties":                           "",
		"/properties/tags/additionalProperties/type":      "/tags/*",
		"/properties/a~1b/type":                           "/a~1b",
		"/required":                                       "",
	} {
		require.Equal(t, want, instance(rule, ""), rule)
	}
}

func TestProblems_KeepAMessageWithASemicolonTogether(t *testing.T) {
	t.Parallel()
	var messages []string
	for _, p := range problems("additional member not allowed; allowed: a, b (/additionalProperties); want type string (/properties/a/type)") {
		messages = append(messages, p.Message)
	}
	require.Equal(t, []string{"additional member not allowed; allowed: a, b", "want type string"}, messages)
}

func TestGateOf_IdentifiesTheGateByTheMessage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, detail string
		name           view.GateName
		code, want     string
	}{
		{"type-drift", "schemaVersion is above the advertised 1 (/schemaVersions)", "payload", "unknown_schema_version", "schemaVersion is above the advertised 1"},
		{"type-drift", "its type is not one of a, b", "kind", "unknown_envelope_kind", "this host does not advertise the kind"},
		{"schema-violation", "it is a fragment of an envelope", "shape", "invalid_envelope_shape", "the document is not an AI envelope"},
		{"type-mismatch", "want type string (/properties/a/type)", "payload", "envelope_invalid", "a value is of the wrong type"},
	} {
		g := gateOf(failure(tc.reason, tc.detail))
		require.Equal(t, [3]string{string(tc.name), tc.code, tc.want}, [3]string{string(g.Name), g.Code, g.Reason})
	}
}
