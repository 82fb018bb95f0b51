package limit

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
)

// names lists the JSON names of a struct's fields, with those of embedded ones.
func names(t reflect.Type) []string {
	var out []string
	for f := range t.Fields() {
		if f.Anonymous {
			out = append(out, names(f.Type)...)
			continue
		}
		out = append(out, f.Tag.Get("json"))
	}
	slices.Sort(out)
	return out
}

// The schema for editors and the types that the file is read into have the same members, and agree about
// documents.
func TestSchema_IsThatOfTheTypes(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile("provider settings", Schema())
	require.NoError(t, err)
	type object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var doc struct {
		Defs map[string]object `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(Schema(), &doc))
	members := func(o object) []string {
		var out []string
		for name := range o.Properties {
			out = append(out, name)
		}
		slices.Sort(out)
		return out
	}
	require.Equal(t, names(reflect.TypeFor[Settings]()), members(doc.Defs["provider"]))
	require.Equal(t, names(reflect.TypeFor[Reference]()), members(doc.Defs["reference"]))
	var timeouts object
	require.NoError(t, json.Unmarshal(doc.Defs["provider"].Properties["timeouts"], &timeouts))
	require.Equal(t, names(reflect.TypeFor[Millis]()), members(timeouts))
	for text, valid := range map[string]bool{
		`{"providers":{"a":{"maxConcurrent":3,"timeouts":{"callMs":7200000}},"*":{"tokensPerMinute":10}}}`:        true,
		`{"$schema":"x","providers":{"a":{"baseUrl":"http://h","key":{"env":"K"},"onError":{"models":["b/c"]}}}}`: true,
		`{"providers":{}}`:                                  false,
		`{"providers":{"a":{"maxConcurent":3}}}`:            false,
		`{"providers":{"a":{"retries":101}}}`:               false,
		`{"providers":{"a":{"timeouts":{"silenceMs":-1}}}}`: false,
		`{"providers":{"a":{"key":{}}}}`:                    false,
		`{"providers":{"a":{"api":"soap"}}}`:                false,
		`{"providers":{"a":{"onError":{"models":["x"]}}}}`:  false,
	} {
		_, err := Parse([]byte(text), Host{})
		require.Equal(t, valid, err == nil, "%s: %v", text, err)
		require.Equal(t, valid, len(s.Validate([]byte(text))) == 0, text)
	}
}
