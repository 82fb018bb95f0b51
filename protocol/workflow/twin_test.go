package workflow_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schematest"
	"waybill.dev/waybill/protocol/workflow"
)

// Every single change to a definition that uses everything is judged alike by the
// published schema and by Parse, semantic checks aside: bounds are crossed by one,
// and listed values are missed by a letter.
func TestParse_AgreesWithThePublishedSchemaOnEverySingleMutation(t *testing.T) {
	t.Parallel()
	reference := published(t)
	theirs, err := os.ReadFile(filepath.Join(schematest.Dir(t), "schemas", "workflow-definition.schema.json"))
	require.NoError(t, err)
	valid, invalid := 0, 0
	for m := range schematest.Mutants(schematest.Value(t, []byte(rich)), schematest.Value(t, theirs), schematest.Value(t, workflow.SchemaJSON)) {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(m.Document))
		require.NoError(t, err)
		refused := reference.Validate(v)
		_, problems := workflow.Parse(m.Document)
		if refused != nil {
			invalid++
			require.NotEmpty(t, problems, "%s: Parse takes what the published schema refuses: %v", m.Change, refused)
			continue
		}
		valid++
		for _, p := range problems {
			// Counts beyond what every reader of JSON can hold exactly are not taken.
			tooLarge := p.Rule == "maximum" && strings.Contains(p.Message, "9007199254740991")
			require.True(t, tooLarge || slices.Contains(semantic, p.Rule), "%s: Parse refuses what the published schema takes: %v", m.Change, p)
		}
	}
	t.Logf("%d valid mutants, %d invalid ones", valid, invalid)
	require.Greater(t, valid, 1000)
	require.Greater(t, invalid, 2000)
}
