package projection_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/schema"
)

func TestLintFor_StatesTheVendorsRules(t *testing.T) {
	t.Parallel()
	all := projection.Builtin()
	strict := []projection.Vendor{projection.OpenAI, projection.Anthropic}
	gemini := []projection.Vendor{projection.Gemini}
	openAI := []projection.Vendor{projection.OpenAI}
	anthropic := []projection.Vendor{projection.Anthropic}
	for name, tc := range map[string]struct {
		member, at, rule string
		breaks           []projection.Vendor
	}{
		"sound":            {`{"type":"string"}`, "", "", nil},
		"oneOf":            {`{"oneOf":[{"type":"string"}],"type":"string"}`, "/oneOf", schema.RuleForbiddenKeyword, all},
		"const":            {`{"type":"string","const":"a"}`, "/const", projection.RuleKeyword, all},
		"title":            {`{"type":"string","title":"t"}`, "/title", projection.RuleKeyword, all},
		"minLength":        {`{"type":"string","minLength":1}`, "/minLength", schema.RuleStringConstraint, strict},
		"minimum":          {`{"type":"integer","minimum":1}`, "/minimum", schema.RuleNumberConstraint, anthropic},
		"exclusiveMinimum": {`{"type":"integer","exclusiveMinimum":1}`, "/exclusiveMinimum", "", []projection.Vendor{projection.Anthropic, projection.Gemini}},
		"minItems":         {`{"type":"array","items":{"type":"string"},"minItems":2}`, "/minItems", projection.RuleValue, anthropic},
		"format":           {`{"type":"string","format":"uri"}`, "/format", projection.RuleValue, openAI},
		"lookahead":        {`{"type":"string","pattern":"^(?!a)"}`, "/pattern", "", all},
		"prefixItems": {
			`{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"string"}}`, "/prefixItems",
			schema.RuleForbiddenKeyword, strict,
		},
		"an open object": {`{"type":"object","properties":{}}`, "", schema.RuleClosedObjects, strict},
		"optional": {
			`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`,
			"/properties/a", schema.RuleAllRequired, openAI,
		},
		"no type":           {`{"enum":["a"]}`, "", projection.RuleType, all},
		"true":              {`true`, "", projection.RuleType, all},
		"several types":     {`{"type":["string","integer"]}`, "/type", projection.RuleType, all},
		"an enum of arrays": {`{"type":"array","items":{"type":"null"},"enum":[[]]}`, "/enum/0", projection.RuleEnum, all},
		"no items":          {`{"type":"array"}`, "", projection.RuleItems, all},
		"ordering": {
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false,"propertyOrdering":["b"]}`,
			"/propertyOrdering", projection.RuleOrdering, gemini,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, v := range all {
				doc := []byte(in(tc.member))
				if !contains(tc.breaks, v) {
					for _, p := range projection.LintFor(v, doc) { // the table's own words on it
						require.Equal(t, projection.RuleKeyword, p.Rule, p)
					}
					continue
				}
				problems := projection.LintFor(v, doc)
				require.NotEmpty(t, problems, v)
				require.Equal(t, "/properties/m"+tc.at, problems[0].Path)
				if tc.rule != "" {
					require.Equal(t, tc.rule, problems[0].Rule)
				}
				require.NotEmpty(t, problems[0].Message)
			}
		})
	}
}

func contains(vs []projection.Vendor, v projection.Vendor) bool {
	for _, other := range vs {
		if v == other {
			return true
		}
	}
	return false
}

func TestLintFor_RequiresAnObjectAtTheRoot(t *testing.T) {
	t.Parallel()
	for _, v := range projection.Vendors() {
		problems := projection.LintFor(v, []byte(`{"type":"array","items":{"type":"string"}}`))
		if d, _ := projection.DialectOf(v); d.ObjectRoot {
			require.Equal(t, schema.RuleRootObject, problems[0].Rule)
		} else {
			require.Empty(t, problems)
		}
		require.Equal(t, schema.RuleNotSchema, projection.LintFor(v, []byte(`{`))[0].Rule)
	}
}
