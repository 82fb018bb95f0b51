package accept_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

// Questions as models write them: those without a possible answer are refused when they are asked, all
// others are asked.
func TestForeign_Questions(t *testing.T) {
	t.Parallel()
	ask := func(schema string) string {
		return `{"questions":[{"id":"a","question":"Which?","schema":` + schema + `}]}`
	}
	for name, schema := range map[string]string{
		"a constant of another type":        `{"type":"string","const":1}`,
		"exclusive bounds that meet":        `{"type":"number","exclusiveMinimum":3,"exclusiveMaximum":3}`,
		"a bound that excludes the other":   `{"type":"number","minimum":3,"exclusiveMaximum":3}`,
		"no integer between":                `{"type":"integer","minimum":1.2,"maximum":1.8}`,
		"no multiple between":               `{"type":"integer","minimum":3,"maximum":3,"multipleOf":2}`,
		"choices that are too short":        `{"enum":["a","b"],"minLength":5}`,
		"choices beyond a bound":            `{"enum":[1,2],"minimum":5}`,
		"choices that no pattern allows":    `{"enum":["a","b"],"pattern":"^[0-9]+$"}`,
		"two types at once":                 `{"allOf":[{"type":"string"},{"type":"number"}]}`,
		"a required member that is unknown": `{"type":"object","properties":{"x":{"type":"string"}},"required":["y"],"additionalProperties":false}`,
		"more members required than may be": `{"type":"object","properties":{"x":{},"y":{}},"required":["x","y"],"maxProperties":1}`,
		"more choices than there are":       `{"type":"array","items":{"enum":["a","b"]},"uniqueItems":true,"minItems":3}`,
		"items that cannot be":              `{"type":"array","items":false,"minItems":1}`,
		"a required choice of none":         `{"type":"object","properties":{"x":{"type":"integer","enum":["a"]}},"required":["x"]}`,
		"a union of nothing":                `{"anyOf":[{"type":"string","enum":[1]},{"type":"integer","enum":["a"]}]}`,
		"types in a text":                   `"string"`,
		"a list of choices":                 `["a","b"]`,
		"a number":                          `7`,
		"false":                             `false`,
		"a type of Python":                  `{"type":"str"}`,
		"a type of TypeScript":              `{"type":"string | number"}`,
		"choices in the place of a type":    `{"type":["a","b"]}`,
		"an enum that is no list":           `{"enum":"a,b"}`,
		"a bound as text":                   `{"type":"integer","minimum":"1"}`,
		"properties as a list":              `{"type":"object","properties":["a"]}`,
		"required as a boolean":             `{"type":"object","properties":{"a":{"type":"string","required":true}}}`,
	} {
		t.Run("refused, "+name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			r := refused(t, f.accept(doc(accept.KindClarificationRequest, ask(schema))), accept.Invalid, fault.EnvelopeInvalid)
			require.NotEmpty(t, r.Details)
			require.Contains(t, r.Details[0].InstancePath, "/payload/questions/0/schema")
			f.nothingRecorded()
		})
	}
	for name, schema := range map[string]string{
		"a choice with null":              `{"enum":["a",null]}`,
		"a choice of numbers in a bound":  `{"enum":[1,9],"minimum":5}`,
		"a constant":                      `{"const":"yes"}`,
		"bounds that meet":                `{"type":"number","minimum":3,"maximum":3}`,
		"an integer that is a multiple":   `{"type":"integer","minimum":3,"maximum":4,"multipleOf":2}`,
		"an empty list":                   `{"type":"array","items":false}`,
		"a title and a description":       `{"title":"Colour","description":"Which?","type":"string","examples":["red"]}`,
		"draft-07":                        `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"c":{"type":"string"}},"properties":{"c":{"$ref":"#/definitions/c"}}}`,
		"nullable of OpenAPI":             `{"type":"string","nullable":true}`,
		"a lookahead":                     `{"type":"string","pattern":"^(?=.*[0-9]).{4,}$"}`,
		"dates":                           `{"type":"string","format":"date-time"}`,
		"a choice in a union":             `{"anyOf":[{"const":"a"},{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}]}`,
		"a member that must not be there": `{"type":"object","properties":{"x":false}}`,
	} {
		t.Run("asked, "+name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			accepted(t, f.accept(doc(accept.KindClarificationRequest, ask(schema))))
		})
	}
}
