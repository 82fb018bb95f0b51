package node_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// A tree refers to itself, which Anthropic alone has no words for. What nothing satisfies nobody can be told.
const (
	plainSchema = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`
	treeSchema  = `{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"below":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["below"]}}}`
	emptySchema = `{"type":"object","properties":{"a":false},"required":["a"]}`
)

// OpenWOP envelope contract §20: a schema that cannot be projected is refused when the workflow is
// linted or registered, with the vendor and the place; where no vendor is named, that is a warning.
func TestReview_SaysWhichVendorCannotBeToldASchema(t *testing.T) {
	t.Parallel()
	const (
		tree  = `/nodes/0/config/outputSchema/$defs/tree/properties/below/items: no-recursive-ref: anthropic cannot be told this schema: the reference leads back to itself; unroll the recursion`
		empty = `/nodes/0/config/outputSchema: nothing-fits: openai and anthropic and gemini cannot be told this schema: no value satisfies the schema here; leave it out, or allow one`
		none  = `/nodes/0/config/outputSchema: not-a-schema: schema "outputSchema" at "/type": not a JSON Schema: not one of the allowed values: "array", "boolean", "integer", "null", "number", "object", "string"`
	)
	for name, tc := range map[string]struct {
		typeID, provider, schema string
		refused, warned          []string
	}{
		"a schema for all":              {node.TypeStructuredOutput, "anthropic", plainSchema, nil, nil},
		"of a vendor that has no words": {node.TypeStructuredOutput, "anthropic", treeSchema, []string{tree}, nil},
		"of one that has":               {node.TypeStructuredOutput, "openai", treeSchema, nil, nil},
		"of a server of one's own":      {node.TypeStructuredOutput, "house", emptySchema, nil, nil},
		"of whatever the run says":      {node.TypeStructuredOutput, "", treeSchema, nil, []string{tree}},
		"for nobody":                    {node.TypeStructuredOutput, "", emptySchema, nil, []string{empty}},
		"none":                          {node.TypeStructuredOutput, "", `{"type":7}`, []string{none}, nil},
		"a node of another type":        {node.TypeCallPrompt, "anthropic", emptySchema, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := `{"outputSchema":` + tc.schema
			if tc.provider != "" {
				config += `,"provider":"` + tc.provider + `"`
			}
			found, warned := node.Builtin().Review(definitionOf(t, nodeJSON("a", tc.typeID, `,"inputs":{},"config":`+config+`}`), ""))
			require.Equal(t, tc.refused, told(found))
			require.Equal(t, tc.warned, told(warned))
		})
	}
}

// told are problems as people read them.
func told(problems []workflow.Problem) (out []string) {
	for _, p := range problems {
		out = append(out, p.Path+": "+p.Rule+": "+p.Message)
	}
	return out
}
