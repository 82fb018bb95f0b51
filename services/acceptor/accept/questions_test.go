package accept_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

// A question that no answer can satisfy is refused, so that the model corrects it instead of the run
// waiting forever.
func TestQuestions_AreCheckedWhenTheyAreAsked(t *testing.T) {
	t.Parallel()
	ask := func(schema string) string {
		return `{"questions":[{"id":"a","question":"Which?","schema":{"type":"string"}},{"id":"b","question":"Which?","schema":` + schema + `}]}`
	}
	for name, tc := range map[string]struct{ payload, at string }{
		"a type that JSON Schema does not have": {
			ask(`{"type":"choice","options":["a","b"]}`), "/payload/questions/1/schema/type",
		},
		"a keyword in the wrong place": {ask(`{"type":"text"}`), "/payload/questions/1/schema/type"},
		"a pattern that is none": {
			ask(`{"type":"string","pattern":"^(?=a"}`), "/payload/questions/1/schema/pattern",
		},
		"a reference to another host":      {ask(`{"$ref":"http://127.0.0.1:1/x.json"}`), "/payload/questions/1/schema"},
		"a reference to nothing":           {ask(`{"$ref":"#/$defs/none"}`), "/payload/questions/1/schema"},
		"no value in an enum":              {ask(`{"enum":[]}`), "/payload/questions/1/schema"},
		"no value of the type in an enum":  {ask(`{"type":"string","enum":[1]}`), "/payload/questions/1/schema"},
		"a schema that rejects everything": {ask(`{"not":{}}`), "/payload/questions/1/schema"},
		"contradictory bounds in a member": {
			ask(`{"properties":{"not":{"minLength":2,"maxLength":1}}}`),
			"/payload/questions/1/schema/properties/not",
		},
		"contradictory bounds in an item": {
			ask(`{"type":"array","items":{"minLength":2,"maxLength":1}}`),
			"/payload/questions/1/schema/items",
		},
		"bounds without a value between them": {
			ask(`{"type":"integer","minimum":3,"maximum":2}`), "/payload/questions/1/schema",
		},
		"a member that must be and cannot be": {
			ask(`{"type":"object","properties":{"x":false},"required":["x"]}`), "/payload/questions/1/schema",
		},
		"two questions of one id": {
			`{"questions":[{"id":"a","question":"Which?"},{"id":"a","question":"Why?"}]}`, "/payload/questions/1/id",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			r := refused(t, f.accept(doc(accept.KindClarificationRequest, tc.payload)), accept.Invalid, fault.EnvelopeInvalid)
			require.Len(t, r.Details, 1)
			require.Equal(t, tc.at, r.Details[0].InstancePath)
			require.NotEmpty(t, r.Details[0].Message)
			f.nothingRecorded()
		})
	}
	for name, schema := range map[string]string{
		"a choice":                     `{"enum":["a","b"]}`,
		"anything":                     `{}`,
		"members called like keywords": `{"type":"object","properties":{"not":{},"minimum":{"type":"number"},"enum":{"enum":["a"]}}}`,
		"a form":                       `{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"]}`,
		"a list":                       `{"type":"array","items":{"type":"string","format":"date"},"minItems":1}`,
		"a recursive one":              `{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"t":{"$ref":"#/$defs/t"}}}}}`,
		"a map":                        `{"type":"object","additionalProperties":{"type":"number"}}`,
		"a union":                      `{"oneOf":[{"type":"string"},{"type":"null"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			accepted(t, f.accept(doc(accept.KindClarificationRequest, ask(schema))))
		})
	}
}
