package accept_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAttributes_ContainNoPayload(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := f.accept(doc(note, goodNote, with("schemaVersion", 1)))
	require.Equal(t, map[string]any{
		"openwop.envelope_kind": note, "openwop.envelope_id": "env-1", "envelope_schema_version": int64(1),
		"envelope_schema_version_floor": int64(2), "envelope_schema_version_drift": true, "envelope_outcome": "accepted",
		"envelope_correlation_id": "corr-1", "envelope_content_trust": "trusted",
	}, res.Attributes.Span())
	res = f.accept(`[]`)
	require.NotContains(t, res.Attributes.Span(), "envelope_schema_version_floor")
	require.NotContains(t, res.Attributes.Span(), "envelope_schema_version_drift")
}
