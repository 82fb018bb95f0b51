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
		"a reference to itself":            {ask(`{"$ref":"#"}`), "/payload/questions/1/schema"},
		"a value within itself":            {ask(`{"type":"object","required":["t"],"properties":{"t":{"$ref":"#"}}}`), "/payload/questions/1/schema"},
		"two equal branches":               {ask(`{"oneOf":[{"type":"string"},{"type":"string"}]}`), "/payload/questions/1/schema"},
		"a type and its negation":          {ask(`{"type":"string","not":{"type":"string"}}`), "/payload/questions/1/schema"},
		"a type and the negation of more":  {ask(`{"type":"integer","not":{"type":["number","null"]}}`), "/payload/questions/1/schema"},
		"a condition that forbids all":     {ask(`{"if":{},"then":false}`), "/payload/questions/1/schema"},
		"a condition with two dead ends":   {ask(`{"if":{"type":"string"},"then":{"type":"null"},"else":false}`), "/payload/questions/1/schema"},
		"bounds in two parts":              {ask(`{"type":"integer","allOf":[{"minimum":5},{"maximum":3}]}`), "/payload/questions/1/schema"},
		"bounds in two parts, without int": {ask(`{"type":"integer","allOf":[{"exclusiveMinimum":3},{"exclusiveMaximum":4}]}`), "/payload/questions/1/schema"},
		"a bound in a reference":           {ask(`{"$ref":"#/$defs/n","maximum":3,"$defs":{"n":{"type":"number","minimum":5}}}`), "/payload/questions/1/schema"},
		"a pattern that is too long":       {ask(`{"type":"string","pattern":"^[0-9]{4}$","maxLength":3}`), "/payload/questions/1/schema"},
		"a pattern that is too short":      {ask(`{"type":"string","pattern":"^(a|bc)?$","minLength":3}`), "/payload/questions/1/schema"},
		"two patterns of other lengths":    {ask(`{"type":"string","pattern":"^a{2}$","allOf":[{"pattern":"^a{3}$"}]}`), "/payload/questions/1/schema"},
		"a pattern that looks ahead":       {ask(`{"type":"string","pattern":"^(?=a)b"}`), "/payload/questions/1/schema"},
		"choices of another type":          {ask(`{"enum":["a","b"],"allOf":[{"type":"integer"}]}`), "/payload/questions/1/schema"},
		"choices that nothing allows":      {ask(`{"enum":["a","b"],"not":{"enum":["a","b","c"]}}`), "/payload/questions/1/schema"},
		"no branch of the type":            {ask(`{"type":"string","anyOf":[{"type":"integer"},{"type":"null"}]}`), "/payload/questions/1/schema"},
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
		"an optional value in itself":  `{"type":"object","properties":{"t":{"$ref":"#"}}}`,
		"a list of itself":             `{"type":"array","items":{"$ref":"#"}}`,
		"a list that ends":             `{"$ref":"#/$defs/l","$defs":{"l":{"anyOf":[{"type":"null"},{"type":"object","required":["next"],"properties":{"next":{"$ref":"#/$defs/l"}}}]}}}`,
		"a negation of another type":   `{"type":"number","not":{"type":"integer"}}`,
		"a condition":                  `{"type":"string","if":{"const":"a"},"then":{"minLength":1},"else":{"minLength":2}}`,
		"bounds that leave a value":    `{"type":"integer","allOf":[{"exclusiveMinimum":3},{"exclusiveMaximum":5}]}`,
		"a pattern that just fits":     `{"type":"string","pattern":"^[0-9]{4}$","maxLength":4,"minLength":4}`,
		"a pattern without an end":     `{"type":"string","pattern":"^[0-9]{4}","minLength":9}`,
		"a pattern of a date":          `{"type":"string","pattern":"^\\d{4}-\\d{2}-\\d{2}$","maxLength":10}`,
		"a pattern that looks ahead":   `{"type":"string","pattern":"^(?=[a-z])[a-z0-9]+$"}`,
		"a pattern that looks further": `{"type":"string","pattern":"^(?=.*[0-9])[a-z0-9]+$","maxLength":8}`,
		"two branches that overlap":    `{"oneOf":[{"type":"string"},{"type":["string","null"]}]}`,
		"many references":              `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"allOf":[{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"}]},"c":{"type":"string"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			accepted(t, f.accept(doc(accept.KindClarificationRequest, ask(schema))))
		})
	}
}
