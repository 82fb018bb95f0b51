package schema_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
)

// OpenWOP envelope contract §5, §20: an optional member that is null is absent, unless its own schema
// allows null.
func TestUnifyNulls(t *testing.T) {
	t.Parallel()
	const person = `{"type":"object","additionalProperties":false,"required":["name"],"properties":{
		"name":{"type":"string"},"age":{"type":"integer"},"nick":{"type":["string","null"]},"any":{},
		"a/b~c":{"type":"string"},"reasoning":{"type":["string","null"]},"friends":{"type":"array","items":{"$ref":"#"}}}}`
	for name, tc := range map[string]struct{ schema, in, want string }{
		"an optional member":                {person, `{"name":"n","age":null}`, `{"name":"n"}`},
		"a first member":                    {person, `{"age":null,"name":"n"}`, `{"name":"n"}`},
		"the only member":                   {`{"properties":{"a":{"type":"string"}}}`, `{"a":null}`, `{}`},
		"a member that allows null":         {person, `{"name":"n","nick":null,"any":null}`, `{"name":"n","nick":null,"any":null}`},
		"reasoning, which allows null":      {person, `{"name":"n","reasoning":null}`, `{"name":"n"}`},
		"reasoning that has to be there":    {`{"type":"object","required":["reasoning","a"],"properties":{"reasoning":{"type":["string","null"]}}}`, `{"reasoning":null,"a":1}`, `{"reasoning":null,"a":1}`},
		"reasoning that is not there":       {`{"type":"object","required":["reasoning","a"],"properties":{"reasoning":{"type":["string","null"]}}}`, ` {"a":1}`, `{"reasoning":null,"a":1}`},
		"reasoning and all else":            {`{"type":"object","required":["reasoning"],"properties":{"reasoning":{"type":["string","null"]},"b":{"type":"string"}}}`, `{"b":null}`, `{"reasoning":null}`},
		"members of items":                  {person, `{"name":"n","friends":[{"name":"m","age":null},{"name":"o"}]}`, `{"name":"n","friends":[{"name":"m"},{"name":"o"}]}`},
		"a list":                            {person, `{"name":"n","friends":null}`, `{"name":"n"}`},
		"a name with an escaped pointer":    {person, `{"name":"n","a/b~c":null}`, `{"name":"n"}`},
		"a name with an escape":             {person, `{"name":"n","\u0061ge":null}`, `{"name":"n"}`},
		"other bytes":                       {person, `{"name": "<é\u00e9>", "age":null,"any":1.0}`, `{"name":"<é\u00e9>","any":1.0}`},
		"a branch of a union":               {`{"anyOf":[{"type":"object","required":["k"],"properties":{"k":{"enum":["a"]},"x":{"type":"string"}}},{"type":"object","required":["k"],"properties":{"k":{"enum":["b"]},"x":{"type":["string","null"]}}}]}`, `{"k":"a","x":null}`, `{"k":"a"}`},
		"a branch that allows null":         {`{"anyOf":[{"type":"object","required":["k"],"properties":{"k":{"enum":["a"]},"x":{"type":"string"}}},{"type":"object","required":["k"],"properties":{"k":{"enum":["b"]},"x":{"type":["string","null"]}}}]}`, `{"k":"b","x":null}`, `{"k":"b","x":null}`},
		"a member that another depends on":  {`{"properties":{"a":{"type":"string"}},"dependentRequired":{"a":["b"]}}`, `{"a":null}`, `{}`},
		"null itself":                       {`{"type":"null"}`, `null`, `null`},
		"more members than are reported":    {person, `{"name":"n","friends":[` + strings.Repeat(`{"name":"m","age":null},`, 500) + `{"name":"l"}]}`, `{"name":"n","friends":[` + strings.Repeat(`{"name":"m"},`, 500) + `{"name":"l"}]}`},
		"an object whose null has no rules": {`{"type":"object"}`, `{"a":null}`, `{"a":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, wrong := schema.UnifyNulls([]byte(tc.in), compile(t, tc.schema).Validate)
			require.Empty(t, wrong)
			require.JSONEq(t, tc.want, string(out))
		})
	}
}

// Violations that the nulls did not cause remain, and the document is unchanged.
func TestUnifyNulls_KeepsOtherViolations(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"age":{"type":"integer"},"list":{"items":{"type":"integer"}}}}`)
	for name, tc := range map[string]struct{ in, path, keyword string }{
		"a required member": {`{"name":null}`, "", "required"},
		"an item":           {`{"name":"n","list":[null]}`, "/list/0", "type"},

		"another member":        {`{"name":7,"age":null}`, "/name", "type"},
		"a value of wrong type": {`{"name":"n","age":"old"}`, "/age", "type"},
		"no JSON":               {`{"name":`, "", schema.KeywordJSON},
	} {
		out, wrong := schema.UnifyNulls([]byte(tc.in), s.Validate)
		require.Len(t, wrong, 1, name)
		require.Equal(t, tc.keyword, wrong[0].Keyword, name)
		if tc.keyword != schema.KeywordJSON {
			require.Equal(t, tc.path, wrong[0].InstancePath, name)
		}
		require.Equal(t, tc.in, string(out), name)
	}
}
