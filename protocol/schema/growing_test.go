package schema_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
)

// A schema of growing documents drops what is missing, and keeps all other rules.
func TestGrowing_IgnoresWhatIsMissing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		schema  string
		ok, bad []string
	}{
		"required":     {`{"type":"object","required":["a","b"],"properties":{"a":{"type":"string"}},"additionalProperties":false}`, []string{`{}`, `{"a":"x"}`}, []string{`{"a":1}`, `{"c":1}`, `[]`}},
		"sizes":        {`{"minProperties":2,"items":{"type":"integer"},"minItems":3,"maxItems":4,"contains":{"const":9}}`, []string{`{}`, `[1]`, `[]`}, []string{`["x"]`, `[1,2,3,4,5]`}},
		"oneOf":        {`{"oneOf":[{"properties":{"k":{"enum":["a"]},"x":{"type":"string"}},"required":["k"]},{"properties":{"k":{"enum":["b"]}},"required":["k"]}]}`, []string{`{}`, `{"k":"a"}`, `{"k":"b"}`}, []string{`{"k":"c"}`, `{"k":"a","x":1}`}},
		"both":         {`{"oneOf":[{"type":"string"}],"anyOf":[{"type":"string"},{"type":"integer"}]}`, []string{`"x"`}, []string{`true`}},
		"conditions":   {`{"if":{"required":["a"]},"then":{"required":["b"]},"else":false,"not":{"maxProperties":0}}`, []string{`{}`, `{"a":1}`}, nil},
		"a property":   {`{"properties":{"required":{"type":"string"},"not":{"type":"integer"}}}`, []string{`{"required":"x"}`}, []string{`{"required":1}`, `{"not":"x"}`}},
		"references":   {`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","required":["n"],"properties":{"n":{"$ref":"#/$defs/n"},"v":{"type":"integer"}}}}}`, []string{`{}`, `{"n":{"n":{}}}`}, []string{`{"n":{"v":"x"}}`}},
		"another word": {`{"type":"object","dependentRequired":{"a":["b"]},"dependentSchemas":{"a":{"required":["c"]}}}`, []string{`{"a":1}`}, []string{`7`}},
	} {
		s, err := compile(t, tc.schema).Growing()
		require.NoError(t, err, name)
		for _, doc := range tc.ok {
			require.Empty(t, s.Validate([]byte(doc)), "%s: %s", name, doc)
		}
		for _, doc := range tc.bad {
			require.NotEmpty(t, s.Validate([]byte(doc)), "%s: %s", name, doc)
		}
	}
}

// A budget limits the time of all documents, and none of them is judged wrongly.
func TestBudget_IsSharedByDocuments(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"type":"string","pattern":"^(?=(a+)+b$)(a+)+b$"}`)
	b := schema.NewBudget(1 << 20)
	began := time.Now()
	for range 1000 {
		wrong := s.ValidateWithin([]byte(`"`+strings.Repeat("a", 40)+`!"`), b)
		require.NotEmpty(t, wrong)
	}
	require.Less(t, time.Since(began), 10*time.Second, "without a budget it does not end in a lifetime")
	require.True(t, b.Spent())
	wrong := s.ValidateWithin([]byte(`"ab"`), b)
	require.Equal(t, schema.KeywordBudget, wrong[0].Keyword)
	require.Empty(t, s.ValidateWithin([]byte(`"ab"`), schema.NewBudget(4)))
	require.Empty(t, s.ValidateWithin([]byte(`"ab"`), nil))
}
