package node_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// A tree refers to itself, which only Anthropic does not support. No vendor supports an unsatisfiable schema.
const (
	plainSchema = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`
	treeSchema  = `{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"below":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["below"]}}}`
	emptySchema = `{"type":"object","properties":{"a":false},"required":["a"]}`
)

// OpenWOP envelope contract §20: a schema that cannot be projected is refused when the workflow is
// linted or registered, with the vendor and the place; where no vendor is named, that is a warning.
func TestReview_NamesTheVendorThatCannotExpressASchema(t *testing.T) {
	t.Parallel()
	const (
		tree  = `/nodes/0/config/outputSchema/$defs/tree/properties/below/items: no-recursive-ref: not supported by anthropic: the reference leads back to itself; unroll the recursion`
		empty = `/nodes/0/config/outputSchema: nothing-fits: not supported by openai and anthropic and gemini: no value satisfies the schema here; leave it out, or allow one`
		none  = `/nodes/0/config/outputSchema/type: not-a-schema: not a JSON Schema: not one of the allowed values: "array", "boolean", "integer", "null", "number", "object", "string"`
	)
	for name, tc := range map[string]struct {
		typeID, provider, schema string
		refused, warned          []string
	}{
		"a schema for all":              {node.TypeStructuredOutput, "anthropic", plainSchema, nil, nil},
		"of a vendor that has no words": {node.TypeStructuredOutput, "anthropic", treeSchema, []string{tree}, nil},
		"of one that has":               {node.TypeStructuredOutput, "openai", treeSchema, nil, nil},
		"of a model that is held to none": {
			node.TypeStructuredOutput, `openai","model":"gpt-audio-1.5`, emptySchema, nil, nil,
		},
		"of a server of one's own": {node.TypeStructuredOutput, "house", emptySchema, nil, nil},
		"of whatever the run says": {node.TypeStructuredOutput, "", treeSchema, nil, []string{tree}},
		"no provider":              {node.TypeStructuredOutput, "", emptySchema, nil, []string{empty}},
		"none":                     {node.TypeStructuredOutput, "", `{"type":7}`, []string{none}, nil},
		"a name that is renamed": {
			node.TypeStructuredOutput, "anthropic", `{"type":"object","required":["a b"],"properties":{"a b":{"type":"string"}}}`, nil,
			[]string{`/nodes/0/config/outputSchema/properties/a b: renamed-property: rewritten for anthropic at "/properties/a b": sent as a_b, because names of properties must match ^[a-zA-Z0-9_.-]{1,64}$`},
		},
		"a scalar": {
			node.TypeStructuredOutput, "openai", `{"type":"integer"}`, nil,
			[]string{`/nodes/0/config/outputSchema: wrapped-root: rewritten for openai at "": sent as the member "value" of an object`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := `{"outputSchema":` + tc.schema
			if tc.provider != "" {
				config += `,"provider":"` + tc.provider + `"`
			}
			found, warned := node.Builtin().Review(definitionOf(t, nodeJSON("a", tc.typeID, `,"inputs":{},"config":`+config+`}`), ""), nil)
			require.Equal(t, tc.refused, formatProblems(found))
			require.Equal(t, tc.warned, formatProblems(warned))
		})
	}
}

// The schema of a pack's type is not in the definition; a problem names the node that uses it.
func TestReview_NamesTheNodeIfTheSchemaIsOfItsType(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	packs, _, err := pack.Load([]pack.Source{{Folder: "desk", FS: fstest.MapFS{
		"pack.json": file(`{"name":"vendor.acme.desk","version":"1.2.0","engines":{"openwop":"*"},"nodes":[
			{"typeId":"vendor.acme.desk.ask","version":"1.0.0","category":"chat","role":"side-effect"},
			{"typeId":"vendor.acme.desk.own","version":"1.0.0","category":"chat","role":"side-effect"}]}`),
		"waybill.json": file(`{"nodes":{"vendor.acme.desk.ask":{"base":"core.ai.structuredOutput","config":{"outputSchema":` + treeSchema + `}},
			"vendor.acme.desk.own":{"base":"core.ai.structuredOutput","config":{"provider":"anthropic","outputSchema":` + treeSchema + `}}}}`),
	}}}, pack.Host{Types: node.Builtin().IDs()})
	require.NoError(t, err)
	c := node.Builtin().With(packs)
	for name, tc := range map[string]struct{ typeID, config, at string }{
		"no provider":              {"vendor.acme.desk.ask", `{}`, ""},
		"one that cannot be":       {"vendor.acme.desk.ask", `{"provider":"anthropic"}`, "/nodes/0/config/provider"},
		"one that can":             {"vendor.acme.desk.ask", `{"provider":"openai"}`, ""},
		"the type's":               {"vendor.acme.desk.own", `{}`, "/nodes/0/typeId"},
		"instead of the type's":    {"vendor.acme.desk.own", `{"provider":"gemini"}`, ""},
		"with a schema of its own": {"vendor.acme.desk.own", `{"outputSchema":` + plainSchema + `}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, warned := c.Review(definitionOf(t, nodeJSON("a", tc.typeID, `,"inputs":{},"config":`+tc.config), ""), nil)
			require.Empty(t, warned)
			if tc.at == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, tc.at, found[0].Path)
			require.Contains(t, found[0].Message, `the type's schema, at "/$defs/tree/properties/below/items": not supported by anthropic`)
		})
	}
}

// The check of expensive schemas is limited.
func TestReview_LimitsTheSchemasThatItChecks(t *testing.T) {
	t.Parallel()
	bad := func(n int, pad string) string {
		return fmt.Sprintf(`{"title":"%d%s","type":"object","properties":{"a":false},"required":["a"]}`, n, pad)
	}
	good := func(n int) string {
		return strings.Replace(plainSchema, "string", "string\",\"title\":\""+strconv.Itoa(n), 1)
	}
	last := func(n int) func(int) string {
		return func(i int) string {
			if i < n {
				return good(i)
			}
			return bad(i, "")
		}
	}
	for name, tc := range map[string]struct {
		nodes, want int
		schema      func(i int) string
	}{
		"as many as are looked at": {64, 1, last(63)},
		"too many":                 {65, 0, last(64)},
		"long ones":                {50, 6, func(i int) string { return bad(i, strings.Repeat("x", 10<<10)) }},
		"one that is too long":     {2, 1, func(i int) string { return bad(i, strings.Repeat("x", (1-i)*(64<<10))) }},
		"one, again and again":     {60, 60, func(int) string { return bad(1, "") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var nodes []string
			for i := range tc.nodes {
				nodes = append(nodes, nodeJSON(fmt.Sprintf("n%d", i), node.TypeStructuredOutput, `,"inputs":{},"config":{"provider":"openai","outputSchema":`+tc.schema(i)+`}`))
			}
			found, _ := node.Builtin().Review(definitionOf(t, strings.Join(nodes, ","), ""), nil)
			require.Len(t, found, tc.want)
		})
	}
}

// formatProblems formats problems for comparison.
func formatProblems(problems []workflow.Problem) (out []string) {
	for _, p := range problems {
		out = append(out, p.Path+": "+p.Rule+": "+p.Message)
	}
	return out
}
