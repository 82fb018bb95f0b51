package schema_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
)

func TestExplain_SuggestsAMember(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile("s", []byte(`{"additionalProperties":false,"properties":{"prompt":true,"a/b":{"$ref":"#/$defs/x"},
		"list":{"items":{"anyOf":[{"additionalProperties":false,"properties":{"model":true}}]}}},
		"$defs":{"x":{"type":"object","unevaluatedProperties":false,"properties":{"refusalMode":true}}}}`))
	require.NoError(t, err)
	for doc, want := range map[string]string{
		`{"promt":1}`:            "unknown member; did you mean prompt? allowed: a/b, list, prompt",
		`{"promt":1,"prompt":2}`: "unknown member; prompt is set, too: remove one of the two; allowed: a/b, list, prompt",
		`{"list":[{"model":"y"},{"modl":"x","model":"y"}]}`: "unknown member; model is set, too: remove one of the two; allowed: model",
		`{"q":1}`:                  "unknown member; allowed: a/b, list, prompt",
		`{"zzzzzzzz":1}`:           "unknown member; allowed: a/b, list, prompt",
		`{"a/b":{"refusalmod":1}}`: "unknown member; did you mean refusalMode? allowed: refusalMode",
		`{"list":[{"modl":"x"}]}`:  "unknown member; did you mean model? allowed: model",
	} {
		found := s.Validate([]byte(doc))
		require.Len(t, found, 1, doc)
		require.True(t, found[0].UnknownMember())
		require.Equal(t, want, s.Explain(found[0], []byte(doc)), doc)
	}
	typed, err := schema.Compile("s", []byte(`{"type":"object"}`))
	require.NoError(t, err)
	found := typed.Validate([]byte(`7`))
	require.Equal(t, found[0].Message, typed.Explain(found[0], []byte(`7`)))
}

func TestExplain_SuggestsTextsThatMatch(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile("s", []byte(`{"properties":{"can":{"pattern":"^(vision-input|function-calling|x-[a-z]+)$"},"id":{"pattern":"^[a-z][a-z0-9-]*$"}}}`))
	require.NoError(t, err)
	for doc, want := range map[string]string{
		`{"can":"vision"}`:           "; did you mean vision-input?",
		`{"can":"tools"}`:            "; did you mean function-calling?",
		`{"can":"Function-Calling"}`: "; write it in lower case",
		`{"can":"zzzzzzzz"}`:         "",
		`{"id":"OpenAI"}`:            "; write it in lower case",
		`{"id":"a b"}`:               "",
		`{"id":7}`:                   "",
	} {
		for _, v := range s.Validate([]byte(doc)) {
			require.Equal(t, v.Message+want, s.Explain(v, []byte(doc)), doc)
		}
	}
}
