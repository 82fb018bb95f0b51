package workflow_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/protocol/workflow"
)

// The published schema and Parse agree on every single change to a definition that uses everything,
// apart from semantic checks: limits are exceeded by one, and enum values differ by a letter.
func TestParse_AgreesWithThePublishedSchemaOnEverySingleMutation(t *testing.T) {
	t.Parallel()
	reference := published(t)
	theirs, err := os.ReadFile(filepath.Join(schematest.Dir(t), "schemas", "workflow-definition.schema.json"))
	require.NoError(t, err)
	valid, invalid := 0, 0
	for m := range schematest.Mutants(schematest.Value(t, []byte(rich)), schematest.Value(t, theirs), schematest.Value(t, workflow.SchemaJSON)) {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(m.Document))
		require.NoError(t, err)
		refused := reference.Validate(completed(v))
		_, problems := workflow.Parse(m.Document)
		if refused != nil {
			invalid++
			require.NotEmpty(t, problems, "%s: Parse accepts what the published schema rejects: %v", m.Change, refused)
			continue
		}
		valid++
		for _, p := range problems {
			// Counts beyond 2^53-1 are rejected, because not every JSON reader can hold them.
			tooLarge := p.Rule == "maximum" && strings.Contains(p.Message, "9007199254740991")
			require.True(t, tooLarge || allowed(p), "%s: Parse rejects what the published schema accepts: %v", m.Change, p)
		}
	}
	t.Logf("%d valid mutants, %d invalid ones", valid, invalid)
	require.Greater(t, valid, 1000)
	require.Greater(t, invalid, 2000)
}
