package kinds_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/kinds"
)

// publishedKind returns the published schema of a kind of the protocol.
func publishedKind(t *testing.T, kind string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(schematest.Dir(t), "schemas", "envelopes", kind+".schema.json"))
	require.NoError(t, err)
	return b
}

// The published schema and ours agree on every single change to a valid payload. The
// changes are derived from both schemas.
func TestKinds_AgreeWithThePublishedOnesOnEverySingleMutation(t *testing.T) {
	t.Parallel()
	for _, k := range registry(t, kinds.LintOff).All() {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			theirs := publishedKind(t, k.Name)
			published, err := schema.Compile(k.Name, theirs)
			require.NoError(t, err)
			found, ok := registry(t, kinds.LintOff).Find(k.Name)
			require.True(t, ok)
			w := schematest.Twins{
				Schemas: []any{schematest.Value(t, theirs), schematest.Value(t, k.Schema)},
				Words:   []string{"https://x.example/a"},
			}
			w.Compare(t, func(what string, doc []byte) bool { return agree(t, published, found.Payload, what, doc) })
		})
	}
}

// agree asserts that both schemas agree on a document, and returns whether it is valid.
func agree(t *testing.T, published, ours accept.PayloadSchema, what string, doc []byte) bool {
	t.Helper()
	want, got := published.Validate(doc), ours.Validate(doc)
	if (len(want) == 0) != (len(got) == 0) {
		require.Fail(t, "the published schema and ours disagree", "%s\n%.500s\npublished: %v\nours: %v", what, doc, want, got)
	}
	return len(want) == 0
}
